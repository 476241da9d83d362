// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows several launches of one experiment: a list of them, the spread of their step times, and the
// points that were not joined. Also shows the index of many runs: the experiments of each run, and
// the throughput of each machine over time.
import {
  column, columns, counted, data, dateText, joined, labels, largestBy, lined, linesChart, meshTip, percent, rankCount, si,
  timeTip,
} from "../kit.js";

const verdicts = new Map([[true, "yes"], [false, "no"]]);
const pointsText = ({ ok, failed, skipped }) => joined([`${ok} ok`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]);

const indexColumns = columns("experiment", "created:nowrap, file, machine",
  { experiment: (at) => joined([at.workload, at.model, at.dtype, at.scaling].filter((part) => part !== "none")) },
  "ranks, nodes, throughput, unit=throughput.unit, efficiency", { verified: (at) => verdicts.get(at.verified) },
  "points:nowrap", labels);
const trendColumns = columns("trend", "machine, title, ranks, runs=runs.length, from:nowrap, to:nowrap, first, last, median, min, max, unit, spread");

const trendsOf = (machine) => machine.throughput_over_time.map((trend) =>
  ({ machine: machine.name, ...trend, from: dateText(trend.from), to: dateText(trend.to) }));
const experimentsOf = ({ created, file, machine, experiments }) =>
  experiments.map((of) => ({ ...of, created: dateText(created), file, machine, points: pointsText(of.points) }));

/** Returns the tables of the index, by date; without an index they have no rows. */
function indexTables(report) {
  const runs = [...report.index].sort((a, b) => a.created.localeCompare(b.created));
  return [
    { columns: indexColumns, items: runs.flatMap(experimentsOf), caption: "Index: each experiment of each run, at its largest rank count" },
    { columns: trendColumns, items: report.machines.flatMap(trendsOf), caption: "Throughput over time" },
    { columns: columns("", "file, why it could not be read:long=reason"), items: report.unreadable, caption: "Not read" },
  ].map((table) => ({ table }));
}

/** Describes a machine's throughput over time by experiment; null if none was run twice. */
function overTime(machine, i, runs) {
  const trends = trendsOf(machine).filter((trend) => trend.runs.length > 1);
  if (trends.length === 0) return null;
  const itemsOf = (trend) => trend.runs.map((id) => {
    const run = runs.get(id);
    const { throughput } = run.experiments.findLast((at) =>
      at.fingerprint === trend.fingerprint && at.ranks === trend.ranks && at.throughput.unit === trend.unit);
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

/** Returns the heading of an index: "3 runs on 2 kinds of machine, FIRST DAY to LAST DAY". */
export function indexHeading({ index, machines }) {
  const days = index.map((run) => run.created.slice(0, 10)).sort();
  return `${counted(index.length, "run")} on ${counted(machines.length, "kind")} of machine, ${days[0] ?? ""} to ${days.at(-1) ?? ""}`;
}

export const indexBlocks = (report) => [...report.warnings.map((mark) => ({ mark })), ...indexTables(report)];

export function overTimeBlocks({ index, machines }) {
  const runs = new Map(index.map((run) => [run.id, run]));
  return [{ charts: machines.map((machine, i) => overTime(machine, i, runs)) }];
}

const launchColumns = columns("point", "launch:count", column("created", (run) => dateText(run.created), { form: "nowrap" }),
  "file, status:nowrap, ranks, nodes, Isoscale=isoscale_version, git:nowrap=system.git_hash, warnings:count=warnings.length, id:nowrap");

/** Returns the joined points that several launches measured, each with its curve's name. */
const repeated = (report, names) => report.curves.flatMap((of, c) =>
  of.points.filter((point) => point.launches.length > 1).map((point) => ({ ...point, curve: names[c] })));

const spreadColumns = columns("point", "curve, ranks, launches:count=launches.length, step_time~",
  "fastest:seconds=step_time.min, slowest:seconds=step_time.max, spread", labels);

/** Returns a launch's median step time at each point, over that of all launches, minus 1. */
const itemsOf = (run, found) => found.flatMap(({ step_time: { median }, launches }, y) => {
  const own = launches.filter((at) => at.run === run && at.step_time.median !== null && median > 0);
  return own.map(({ step_time: at }) => ({
    x: at.median / median - 1, y, time: at,
    interval: at.lower === null || at.upper === null ? null : [at.lower / median - 1, at.upper / median - 1],
  }));
});

/** Describes the chart of what itemsOf() returns for each launch. */
function spreadChart(report, found) {
  const places = found.map(({ curve, ranks }) => `${curve}, ${rankCount(ranks)}`);
  return linesChart({
    id: "spread", title: "Spread between launches",
    note: "each launch's median step against the median of all launches; right is slower; whiskers: 95% inside the launch",
    table: { columns: spreadColumns, items: found }, height: 66 + 30 * places.length, zoom: false,
    grid: { top: 10 },
    x: { name: "step time against the median", format: (value) => `${Number((100 * value).toFixed(2))}%` },
    y: { type: "category", data: places, inverse: true, axisLabel: { interval: 0 }, splitLine: { show: true } },
    tip: ({ seriesName, data: { value: [off, y], time } }) =>
      lined(`${seriesName}, ${places[y]}: ${percent(off)}`, timeTip("step", time), meshTip(found[y].mesh)),
    across: true,
    lines: report.runs.map(({ id }, i) => ({ name: `launch ${i + 1}`, type: "scatter", symbolSize: 11, items: itemsOf(id, found) })),
  });
}

function says(found, curves) {
  const launches = `${data.report.runs.length} launches`;
  const widest = largestBy(found, ({ spread }) => spread);
  if (!widest) return `${launches}, ${curves.length} curves`;
  return `${launches}; they differ most at ${widest.curve} on ${rankCount(widest.ranks)}: by ${percent(widest.spread)}`;
}

export function launchesBlocks({ curves }) {
  const { report } = data;
  if (report.runs.length < 2) return [];
  const names = report.curves.map((curve, c) => curves[c]?.short ?? curve.title);
  const found = repeated(report, names);
  const apart = report.curves.flatMap(({ title, apart: texts }) => texts.map((text) => ({ curve: title, "kept apart because": text })));
  const leftOut = report.curves.flatMap((curve, c) => curve.left_out.map((at) => ({ curve: names[c], ...at })));
  const leftOutColumns = columns("point", "curve, ranks, file, step_time, throughput, why=reason");
  return [
    { saying: says(found, curves) },
    { when: found.length > 0, chart: spreadChart(report, found) },
    { table: { columns: launchColumns, items: report.runs.map((run, i) => ({ launch: i + 1, ...run })), caption: "Launches" } },
    ...indexTables(report),
    { table: { columns: columns("", "curve, kept apart because"), items: apart, caption: "What is apart" } },
    { when: leftOut.length > 0, fold: `${counted(leftOut.length, "point")} left out of the joined curves`,
      blocks: [{ table: { columns: leftOutColumns, items: leftOut, caption: "Left out" } }] }];
}
