// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the machine, command and software of each launch: enough to repeat it.
import { data, ownOf } from "../data.js";
import { copyText, el } from "../dom.js";
import { counted, missing, si } from "../format.js";
import { dateText, kindsOf, naturally } from "../machine.js";
import { oneOf } from "../select.js";
import { table } from "../table.js";

function pair(name, value) {
  return el("div", { class: "fact-line" }, el("dt", {}, name), el("dd", {}, value ?? missing));
}

function command(line) {
  if (!line) return missing;
  const copy = el("button", { type: "button", class: "quiet", on: { click: async () => { await copyText(line); copy.textContent = "copied"; } } }, "copy");
  return [el("code", {}, line), " ", copy];
}

const long = () => "long";
const factUnits = [[/memory/, "B"], [/clock/, "Hz"], [/power/, "W"], [/bandwidth/, "B/s"]];

function factText(name, value) {
  const unit = factUnits.find(([pattern]) => pattern.test(name))?.[1];
  return unit ? si(value, unit) : String(value);
}

function hostsOf(kind) {
  const more = kind.more_hosts > 0 ? ` and ${kind.more_hosts} more` : "";
  return kind.hosts.length > 0 ? [...kind.hosts].sort(naturally).join(", ") + more : null;
}

/** Makes a column for each kind of node, and a row for each fact. */
function kindsTable(run) {
  const kinds = kindsOf(run);
  if (kinds.length === 0) return null;
  const names = [...new Set(kinds.flatMap((kind) => [...Object.keys(kind.text), ...Object.keys(kind.number)]))];
  const value = (kind, name) => ownOf(kind.text, name) ?? (Object.hasOwn(kind.number, name) && kind.number[name] !== null ? factText(name, kind.number[name]) : null);
  const columns = [{ title: "fact" }, ...kinds.map((kind) => ({ look: long, title: kinds.length === 1 ? `ranks ${kind.ranks}` : `ranks ${kind.ranks} (${kind.count})` }))];
  const rows = [["hosts", ...kinds.map(hostsOf)], ...names.map((name) => [name.replaceAll("_", " "), ...kinds.map((kind) => value(kind, name))])];
  return table(columns, rows, { caption: kinds.length === 1 ? "Nodes: all ranks alike" : `Nodes: ${kinds.length} kinds of ranks` });
}

function environmentTable(run) {
  const rows = Object.entries(run.system?.environment ?? {});
  return rows.length === 0 ? null : table([{ title: "variable" }, { title: "value", look: long }], rows, { caption: "Environment that was kept" });
}

function launch(run) {
  const system = run.system ?? {};
  return [
    el("dl", { class: "lines" },
      pair("file", run.file), pair("id", run.id), pair("created", dateText(run.created)),
      pair("status", run.status === "partial" ? "partial: it did not come to its end" : run.status),
      pair("command", command(system.command_line)),
      pair("Isoscale", [run.isoscale_version, system.git_hash ? `git ${system.git_hash}` : null].filter(Boolean).join(", ")),
      pair("build", [system.compiler, system.build_type].filter(Boolean).join(", ") || missing),
      pair("device", [run.device, system.device_detail].filter(Boolean).join(", ")),
      pair("MPI", system.mpi_library),
      pair("size", `${run.ranks} ranks on ${counted(run.nodes, "node")}`)),
    el("div", { class: "charts" }, kindsTable(run), environmentTable(run)),
  ];
}

/** This section always exists: every number has a source. */
export function provenanceSection() {
  const { runs } = data.report;
  return {
    id: "provenance",
    title: "Provenance",
    content: oneOf("launch", runs.map((run) => `${run.file}, ${dateText(run.created)}`), (i) => launch(runs[i])),
  };
}
