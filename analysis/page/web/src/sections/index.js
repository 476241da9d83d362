// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The index of several runs: what each ran, by machine, and how throughput moved over time.
import { percent, si } from "../format.js";
import { dateText } from "../machine.js";
import { table } from "../table.js";

const nowrap = () => "nowrap";

const columns = [
  { title: "created", look: nowrap },
  { title: "machine" },
  { title: "experiment" },
  { title: "ranks", number: true },
  { title: "nodes", number: true },
  { title: "throughput", number: true, text: (value) => si(value) },
  { title: "unit" },
  { title: "efficiency", number: true, text: (value) => percent(value) },
  { title: "verified" },
  { title: "points", look: nowrap },
  { title: "labels" },
  { title: "file" },
];

const verdicts = new Map([[true, "yes"], [false, "no"]]);

function pointsText({ ok, failed, skipped }) {
  return [`${ok} ok`, failed > 0 ? `${failed} failed` : "", skipped > 0 ? `${skipped} skipped` : ""].filter(Boolean).join(", ");
}

function rowsOf(run) {
  return run.experiments.map((of) => [
    dateText(run.created), run.machine, [of.workload, of.model, of.dtype, of.scaling].filter((part) => part && part !== "none").join(", "),
    of.ranks, of.nodes, of.throughput.value, of.throughput.unit, of.efficiency, verdicts.get(of.verified) ?? null,
    pointsText(of.points), of.labels.join(" "), run.file,
  ]);
}

const trendColumns = [
  { title: "machine" }, { title: "experiment" }, { title: "ranks", number: true }, { title: "runs", number: true },
  { title: "from", look: nowrap }, { title: "to", look: nowrap },
  ...["first", "last", "median", "lowest", "highest"].map((title) => ({ title, number: true, text: (value) => si(value) })),
  { title: "unit" }, { title: "spread", number: true, text: (value) => percent(value) },
];

function trendRows(machine) {
  return machine.throughput_over_time.map((at) => [machine.name, at.title, at.ranks, at.runs.length, dateText(at.from), dateText(at.to),
    at.first, at.last, at.median, at.min, at.max, at.unit, at.spread]);
}

/** Tables of the index, [] without one. */
export function indexTables(report) {
  const rows = (report.index ?? []).flatMap(rowsOf);
  const trends = (report.machines ?? []).flatMap(trendRows);
  const unreadable = (report.unreadable ?? []).map((at) => [at.file, at.reason]);
  return [
    rows.length > 0 ? table(columns, rows, { caption: "Index: each experiment of each run, on most ranks" }) : null,
    trends.length > 0 ? table(trendColumns, trends, { caption: "Throughput over time" }) : null,
    unreadable.length > 0 ? table([{ title: "file" }, { title: "why it could not be read", look: () => "long" }], unreadable, { caption: "Not read" }) : null,
  ];
}
