// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the machine, command and software of each launch: enough to repeat it.
import { data, ownOf } from "../data.js";
import { copyButton, el } from "../dom.js";
import { counted, joined, missing, si } from "../format.js";
import { dateText, kindsOf, naturally } from "../machine.js";
import { oneOf } from "../select.js";
import { words } from "../table.js";

const command = (line) => (line ? [el("code", {}, line), " ", copyButton("copy", () => line)] : missing);

const factUnits = [[/memory/, "B"], [/clock/, "Hz"], [/power/, "W"], [/bandwidth/, "B/s"]];

/** Returns a fact of a kind of node as text; null if it is not known. */
function factOf(kind, name) {
  const number = ownOf(kind.number, name);
  const unit = factUnits.find(([pattern]) => pattern.test(name))?.[1];
  return ownOf(kind.text, name) ?? (typeof number !== "number" ? null : unit ? si(number, unit) : String(number));
}

function hostsOf(kind) {
  const more = kind.more_hosts > 0 ? ` and ${kind.more_hosts} more` : "";
  return kind.hosts.length > 0 ? [...kind.hosts].sort(naturally).join(", ") + more : null;
}

/** Returns a table with a column for each kind of node, and a row for each fact. */
function kindsTable(run) {
  const kinds = kindsOf(run);
  const names = [...new Set(kinds.flatMap((kind) => [...Object.keys(kind.text), ...Object.keys(kind.number)]))];
  const value = (kind) => (name) => (name === null ? hostsOf(kind) : factOf(kind, name));
  return {
    columns: [words("fact", (name) => name?.replaceAll("_", " ") ?? "hosts"),
      ...kinds.map((kind) => words(`ranks ${kind.ranks}${kinds.length === 1 ? "" : ` (${kind.count})`}`, value(kind), "long"))],
    items: [null, ...names],
    caption: kinds.length === 1 ? "Nodes: all ranks alike" : `Nodes: ${kinds.length} kinds of ranks`,
  };
}

const environmentColumns = [words("variable", ([name]) => name), words("value", ([, value]) => value, "long")];

function launch(run) {
  const system = run.system ?? {};
  const environment = Object.entries(system.environment ?? {});
  return [
    { facts: [
      ["file", run.file], ["id", run.id], ["created", dateText(run.created)],
      ["status", run.status === "partial" ? "partial: it did not come to its end" : run.status],
      ["command", command(system.command_line)],
      ["Isoscale", joined([run.isoscale_version, system.git_hash && `git ${system.git_hash}`])],
      ["build", joined([system.compiler, system.build_type]) || missing],
      ["device", joined([run.device, system.device_detail])],
      ["MPI", system.mpi_library],
      ["size", `${run.ranks} ranks on ${counted(run.nodes, "node")}`]] },
    { tables: [
      kindsOf(run).length > 0 && kindsTable(run),
      environment.length > 0 && { columns: environmentColumns, items: environment, caption: "Environment that was kept" }] },
  ];
}

/** Makes the section that says where the numbers come from; every report has it. */
export function provenanceSection() {
  const { runs } = data.report;
  return {
    id: "provenance",
    title: "Provenance",
    blocks: [oneOf("launch", runs.map((run) => `${run.file}, ${dateText(run.created)}`), (i) => launch(runs[i]))],
  };
}
