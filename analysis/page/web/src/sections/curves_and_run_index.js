// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows efficiency, speed-up and throughput over rank counts, with intervals and the ideal lines;
// the launches of one experiment, the spread of their step times, and points that were not joined;
// and the index of many runs, with the throughput of each machine over time.
import {
  axisPercent, column, columns, counted, data, dateText, joined, labels, largestBy, lined, linesChart, meshTip, overRanks, percent,
  rankCount, scales, si, timeTip, viewOf,
} from "../reexports.js";

const curveColumns = columns("point", "curve, ranks, nodes, launches:count, step_time~, throughput, unit, speedup~, efficiency~", labels,
  "...=full");

/** Returns the baseline that all curves share, "1 rank", or "each curve's baseline". */
function baselineText(curves) {
  const names = new Set(curves.map((curve) => curve.baselineName).filter(Boolean));
  return names.size === 1 ? [...names][0] : "each curve's baseline";
}

const efficiencyChart = (curves) => ({
  id: "efficiency", ...viewOf("efficiency"),
  note: `throughput per rank against ${baselineText(curves)}; whiskers: 95%, with an arrow where they leave the chart; hollow: labelled, no scaling result`,
  figure: (point) => point.efficiency,
  yAxis: { name: `efficiency against ${baselineText(curves)}`, nameTextStyle: { align: "left" } },
  ideal: () => 1,
});

function speedupChart(curves) {
  const onNodes = curves.some((curve) => curve.perNode);
  const speedup = viewOf("speedup");
  return {
    id: "speedup", ...speedup, title: `${speedup.title}${onNodes ? " over one node" : ""}`,
    note: "throughput against the baseline's, times its ranks; dashed: ideal",
    switches: [scales("log", "linear")],
    figure: (point) => point.speedup,
    axis: String, yAxis: { logBase: 2 },
    ideal: onNodes ? undefined : (n) => n,
  };
}

/** Describes a chart for each unit of throughput: tokens and samples cannot share an axis. */
function throughputCharts(curves) {
  const units = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.unit)))];
  return units.map((unit, i) => ({
    id: i === 0 ? "throughput" : `throughput-${i}`, title: `${viewOf("throughput").title}, ${unit || "work/s"}`,
    switches: [scales("linear", "log")],
    curves: curves.filter((curve) => curve.points.some((point) => point.unit === unit)),
    figure: (point) => point.throughput,
    text: (value) => si(value, unit),
    axis: (value) => si(value),
  }));
}

export function curvesBlocks({ curves: all }) {
  const curves = all.filter((curve) => curve.points.length > 0);
  const items = curves.flatMap((curve) => curve.points.map((point) => ({ curve: curve.short, ...point })));
  const scaling = items.some((point) => point.efficiency.value !== null) ? [efficiencyChart(curves), speedupChart(curves)] : [];
  const charts = [...scaling, ...throughputCharts(curves)].map(({ curves: shown = curves, ...spec }) => overRanks({
    table: { columns: curveColumns, items }, lines: shown.map(({ short, points }) => ({ name: short, points })),
    // A point with a label says little about scaling, for example if its ranks share cores.
    isHollow: (point) => point.labels.length > 0,
    ...spec,
  }));
  return [{ charts }];
}

const pointsText = ({ ok, failed, skipped }) => joined([`${ok} ok`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]);

const indexColumns = columns("experiment", "created:nowrap, file, machine",
  { experiment: (at) => joined([at.workload, at.model, at.dtype, at.scaling].filter((part) => part !== "none")) },
  "ranks, nodes, throughput, unit=throughput.unit, efficiency", { verified: (at) => (at.verified === null ? null : at.verified ? "yes" : "no") },
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
    const run = runs.find((at) => at.id === id);
    const { throughput } = run.experiments.findLast((at) =>
      at.fingerprint === trend.fingerprint && at.ranks === trend.ranks && at.throughput.unit === trend.unit);
    return { x: Date.parse(run.created), y: throughput.value / trend.median, throughput, version: run.isoscale_version };
  });
  return linesChart({
    id: `over-time-${i}`, title: machine.name,
    note: "throughput over the experiment's median, by when the run began; labelled points are left out. Whether a change is established: isoscale compare",
    table: { columns: trendColumns, items: trends }, x: { type: "time" },
    y: { scale: true, format: axisPercent },
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

export const overTimeBlocks = ({ index, machines }) => [{ charts: machines.map((machine, i) => overTime(machine, i, index)) }];

const launchColumns = columns("point", "launch:count", column("created", (run) => dateText(run.created), { form: "nowrap" }),
  "file, status:nowrap, ranks, nodes, Isoscale=isoscale_version, git:nowrap=system.git_hash, warnings:count=warnings.length, id:nowrap");

/** Returns the joined points that several launches measured, each with its curve's name. */
const repeated = (report, names) => report.curves.flatMap((of, c) =>
  of.points.filter((point) => point.launches.length > 1).map((point) => ({ ...point, curve: names[c] })));

const spreadColumns = columns("point", "curve, ranks, launches:count=launches.length, step_time~",
  "fastest:seconds=step_time.min, slowest:seconds=step_time.max, spread", labels);

/** Returns a launch's median step time at each point, divided by that of all launches, minus 1. */
const itemsOf = (run, found) => found.flatMap(({ step_time: { median }, launches }, y) => {
  const own = launches.filter((at) => at.run === run && at.step_time.median !== null && median > 0);
  return own.map(({ step_time: at }) => ({
    x: at.median / median - 1, y, time: at,
    interval: at.lower === null || at.upper === null ? null : [at.lower / median - 1, at.upper / median - 1],
  }));
});

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
  if (!widest) return `${launches}, ${counted(curves.length, "curve")}`;
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
