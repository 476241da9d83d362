// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Describes in words on which machine and when a run was made.
import { data } from "./data.js";
import { counted, distinctOf, dotted, joined, listed, memory as memoryText } from "./format.js";

/** Returns the kinds of nodes of a run; the ranks of one kind have equal facts. */
export const kindsOf = (run) => run.system?.kinds ?? [];

/** Returns the size of the machine: "8 nodes \u00d7 8 GPUs". */
function shape(run) {
  const perNode = run.ranks / run.nodes;
  const shares = () => run.points.some((point) => point.labels.includes("shared-gpu"));
  const unit = run.device === "cuda" && !shares() ? "GPU" : "rank";
  if (!Number.isInteger(perNode)) return `${counted(run.ranks, unit)} on ${counted(run.nodes, "node")}`;
  return `${counted(run.nodes, "node")} \u00d7 ${counted(perNode, unit)}`;
}

/** Returns the models of the GPUs, or of the CPUs if there are none. */
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

/** Compares names so that node2 is before node10. */
export const naturally = (a, b) => a.localeCompare(b, "en", { numeric: true });

/** Returns the names of the hosts: "a, b, c and 5 more". */
export function hostsText(kinds, most = 3) {
  const hosts = distinctOf(kinds.flatMap((kind) => kind.hosts)).sort(naturally);
  const more = hosts.length - most + kinds.reduce((sum, kind) => sum + (kind.more_hosts ?? 0), 0);
  return hosts.slice(0, most).join(", ") + (hosts.length > most || more > 0 ? ` and ${Math.max(more, 0)} more` : "");
}

/** Returns the device's driver and libraries, without its model, which is already in the title. */
function driver(run, model) {
  const detail = run.system?.device_detail ?? "";
  return model && detail.startsWith(model) ? detail.slice(model.length).replace(/^[,\s]+/, "") : detail;
}

/** Returns the machine of a run in words: {title, details[]}. */
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

/** Returns a period from one time to another: "2026-11-21 23:40 to 23:41 UTC". */
export function periodText(first, last) {
  const from = dateText(first);
  const to = dateText(last);
  if (from === to) return from;
  const [day, time] = from.split(" ");
  const [lastDay, lastTime] = to.split(" ");
  return day === lastDay ? `${day} ${time} to ${lastTime} UTC` : `${day} to ${lastDay}`;
}

/** Returns the source of saved pictures: "2 nodes \u00d7 8 GPUs, H100 \u00b7 2026-11-21 23:36 UTC \u00b7 run.h5". */
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
