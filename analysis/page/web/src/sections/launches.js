// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Several launches of one experiment: a list of them, how far their step times spread, and which
// points were not joined.
import { chart } from "../chart.js";
import { data } from "../data.js";
import { el } from "../dom.js";
import { counted, percent, rankCount, seconds, si } from "../format.js";
import { dateText } from "../machine.js";
import { table } from "../table.js";
import { symbols } from "../theme.js";
import { indexTables } from "./index.js";

const nowrap = () => "nowrap";

const launchColumns = [
  { title: "launch", number: true }, { title: "created", look: nowrap }, { title: "file" }, { title: "status", look: nowrap },
  { title: "ranks", number: true }, { title: "nodes", number: true }, { title: "Isoscale" }, { title: "git", look: nowrap }, { title: "warnings", number: true }, { title: "id", look: nowrap },
];

function launchRow(run, i) {
  return [i + 1, dateText(run.created), run.file, run.status, run.ranks, run.nodes, run.isoscale_version, run.system?.git_hash ?? null, run.warnings.length, run.id];
}

/** Returns {name, point} for each point of a joined curve that several launches measured. */
function repeated(report, curves) {
  return report.curves.flatMap((curve, c) =>
    curve.points.filter((point) => point.launches.length > 1).map((point) => ({ name: curves[c]?.short ?? curve.title, point })));
}

const spreadColumns = [
  { title: "curve" }, { title: "ranks", number: true }, { title: "launches", number: true },
  { title: "step time", csv: "step time / s", number: true, text: seconds }, { title: "lower", number: true, text: seconds }, { title: "upper", number: true, text: seconds },
  { title: "fastest", number: true, text: seconds }, { title: "slowest", number: true, text: seconds },
  { title: "spread of step time", number: true, text: (value) => percent(value) }, { title: "labels" },
];

function spreadRow({ name, point }) {
  const { median, lower, upper, min, max } = point.step_time;
  return [name, point.ranks, point.launches.length, median, lower, upper, min, max, point.spread, point.labels.join(" ")];
}

/** Draws horizontal whiskers from items [lower, upper, row]. */
function whiskers(name, colour, items) {
  return {
    type: "custom",
    name,
    data: items,
    encode: { x: [0, 1], y: 2 },
    silent: true,
    itemStyle: { color: colour },
    renderItem: (_, api) => {
      const [x1, y] = api.coord([api.value(0), api.value(2)]);
      const x2 = api.coord([api.value(1), api.value(2)])[0];
      return { type: "line", shape: { x1, y1: y, x2, y2: y }, style: { stroke: colour, lineWidth: 2, opacity: 0.7 } };
    },
  };
}

/** Shows each launch's median step relative to the median of all, point by point. */
function spreadChart(report, found) {
  const runs = report.runs.map((run) => run.id);
  const places = found.map(({ name, point }) => `${name}, ${rankCount(point.ranks)}`);
  const own = (run) => found.flatMap(({ point }, place) =>
    point.launches.filter((at) => at.run === run && at.step_time.median !== null && point.step_time.median > 0)
      .map((at) => {
        const relative = (value) => (value === null ? null : value / point.step_time.median - 1);
        return { value: [relative(at.step_time.median), place], time: at.step_time.median, low: relative(at.step_time.lower), high: relative(at.step_time.upper) };
      }));
  return chart({
    id: "spread",
    title: "Spread between launches",
    note: "each launch's median step against the median of all launches; right is slower; whiskers: 95% inside the launch",
    table: { columns: spreadColumns, rows: found.map(spreadRow) },
    height: 66 + 30 * places.length,
    option: (colours) => ({
      grid: { top: 10 },
      xAxis: { type: "value", name: "step time against the median", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: (value) => `${Number((100 * value).toFixed(2))}%` } },
      yAxis: { type: "category", data: places, inverse: true, axisTick: { show: false }, axisLabel: { interval: 0 }, splitLine: { show: true } },
      tooltip: { trigger: "item", formatter: ({ seriesName, data: at }) => `${seriesName}, ${places[at.value[1]]}\n${seconds(at.time)}, ${percent(at.value[0])}` },
      series: runs.flatMap((run, i) => {
        const name = `launch ${i + 1}`;
        const colour = colours.series[i % colours.series.length];
        const items = own(run);
        return [
          { type: "scatter", name, data: items, symbol: symbols[i % symbols.length], symbolSize: 11, itemStyle: { color: colour, opacity: 0.85 } },
          whiskers(name, colour, items.filter((at) => at.low !== null && at.high !== null).map((at) => [at.low, at.high, at.value[1]])),
        ];
      }),
    }),
  });
}

function apart(report) {
  const sentences = report.curves.flatMap((curve) => curve.apart.map((text) => [curve.title, text]));
  return sentences.length === 0 ? null
    : table([{ title: "curve" }, { title: "kept apart because" }], sentences, { caption: "What is apart" });
}

const leftOutColumns = [
  { title: "curve" }, { title: "ranks", number: true }, { title: "file" }, { title: "step time", csv: "step time / s", number: true, text: seconds },
  { title: "throughput", number: true, text: (value) => si(value) }, { title: "why" },
];

function leftOut(report, curves) {
  const rows = report.curves.flatMap((curve, c) =>
    curve.left_out.map((at) => [curves[c]?.short ?? curve.title, at.ranks, at.file, at.step_time.median, at.throughput, at.reason]));
  return rows.length === 0 ? null
    : el("details", {}, el("summary", {}, `${counted(rows.length, "point")} left out of the joined curves`),
      table(leftOutColumns, rows, { caption: "Left out" }));
}

function says(found, curves) {
  const widest = found.reduce((worst, at) => ((at.point.spread ?? -1) > (worst?.point.spread ?? -1) ? at : worst), null);
  if (!widest || widest.point.spread === null) return `${data.report.runs.length} launches, ${curves.length} curves`;
  return `${data.report.runs.length} launches; they differ most at ${widest.name} on ${rankCount(widest.point.ranks)}: by ${percent(widest.point.spread)}`;
}

/** Returns null for a single launch. @param {import("../data.js").Curve[]} curves */
export function launchesSection(curves) {
  const { report } = data;
  if (report.runs.length < 2) return null;
  const found = repeated(report, curves);
  return {
    id: "launches",
    title: "Launches",
    content: el("div", { class: "stacked" },
      el("p", {}, says(found, curves)),
      found.length > 0 ? spreadChart(report, found) : null,
      table(launchColumns, report.runs.map(launchRow), { caption: "Launches" }),
      indexTables(report), apart(report), leftOut(report, curves)),
  };
}
