// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows several launches of one experiment: a list, the spread of their step times, and the points
// that were not joined.
import { data } from "../data.js";
import { counted, percent, rankCount, seconds } from "../format.js";
import { dateText } from "../machine.js";
import { lineOf, whiskers, colourOf } from "../marks.js";
import { count, ends, rate, share, time, words } from "../table.js";
import { indexTables } from "./index.js";

const launchColumns = [
  count("launch"), words("created", (run) => dateText(run.created), "nowrap"), words("file"), words("status", null, "nowrap"),
  count("ranks"), count("nodes"), words("Isoscale", (run) => run.isoscale_version), words("git", (run) => run.system?.git_hash, "nowrap"),
  count("warnings", (run) => run.warnings.length), words("id", null, "nowrap"),
];

/** Returns {name, point} for each point of a joined curve that several launches measured. */
function repeated(report, names) {
  return report.curves.flatMap((curve, c) =>
    curve.points.filter((point) => point.launches.length > 1).map((point) => ({ name: names[c], point })));
}

const spreadColumns = [
  words("curve", ({ name }) => name), count("ranks", ({ point }) => point.ranks), count("launches", ({ point }) => point.launches.length),
  ...ends(time, "step time", ({ point: { step_time: at } }) => [at.median, at.lower, at.upper]),
  time("fastest", ({ point }) => point.step_time.min), time("slowest", ({ point }) => point.step_time.max),
  share("spread of step time", ({ point }) => point.spread), words("labels", ({ point }) => point.labels.join(" ")),
];

/** Returns the median step of a launch at each point, relative to the median of all launches. */
function itemsOf(run, found) {
  return found.flatMap(({ point }, y) => {
    const { median } = point.step_time;
    const own = point.launches.filter((at) => at.run === run && at.step_time.median !== null && median > 0);
    return own.map(({ step_time: at }) => ({
      x: at.median / median - 1, y, time: at.median,
      interval: at.lower === null || at.upper === null ? null : [at.lower / median - 1, y, at.upper / median - 1],
    }));
  });
}

/** Describes the chart of each launch's median step relative to the median of all launches. */
function spreadChart(report, found) {
  const places = found.map(({ name, point }) => `${name}, ${rankCount(point.ranks)}`);
  return {
    id: "spread",
    title: "Spread between launches",
    note: "each launch's median step against the median of all launches; right is slower; whiskers: 95% inside the launch",
    table: { columns: spreadColumns, items: found },
    height: 66 + 30 * places.length,
    option: (colours) => ({
      grid: { top: 10 },
      xAxis: { name: "step time against the median", format: (value) => `${Number((100 * value).toFixed(2))}%` },
      yAxis: { type: "category", data: places, inverse: true, axisLabel: { interval: 0 }, splitLine: { show: true } },
      tip: ({ seriesName, data: at }) => `${seriesName}, ${places[at.value[1]]}\n${seconds(at.time)}, ${percent(at.value[0])}`,
      series: report.runs.flatMap(({ id }, i) => {
        const name = `launch ${i + 1}`;
        const items = itemsOf(id, found);
        return [
          lineOf(name, i, colours, items, { type: "scatter", symbolSize: 11 }),
          whiskers(name, colourOf(colours, i), items.map((at) => at.interval).filter(Boolean), true),
        ];
      }),
    }),
  };
}

const leftOutColumns = [
  words("curve"), count("ranks"), words("file"), time("step time", (at) => at.step_time.median), rate("throughput"), words("why", (at) => at.reason),
];

function says(found, curves) {
  const launches = `${data.report.runs.length} launches`;
  const widest = found.reduce((worst, at) => ((at.point.spread ?? -1) > (worst?.point.spread ?? -1) ? at : worst), null);
  if (!widest || widest.point.spread === null) return `${launches}, ${curves.length} curves`;
  return `${launches}; they differ most at ${widest.name} on ${rankCount(widest.point.ranks)}: by ${percent(widest.point.spread)}`;
}

/** Returns null for a single launch. @param {import("../data.js").Curve[]} curves */
export function launchesSection(curves) {
  const { report } = data;
  if (report.runs.length < 2) return null;
  const names = report.curves.map((curve, c) => curves[c]?.short ?? curve.title);
  const found = repeated(report, names);
  const apart = report.curves.flatMap(({ title, apart: texts }) => texts.map((text) => ({ curve: title, "kept apart because": text })));
  const leftOut = report.curves.flatMap((curve, c) => curve.left_out.map((at) => ({ curve: names[c], ...at })));
  return {
    id: "launches",
    title: "Launches",
    look: "stacked",
    blocks: [
      { saying: says(found, curves) },
      { when: found.length > 0, chart: spreadChart(report, found) },
      { table: { columns: launchColumns, items: report.runs.map((run, i) => ({ launch: i + 1, ...run })), caption: "Launches" } },
      ...indexTables(report),
      { when: apart.length > 0, table: { columns: [words("curve"), words("kept apart because")], items: apart, caption: "What is apart" } },
      { when: leftOut.length > 0, fold: `${counted(leftOut.length, "point")} left out of the joined curves`,
        blocks: [{ table: { columns: leftOutColumns, items: leftOut, caption: "Left out" } }] }],
  };
}
