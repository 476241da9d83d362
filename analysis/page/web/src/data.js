// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Provides the data of the page, which analysis/page/page.cpp writes, in forms that sections share,
// and the functions that select and group its items.
import { counted, dotted, joined, known, listed, memory as memoryText, ranksText } from "./format.js";

/** A point of a curve, as curves() below returns it; comments call it a Point. It is from one
 * launch or joined over several. For a joined point, the typical launch is the one whose step time
 * is nearest to the median over launches. The keys of a Point:
 * - ranks, nodes, mesh, labels, status, reason
 * - step_time: {median, lower, upper} in seconds
 * - throughput (in `unit`), speedup and efficiency (1 = ideal): {value, lower, upper}, null where
 *   not known
 * - full: the point of the JSON report (breakdown, waterfall, pop, ...). For several launches, it
 *   is that of the typical launch, with losses relative to the joined curve's baseline.
 * - launches: their number; and launch: the typical one's number, from 1, if there are several
 * - details: series for charts, or null */

/** A curve, as curves() below returns it, has these keys:
 * - title; and short, for legends, without the parts that all titles share
 * - baseline: the rank count of the point with which the others are compared, or null
 * - baselineName: the baseline as text, "1 rank", or null
 * - perNode: true if the baseline is one node, so that scaling is counted in nodes
 * - points, whose status is ok; and skipped: the others, which failed or were skipped */

export const data = JSON.parse(document.getElementById("data").textContent);
/** Returns the object's own property, not an inherited one such as "constructor"; or undefined. */
export const ownOf = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/** Returns the distinct values in their order, without null, undefined and "". */
export const distinctOf = (values) => [...new Set(values.filter((value) => value !== null && value !== undefined && value !== ""))];

/** Returns the median of the known values; null if no value is known. */
export function median(values) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return null;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Groups the items by key; returns a Map, with keys in the order in which they first occur. */
export function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** Returns the first of the items with the largest `value`; undefined if no value is known. */
export const largestBy = (items, value) =>
  items.filter((item) => known(value(item))).reduce((best, item) => (best && value(best) >= value(item) ? best : item), undefined);

/** Returns {value, lower, upper} from a value and its interval [lower, upper], or null. */
export const located = (value, ends) => ({ value, lower: ends?.[0] ?? null, upper: ends?.[1] ?? null });
/** Returns a rate with its interval, from that of the step time: their product is constant. */
export const rateOf = (rate, { median, lower, upper }) =>
  located(rate, lower && upper ? [(rate * median) / upper, (rate * median) / lower] : null);

/** Makes a Point from a point of the report; `full` is that point of the launch runs[runIndex]. */
const viewOf = (point, full, runIndex) => ({
  ranks: full.ranks, nodes: full.nodes, mesh: full.mesh, labels: point.labels, status: full.status, reason: full.reason ?? "", full,
  step_time: point.step_time, throughput: rateOf(point.throughput.value, point.step_time), unit: point.throughput.unit ?? "",
  speedup: located(point.speedup, point.speedup_interval),
  // A joined point has an interval only for its speed-up; that of the efficiency follows from it.
  efficiency: located(point.efficiency, point.efficiency_interval
    ?? (point.efficiency ? point.speedup_interval?.map((at) => at / (point.speedup / point.efficiency)) : null)),
  launch: point.launch, launches: point.launches?.length ?? 1,
  details: (data.details ?? []).find((at) => at.run === runIndex && at.point === full.index) ?? null,
});

// The keys of `full` (see viewOf()) whose values are those of the joined point itself, not of the
// typical launch. Lost time (waterfall) is against the baseline of the joined curve.
const joinedKeys = ["traced_step", "breakdown", "hidden_communication", "hidden_transfer", "breakdown_missing", "waterfall", "pop", "serial_fraction"];

function ofLaunches(point) {
  const { runs } = data.report;
  const typical = point.launches.find((at) => at.typical) ?? point.launches[0];
  const runIndex = runs.findIndex((run) => run.id === typical.run);
  // A page of very many launches lacks the points of some; the joined point replaces them.
  const own = runs[runIndex].points.find((at) => at.index === typical.index)
    ?? { ...point, index: typical.index, status: "ok", verified: typical.verified, flags: [], findings: [] };
  return viewOf(point, { ...own, ...Object.fromEntries(joinedKeys.map((key) => [key, point[key]])) }, runIndex);
}

/** Returns the titles without the parts that all share, if they are then still distinct. */
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
  title: source.title, baseline: source.baseline, baselineName: source.baseline_name, perNode: source.baseline_unit === "node",
  points: points.filter((point) => point.status === "ok"),
  skipped: points.filter((point) => point.status !== "ok"),
});

/** Returns the curves of the report. */
export function curves() {
  const { runs, curves: joinedCurves } = data.report;
  const ofRun = (run) => run.curves.map((at) =>
    curve(at, at.points.map((index) => run.points.find((point) => point.index === index)).map((point) => viewOf(point, point, 0))));
  const all = runs.length > 1 ? joinedCurves.map((at) => curve(at, at.points.map(ofLaunches))) : runs.flatMap(ofRun);
  const names = distinct(shortTitles(all.map((at) => at.title)));
  return all.map((at, i) => ({ ...at, short: names[i] }));
}

/** Returns "traced in launch 2 (1, 4 ranks), launch 3 (2 ranks)"; "" for a single launch. */
export function launchesText(points) {
  const launches = groupBy(points.filter(({ launch }) => launch), ({ launch }) => launch);
  const one = ([launch, all]) => `launch ${launch}${launches.size > 1 ? ` (${ranksText(all.map(({ ranks }) => ranks))})` : ""}`;
  return launches.size === 0 ? "" : `traced in ${[...launches].sort(([a], [b]) => a - b).map(one).join(", ")}`;
}

/** Returns the points that have rows of micro-benchmarks as {run, point}. */
export const benches = () =>
  data.report.runs.flatMap((run) => run.points.filter((point) => point.rows.length > 0).map((point) => ({ run, point })));
/** The labels of points whose times do not represent the machine. */
export const unsound = ["oversubscribed", "shared-gpu", "injected"];
/** True if a point has one of the labels in `unsound`. */
export const isUnsound = ({ labels }) => labels.some((label) => unsound.includes(label));
/** Maps a cause of lost time to the part of a step whose colour it has, and to its meaning
 * (docs/breakdown.md). */
const causes = {
  "GEMM overlap": ["compute", "GEMMs are slower while communication runs"],
  GEMMs: ["compute", "GEMMs take longer than the baseline's share: smaller shapes, lower clocks, shared memory"],
  "other compute": ["compute", "element-wise ops, casts, the optimizer"],
  copies: ["copies", "copies between memories"],
  communication: ["transfer", "transfer and wait that no computation hides"],
  bubble: ["bubble", "idle time that follows from the pipeline schedule"],
  imbalance: ["wait", "waiting for ranks that are consistently late"],
  noise: ["wait", "waiting for ranks that are occasionally late"],
  waiting: ["wait", "waiting for other ranks"],
  gap: ["gap", "nothing was issued"],
  other: ["other", "time that no category explains"],
  "uneven steps": ["other", "the step takes as long as its slowest rank"],
  untraced: ["other", "difference between untraced and traced steps"],
  "beyond the model": ["other", "difference between the simulated and the measured baseline"],
};
const causeOf = (cause) => ownOf(causes, cause)
  ?? (cause.endsWith(" transfer") ? ["transfer", "transfers that no computation hides"] : ["other", ""]);
export const partOfCause = (cause) => causeOf(cause)[0];
/** Returns the meaning of a cause in a few words; "" if the cause is unknown. */
export const meaning = (cause) => causeOf(cause)[1];

/** Returns the losses of a point, largest first, as {cause, seconds, share of the measured step};
 * [] without a waterfall (lost time by cause), as for the baseline. */
export function lossesOf(point) {
  const waterfall = point.full.waterfall;
  if (!waterfall || !(waterfall.measured > 0)) return [];
  return Object.entries(waterfall.lost)
    .map(([cause, seconds]) => ({ cause, seconds, share: seconds / waterfall.measured }))
    .sort((a, b) => b.seconds - a.seconds);
}

/** The entry of a waterfall for the difference of traced and untraced steps, which is no cause. */
export const tracing = "untraced";
/** False if the report says that the causes do not add up to the loss; they are then not shown. */
export const explains = (point) => point.full.waterfall?.explains !== false;
/** Returns the measured point with the largest rank count; undefined if none was measured. */
export const largest = (points) => largestBy(points, ({ ranks }) => ranks);
/** True if the times of a point represent the machine: it has no label that says otherwise, and its
 * results were right or not checked. Other comments call such a point sound. */
export const isSound = (point) => !isUnsound(point) && point.full.verified !== false;
/** Returns the largest sound point (isSound()), or else the largest, by which a curve is judged. */
export const headlineOf = (points) => largest(points.filter(isSound)) ?? largest(points);

/** Returns the kinds of ranks of a run: the ranks of one kind have equal facts, except those that
 * differ from rank to rank (such as the UUID of a GPU). */
export const kindsOf = ({ system }) => system.kinds;

/** Returns the size of the machine: "8 nodes x 8 GPUs", or "10 ranks on 3 nodes" if uneven. */
function shape(run) {
  const perNode = run.ranks / run.nodes;
  const isShared = run.points.some((point) => point.labels.includes("shared-gpu"));
  const unit = run.device === "cuda" && !isShared ? "GPU" : "rank";
  if (!Number.isInteger(perNode)) return `${counted(run.ranks, unit)} on ${counted(run.nodes, "node")}`;
  return `${counted(run.nodes, "node")} \u00d7 ${counted(perNode, unit)}`;
}

/** Returns the models of the GPUs, or else of the CPUs, as text: "A and B" or "3 kinds". */
function models(run) {
  const named = (key) => distinctOf(kindsOf(run).map((kind) => kind.text[key]));
  const gpus = run.device === "cuda" ? named("gpu_name") : [];
  const all = gpus.length > 0 ? gpus : named("cpu_model");
  return all.length > 2 ? `${all.length} kinds` : all.join(" and ");
}

const nodeText = ({ text: { cpu_model: cpu }, number: { cores, memory_total: memory } }) =>
  joined([cpu, cores && counted(cores, "core"), memory && memoryText(memory)]);

/** Returns the names of the hosts: "a, b, c and 5 more". */
export function hostsText(kinds, most = 3) {
  const hosts = distinctOf(kinds.flatMap((kind) => kind.hosts)).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const more = hosts.length - most + kinds.reduce((sum, kind) => sum + kind.more_hosts, 0);
  return hosts.slice(0, most).join(", ") + (hosts.length > most || more > 0 ? ` and ${Math.max(more, 0)} more` : "");
}

/** Describes the machine of a run in words, as {title, details}; `details` is a list. */
export function machineOf(run) {
  const kinds = kindsOf(run);
  const model = models(run);
  const nodes = distinctOf(kinds.map(nodeText));
  const device = run.system.device_detail ?? "";
  return {
    title: shape(run) + (model ? `, ${model}` : ""),
    details: [
      hostsText(kinds),
      nodes.length === 1 ? nodes[0] : nodes.length > 1 ? `${nodes.length} kinds of node` : "",
      // The model's name is in the title already.
      model && device.startsWith(model) ? device.slice(model.length).replace(/^[,\s]+/, "") : device,
      (run.system.mpi_library ?? "").split(",")[0],
    ].filter(Boolean),
  };
}

/** Returns a time such as "2026-11-21 23:36 UTC"; other texts are returned unchanged. */
export function dateText(created) {
  const at = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(\.\d+)?)?Z$/.exec(created ?? "");
  return at ? `${at[1]} ${at[2]} UTC` : created ?? "";
}

/** Returns "2026-11-21 23:40 to 23:41 UTC", or "2026-11-21 to 2026-11-23" for several days. */
export function periodText(first, last) {
  const [from, to] = [first, last].map(dateText);
  if (from === to) return from;
  const [[day, time], [lastDay, lastTime]] = [from, to].map((text) => text.split(" "));
  return day === lastDay ? `${day} ${time} to ${lastTime} UTC` : `${day} to ${lastDay}`;
}

/** Returns the line of saved pictures that says where their numbers come from. */
export function sourceText() {
  const { report, compare, prediction } = data;
  if (prediction) return dotted(prediction.machine, `predicted from ${prediction.source}`);
  const launches = compare ? compare.sides.flatMap((side) => side.launches) : data.kind === "index" ? report.index : report.runs;
  const machines = compare ? compare.sides.flatMap((side) => side.machines)
    : launches.map((run) => run.machine ?? machineOf(run).title);
  const dates = launches.map((at) => at.created).sort();
  return dotted(listed(distinctOf(machines), 3), dates.length > 0 && periodText(dates[0], dates.at(-1)),
    listed(distinctOf(launches.map((at) => at.file)), 3), `Isoscale ${data.isoscale_version}`);
}
