// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Provides the data of the page (written by analysis/page/page_data.cpp), and views of it that sections share.
import { groupBy, ranksText } from "./format.js";

/** One point of a curve, of one launch or of several: ranks; nodes; stepTime {median, lower, upper} in seconds; throughput,
 * in `unit`; speedup and efficiency (1 = ideal) with speedupInterval and efficiencyInterval [lower, upper], null where not
 * known; labels; status; reason; full: the point of the JSON report (breakdown, waterfall, pop, ...), for several launches
 * that of the typical launch, with losses relative to the joined curve's baseline; launch: number, from 1, of the typical
 * launch if there are several; launches: their number; details: series for charts, or null. */

/** A curve: title; short: the title for legends, without the parts that all titles share; baseline: rank count of the point
 * that the others are compared with, or null; baselineName: the baseline as text, "1 rank", or null; perNode: true if the
 * baseline is one node, and scaling is counted in nodes; points: those that were measured; skipped: the others. */

export const data = JSON.parse(document.getElementById("data").textContent);
/** Returns the object's own property; `name` may be that of an inherited one: "constructor". */
export const ownOf = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/** Returns a point of the report as a Point; `full` is the point of the launch `runIndex`. */
const viewOf = (point, full, runIndex) => ({
  ranks: full.ranks, nodes: full.nodes, labels: point.labels, status: full.status, reason: full.reason ?? "", full,
  stepTime: point.step_time, throughput: point.throughput.value, unit: point.throughput.unit ?? "",
  speedup: point.speedup, speedupInterval: point.speedup_interval, efficiency: point.efficiency,
  // A joined point has only an interval of its speed-up; that of its efficiency follows.
  efficiencyInterval: point.efficiency_interval
    ?? (point.speedup_interval && point.efficiency ? point.speedup_interval.map((at) => at / (point.speedup / point.efficiency)) : null),
  launch: point.launch, launches: point.launches?.length ?? 1,
  details: (data.details ?? []).find((at) => at.run === runIndex && at.point === full.index) ?? null,
});

// The joined point has values of its own under these keys; all other values are those of its typical launch. Its causes are
// relative to the baseline of the joined curve.
const joinedKeys = ["traced_step", "breakdown", "hidden_communication", "breakdown_missing", "waterfall", "pop", "serial_fraction"];

function ofLaunches(report, point) {
  const typical = point.launches.find((at) => at.typical) ?? point.launches[0];
  const runIndex = report.runs.findIndex((run) => run.id === typical.run);
  // A page of very many launches lacks the points of some; the joined point replaces them.
  const own = report.runs[runIndex].points.find((at) => at.index === typical.index)
    ?? { ...point, index: typical.index, status: "ok", verified: typical.verified, flags: [], findings: [] };
  return viewOf(point, { ...own, ...Object.fromEntries(joinedKeys.map((key) => [key, point[key]])) }, runIndex);
}

/** Returns the titles without the words that all of them share. */
export function shortTitles(titles) {
  const parts = titles.map((title) => title.split(", "));
  const shared = parts[0]?.filter((part) => parts.every((of) => of.includes(part))) ?? [];
  const short = parts.map((of) => of.filter((part) => !shared.includes(part)).join(", "));
  const isTold = titles.length > 1 && new Set(short).size === titles.length && !short.includes("");
  // "strong scaling, schedule=gpipe" is shortened to "strong, gpipe" without loss.
  return (isTold ? short : titles).map((name) => name.replace(/\b(strong|weak) scaling\b/, "$1").replace(/\bschedule=/, ""));
}

/** Returns the titles, with a number after each one that occurs several times. */
export const distinct = (titles) => titles.map((title, i) => {
  const before = titles.slice(0, i).filter((other) => other === title).length;
  return before === 0 ? title : `${title} (${before + 1})`;
});

const curve = (source, points) => ({
  title: source.title, baseline: source.baseline, baselineName: source.baseline_name,
  perNode: source.baseline_unit === "node",
  points: points.filter((point) => point.status === "ok"),
  skipped: points.filter((point) => point.status !== "ok"),
});

/** Returns the curves of a report. */
export function curves(report = data.report) {
  const ofRun = (run, i) => run.curves.map((at) =>
    curve(at, at.points.map((index) => run.points.find((point) => point.index === index)).map((point) => viewOf(point, point, i))));
  const joinedOf = (at) => curve(at, at.points.map((point) => ofLaunches(report, point)));
  const all = report.runs.length > 1 ? report.curves.map(joinedOf) : report.runs.flatMap(ofRun);
  const names = distinct(shortTitles(all.map((at) => at.title)));
  return all.map((at, i) => ({ ...at, short: names[i] }));
}

/** Returns the launches that were traced: "traced in launch 2 (1, 4 ranks), launch 3 (2 ranks)"; "" for a single launch. */
export function launchesText(points) {
  const launches = groupBy(points.filter(({ launch }) => launch), ({ launch }) => launch);
  const one = ([launch, all]) => `launch ${launch}${launches.size > 1 ? ` (${ranksText(all.map(({ ranks }) => ranks))})` : ""}`;
  return launches.size === 0 ? "" : `traced in ${[...launches].sort(([a], [b]) => a - b).map(one).join(", ")}`;
}

/** Returns the points of micro-benchmarks: {run, point}. */
export function benches(report = data.report) {
  return report.runs.flatMap((run) => run.points.filter((point) => point.rows.length > 0).map((point) => ({ run, point })));
}

/** The labels of points whose times do not represent the machine. */
export const unsound = ["oversubscribed", "shared-gpu", "injected"];
