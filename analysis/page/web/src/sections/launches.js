// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows several launches of one experiment: a list, the spread of their step times, and the points that were not joined.
// Shows the index of several runs: the experiments of each, by machine, and throughput over time.
import {
  column, columns, counted, data, dateText, ends, joined, labels, largestBy, linesChart, percent, rankCount, seconds,
  si,
} from "../kit.js";

const nowrap = (title, value) => column(title, value, { kind: "nowrap" });
const verdicts = new Map([[true, "yes"], [false, "no"]]);
const pointsText = ({ ok, failed, skipped }) => joined([`${ok} ok`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]);

const indexColumns = columns({
  created: ({ run }) => dateText(run.created), file: ({ run }) => run.file, machine: ({ run }) => run.machine,
  experiment: ({ of }) => joined([of.workload, of.model, of.dtype, of.scaling].filter((part) => part !== "none")),
  ranks: ({ of }) => of.ranks, nodes: ({ of }) => of.nodes, throughput: ({ of }) => of.throughput.value, unit: ({ of }) => of.throughput.unit,
  efficiency: ({ of }) => of.efficiency, verified: ({ of }) => verdicts.get(of.verified),
}, nowrap("points", ({ of }) => pointsText(of.points)), { labels: ({ of }) => of.labels.join(" ") });

const rate = (title, key) => column(title, (at) => at[key], { kind: "rate" });
const trendColumns = columns("machine", { experiment: (at) => at.title }, "ranks", { runs: (at) => at.runs.length },
  nowrap("from", (at) => dateText(at.from)), nowrap("to", (at) => dateText(at.to)), "first, last, median", rate("lowest", "min"), rate("highest", "max"),
  "unit", { "range of throughput": (at) => at.spread });

const trendsOf = (machine) => machine.throughput_over_time.map((trend) => ({ machine: machine.name, ...trend }));

/** Returns the tables of the index, with its runs by date; they are empty without an index. */
function indexTables(report) {
  const runs = [...(report.index ?? [])].sort((a, b) => a.created.localeCompare(b.created));
  return [
    { columns: indexColumns, items: runs.flatMap((run) => run.experiments.map((of) => ({ run, of }))), caption: "Index: each experiment of each run, at its largest rank count" },
    { columns: trendColumns, items: (report.machines ?? []).flatMap(trendsOf), caption: "Throughput over time" },
    { columns: columns("file", { "why it could not be read": (at) => at.reason }), items: report.unreadable ?? [], caption: "Not read" },
  ].map((table) => ({ table }));
}

/** Describes the chart of a machine's trends by date; null if no experiment was run twice. */
function overTime(machine, i, runs) {
  const trends = trendsOf(machine).filter((trend) => trend.runs.length > 1);
  if (trends.length === 0) return null;
  const itemsOf = (trend) => trend.runs.map((id) => {
    const run = runs.get(id);
    const { throughput } = run.experiments.find((at) => at.fingerprint === trend.fingerprint);
    return { x: Date.parse(run.created), y: throughput.value / trend.median, throughput, version: run.isoscale_version };
  });
  return linesChart({
    id: `over-time-${i}`, title: machine.name,
    note: "throughput over the experiment's median, by when the run began; labelled points are left out. Whether a change is established: isoscale compare",
    table: { columns: trendColumns, items: trends }, x: { type: "time" },
    y: { scale: true, format: (value) => percent(value, 0) },
    tip: ({ seriesName, data: at }) => `${seriesName}\n${dateText(new Date(at.value[0]).toISOString())}: ` +
      `${si(at.throughput.value)} ${at.throughput.unit}\nIsoscale ${at.version}`,
    lines: trends.map((trend) => ({ name: `${trend.title} on ${trend.ranks}`, symbolSize: 6, stroke: { width: 1 }, items: itemsOf(trend) })),
  });
}

/** Returns the heading of an index: the number of its runs and of their machines, and its first and last day. */
export function indexHeading({ index, machines }) {
  const days = index.map((run) => run.created.slice(0, 10)).sort();
  return `${index.length} runs on ${machines.length} kinds of machine, ${days[0] ?? ""} to ${days.at(-1) ?? ""}`;
}

export const indexBlocks = (report) => [...report.warnings.map((mark) => ({ mark })), ...indexTables(report)];

export function overTimeBlocks({ index, machines }) {
  const runs = new Map(index.map((run) => [run.id, run]));
  return [{ charts: machines.map((machine, i) => overTime(machine, i, runs)) }];
}

const launchColumns = columns(column("launch", null, { kind: "count" }), { created: (run) => dateText(run.created) }, "file", nowrap("status"), "ranks, nodes",
  { Isoscale: (run) => run.isoscale_version, git: (run) => run.system?.git_hash, warnings: (run) => run.warnings.length }, "id");

/** Returns {name, point} for each point of a joined curve that several launches measured. */
const repeated = (report, names) => report.curves.flatMap((curve, c) =>
  curve.points.filter((point) => point.launches.length > 1).map((point) => ({ name: names[c], point })));

const spreadColumns = columns({ curve: ({ name }) => name, ranks: ({ point }) => point.ranks, launches: ({ point }) => point.launches.length },
  ends("step time", ({ point: { step_time: at } }) => [at.median, at.lower, at.upper]),
  { fastest: ({ point }) => point.step_time.min, slowest: ({ point }) => point.step_time.max, "spread of step time": ({ point }) => point.spread },
  { ...labels, value: ({ point }) => labels.value(point) });

/** Returns the median step of a launch at each point, relative to the median of all launches. */
const itemsOf = (run, found) => found.flatMap(({ point }, y) => {
  const { median } = point.step_time;
  const own = point.launches.filter((at) => at.run === run && at.step_time.median !== null && median > 0);
  return own.map(({ step_time: at }) => ({
    x: at.median / median - 1, y, time: at.median,
    interval: at.lower === null || at.upper === null ? null : [at.lower / median - 1, at.upper / median - 1],
  }));
});

/** Describes the chart of each launch's median step relative to the median of all launches. */
function spreadChart(report, found) {
  const places = found.map(({ name, point }) => `${name}, ${rankCount(point.ranks)}`);
  return linesChart({
    id: "spread", title: "Spread between launches",
    note: "each launch's median step against the median of all launches; right is slower; whiskers: 95% inside the launch",
    table: { columns: spreadColumns, items: found }, height: 66 + 30 * places.length, zoom: false,
    grid: { top: 10 },
    x: { name: "step time against the median", format: (value) => `${Number((100 * value).toFixed(2))}%` },
    y: { type: "category", data: places, inverse: true, axisLabel: { interval: 0 }, splitLine: { show: true } },
    tip: ({ seriesName, data: at }) => `${seriesName}, ${places[at.value[1]]}\n${seconds(at.time)}, ${percent(at.value[0])}`,
    across: true,
    lines: report.runs.map(({ id }, i) => ({ name: `launch ${i + 1}`, type: "scatter", symbolSize: 11, items: itemsOf(id, found) })),
  });
}

function says(found, curves) {
  const launches = `${data.report.runs.length} launches`;
  const widest = largestBy(found, ({ point }) => point.spread);
  if (!widest) return `${launches}, ${curves.length} curves`;
  return `${launches}; they differ most at ${widest.name} on ${rankCount(widest.point.ranks)}: by ${percent(widest.point.spread)}`;
}

export function launchesBlocks({ curves }) {
  const { report } = data;
  if (report.runs.length < 2) return [];
  const names = report.curves.map((curve, c) => curves[c]?.short ?? curve.title);
  const found = repeated(report, names);
  const apart = report.curves.flatMap(({ title, apart: texts }) => texts.map((text) => ({ curve: title, "kept apart because": text })));
  const leftOut = report.curves.flatMap((curve, c) => curve.left_out.map((at) => ({ curve: names[c], ...at })));
  const leftOutColumns = columns("curve, ranks, file", { "step time": (at) => at.step_time.median }, "throughput", { why: (at) => at.reason });
  return [
    { saying: says(found, curves) },
    { when: found.length > 0, chart: spreadChart(report, found) },
    { table: { columns: launchColumns, items: report.runs.map((run, i) => ({ launch: i + 1, ...run })), caption: "Launches" } },
    ...indexTables(report),
    { table: { columns: columns("curve, kept apart because"), items: apart, caption: "What is apart" } },
    { when: leftOut.length > 0, fold: `${counted(leftOut.length, "point")} left out of the joined curves`,
      blocks: [{ table: { columns: leftOutColumns, items: leftOut, caption: "Left out" } }] }];
}
