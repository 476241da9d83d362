// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Provides the data of the page, which analysis/page/page.cpp writes, in forms that sections share.
import { counted, dotted, joined, listed, memory as memoryText, ranksText } from "./format.js";
import { distinctOf, groupBy, naturally } from "./lists.js";

/** A point of a curve, as curves() below returns it; comments call it a Point. It is from one
 * launch or joined over several. For a joined point, the typical launch is the one whose step time
 * is nearest to the median over launches. The keys of a Point:
 * - ranks, nodes, mesh, labels, status, reason
 * - step_time: {median, lower, upper} in seconds
 * - throughput (in `unit`), speedup and efficiency (1 = ideal): {value, lower, upper}, null where
 *   not known
 * - full: the point of the JSON report (breakdown, waterfall, pop, ...). For several launches, it
 *   is that of the typical launch, with losses relative to the joined curve's baseline.
 * - launches: the number of launches
 * - launch: the typical launch's number, from 1, if there are several launches
 * - details: series for charts, or null */

/** A curve, as curves() below returns it, has these keys:
 * - title
 * - short: the title for legends, without the parts that all titles share
 * - baseline: the rank count of the point with which the others are compared, or null
 * - baselineName: the baseline as text, "1 rank", or null
 * - perNode: true if the baseline is one node, so that scaling is counted in nodes
 * - points: the points whose status is ok
 * - skipped: the other points, which failed or were skipped */

export const data = JSON.parse(document.getElementById("data").textContent);
/** Returns the object's own property, or undefined: an inherited one, such as "constructor", does
 * not count. */
export const ownOf = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/** Returns {value, lower, upper} from a value and its interval `ends`, which is [lower, upper] or
 * null. */
export const located = (value, ends) => ({ value, lower: ends?.[0] ?? null, upper: ends?.[1] ?? null });
/** Returns a rate with its interval, which follows from the interval of the step time, since the
 * work of a step is fixed. */
export const rateOf = (rate, { median, lower, upper }) =>
  located(rate, lower && upper ? [(rate * median) / upper, (rate * median) / lower] : null);

/** Makes a Point (described above) from a point of the report; `full` is the point of the launch
 * with the index `runIndex`. */
const viewOf = (point, full, runIndex) => ({
  ranks: full.ranks, nodes: full.nodes, mesh: full.mesh, labels: point.labels, status: full.status, reason: full.reason ?? "", full,
  step_time: point.step_time, throughput: rateOf(point.throughput.value, point.step_time), unit: point.throughput.unit ?? "",
  speedup: located(point.speedup, point.speedup_interval),
  // For a joined point, the report has an interval only for the speed-up. The interval of the
  // efficiency follows from it.
  efficiency: located(point.efficiency, point.efficiency_interval
    ?? (point.efficiency ? point.speedup_interval?.map((at) => at / (point.speedup / point.efficiency)) : null)),
  launch: point.launch, launches: point.launches?.length ?? 1,
  details: (data.details ?? []).find((at) => at.run === runIndex && at.point === full.index) ?? null,
});

// The keys of `full` (see viewOf()) whose values are those of the joined point itself. For all
// other keys, `full` has the values of the typical launch. Lost time (waterfall) is against the
// baseline of the joined curve.
const joinedKeys = ["traced_step", "breakdown", "hidden_communication", "hidden_transfer", "breakdown_missing", "waterfall", "pop", "serial_fraction"];

function ofLaunches(report, point) {
  const typical = point.launches.find((at) => at.typical) ?? point.launches[0];
  const runIndex = report.runs.findIndex((run) => run.id === typical.run);
  // A page of very many launches lacks the points of some launches; the joined point replaces such
  // a point.
  const own = report.runs[runIndex].points.find((at) => at.index === typical.index)
    ?? { ...point, index: typical.index, status: "ok", verified: typical.verified, flags: [], findings: [] };
  return viewOf(point, { ...own, ...Object.fromEntries(joinedKeys.map((key) => [key, point[key]])) }, runIndex);
}

/** Returns the titles without the parts that all of them share, if the rest still tells them
 * apart. */
export function shortTitles(titles) {
  const parts = titles.map((title) => title.split(", "));
  const shared = parts[0]?.filter((part) => parts.every((of) => of.includes(part))) ?? [];
  const short = parts.map((of) => of.filter((part) => !shared.includes(part)).join(", "));
  const isTold = titles.length > 1 && new Set(short).size === titles.length && !short.includes("");
  // "strong scaling, schedule=gpipe" becomes "strong, gpipe".
  return (isTold ? short : titles).map((name) => name.replace(/\b(strong|weak) scaling\b/, "$1").replace(/\bschedule=/, ""));
}

/** Returns the titles, with a number after each title that occurred before. */
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

/** Returns the launches in which points were traced: "traced in launch 2 (1, 4 ranks), launch 3 (2
 * ranks)"; "" for a single launch. */
export function launchesText(points) {
  const launches = groupBy(points.filter(({ launch }) => launch), ({ launch }) => launch);
  const one = ([launch, all]) => `launch ${launch}${launches.size > 1 ? ` (${ranksText(all.map(({ ranks }) => ranks))})` : ""}`;
  return launches.size === 0 ? "" : `traced in ${[...launches].sort(([a], [b]) => a - b).map(one).join(", ")}`;
}

/** Returns the points that have rows of micro-benchmarks as {run, point}. */
export const benches = (report = data.report) =>
  report.runs.flatMap((run) => run.points.filter((point) => point.rows.length > 0).map((point) => ({ run, point })));
/** The labels of points whose times do not represent the machine. */
export const unsound = ["oversubscribed", "shared-gpu", "injected"];
/** True if a point has such a label. */
export const isUnsound = ({ labels }) => labels.some((label) => unsound.includes(label));
/** Returns the kinds of ranks of a run: the ranks of one kind have equal facts, except those that
 * differ from rank to rank (such as the UUID of a GPU). */
export const kindsOf = (run) => run.system?.kinds ?? [];

/** Returns the size of the machine as text: "8 nodes x 8 GPUs", with a multiplication sign, or "10
 * ranks on 3 nodes" if the number of ranks per node is not whole. */
function shape(run) {
  const perNode = run.ranks / run.nodes;
  const shares = () => run.points.some((point) => point.labels.includes("shared-gpu"));
  const unit = run.device === "cuda" && !shares() ? "GPU" : "rank";
  if (!Number.isInteger(perNode)) return `${counted(run.ranks, unit)} on ${counted(run.nodes, "node")}`;
  return `${counted(run.nodes, "node")} \u00d7 ${counted(perNode, unit)}`;
}

/** Returns the models of the GPUs, or of the CPUs if there are none, as text: "A and B", or "3
 * kinds" if there are more than two. */
function models(run) {
  const named = (key) => distinctOf(kindsOf(run).map((kind) => kind.text[key]));
  const gpus = run.device === "cuda" ? named("gpu_name") : [];
  const all = gpus.length > 0 ? gpus : named("cpu_model");
  return all.length > 2 ? `${all.length} kinds` : all.join(" and ");
}

function nodeText(kind) {
  const { cores, memory_total: memory } = kind.number;
  return joined([kind.text.cpu_model, cores ? counted(cores, "core") : "", memory ? memoryText(memory) : ""]);
}

/** Returns the names of the hosts: "a, b, c and 5 more". */
export function hostsText(kinds, most = 3) {
  const hosts = distinctOf(kinds.flatMap((kind) => kind.hosts)).sort(naturally);
  const more = hosts.length - most + kinds.reduce((sum, kind) => sum + (kind.more_hosts ?? 0), 0);
  return hosts.slice(0, most).join(", ") + (hosts.length > most || more > 0 ? ` and ${Math.max(more, 0)} more` : "");
}

/** Returns the description of the device without the name of its model, which is already in the
 * title. */
function driver(run, model) {
  const detail = run.system?.device_detail ?? "";
  return model && detail.startsWith(model) ? detail.slice(model.length).replace(/^[,\s]+/, "") : detail;
}

/** Describes the machine of a run in words, as {title, details}; `details` is a list. */
export function machineOf(run) {
  const kinds = kindsOf(run);
  const model = models(run);
  const nodes = distinctOf(kinds.map(nodeText));
  return {
    title: shape(run) + (model ? `, ${model}` : ""),
    details: [
      kinds.length > 0 ? hostsText(kinds) : "",
      nodes.length === 1 ? nodes[0] : nodes.length > 1 ? `${nodes.length} kinds of node` : "",
      driver(run, model),
      (run.system?.mpi_library ?? "").split(",")[0],
    ].filter(Boolean),
  };
}

/** Returns a time such as "2026-11-21 23:36 UTC"; other texts are returned unchanged. */
export function dateText(created) {
  const at = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(\.\d+)?)?Z$/.exec(created ?? "");
  return at ? `${at[1]} ${at[2]} UTC` : created ?? "";
}

/** Returns a period from one time to another: "2026-11-21 23:40 to 23:41 UTC", or "2026-11-21 to
 * 2026-11-23". */
export function periodText(first, last) {
  const [from, to] = [first, last].map(dateText);
  if (from === to) return from;
  const [[day, time], [lastDay, lastTime]] = [from, to].map((text) => text.split(" "));
  return day === lastDay ? `${day} ${time} to ${lastTime} UTC` : `${day} to ${lastDay}`;
}

/** Returns the line of saved pictures that says where their numbers come from: the machines, dates,
 * files and version of the launches, or the machine and the source of a prediction. */
export function sourceText() {
  const { report, compare, prediction } = data;
  if (prediction) return dotted(prediction.machine, `predicted from ${prediction.source}`);
  const launches = compare ? compare.sides.flatMap((side) => side.launches) : report.runs ?? report.index;
  const machines = compare ? compare.sides.flatMap((side) => side.machines)
    : launches.map((run) => run.machine ?? machineOf(run).title);
  const dates = launches.map((at) => at.created).sort();
  return dotted(listed(distinctOf(machines), 3), dates.length > 0 && periodText(dates[0], dates.at(-1)),
    listed(distinctOf(launches.map((at) => at.file)), 3), `Isoscale ${data.isoscale_version}`);
}
