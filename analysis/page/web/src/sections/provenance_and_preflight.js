// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the machine, command and software of each launch, so that it can be repeated, and the
// preflight checks made before the measurement, worst results first.
import {
  column, columns, copyButton, counted, dateText, el, groupBy, hostsText, joined, kindsOf, missing, oneOf, ownOf, si,
  table,
} from "../reexports.js";
import { partialText } from "./overview.js";

const worstFirst = ["stop", "warning", "ok", "not checked"];
const looks = { stop: "bad", warning: "warn", ok: "good", "not checked": "faint" };

const checkColumns = columns("",
  column("verdict", (check) => `${check.verdict}${check.allowed ? " (allowed)" : ""}`, { look: (value) => looks[value.replace(" (allowed)", "")] ?? null }),
  "check:nowrap=name, what was found:long=what, fix:long, cost", { where: ({ host, device }) => joined([host, device]) || null });

/** Returns the checks of all launches, worst results first, and equal ones as one. */
function merged(runs) {
  const place = ({ verdict }) => Math.max(0, worstFirst.indexOf(verdict));
  return [...groupBy(runs.flatMap((run) => run.preflight?.results ?? []), (check) => JSON.stringify(checkColumns.map(({ value }) => value(check)))).values()]
    .map((same) => ({ ...same[0], launches: same.length })).sort((a, b) => place(a) - place(b));
}

const counts = (checks) => el("p", { class: "counts" }, worstFirst.map((verdict) => {
  const found = checks.filter((check) => check.verdict === verdict).length;
  const plural = found > 1 && (verdict === "stop" || verdict === "warning") ? "s" : "";
  return found === 0 ? null : el("span", { class: looks[verdict] }, el("b", {}, String(found)), ` ${verdict}${plural}`);
}));

export function preflightBlocks({ runs }) {
  const checks = merged(runs);
  const shown = runs.length > 1 ? columns("", checkColumns, "launches:count") : checkColumns;
  const others = checks.filter((check) => check.verdict === "not checked");
  const judged = checks.filter((check) => !others.includes(check));
  const found = judged.filter((check) => check.verdict !== "ok").length;
  const unchecked = runs.filter((run) => !run.preflight).length;
  const table = (items, caption, most) => ({ table: { columns: shown, items, caption, most, stacks: true } });
  return checks.length > 0 && [
    counts(checks),
    { when: unchecked > 0, note: `${unchecked} of ${runs.length} launches hold no checks` },
    table(judged, "Checks before the run", Math.max(15, found)),
    { when: others.length > 0, fold: `${others.length} not checked`, blocks: [table(others, "Not checked, and why")] }];
}

const factUnits = [[/memory/, "B"], [/clock/, "Hz"], [/power/, "W"], [/bandwidth/, "B/s"]];

/** Returns a fact of a kind of ranks as text; null if it is not known. */
function factOf(kind, name) {
  const number = ownOf(kind.number, name);
  const unit = factUnits.find(([pattern]) => pattern.test(name))?.[1];
  return ownOf(kind.text, name) ?? (typeof number !== "number" ? null : unit ? si(number, unit) : String(number));
}

/** Returns a table with a column for each kind of ranks and a row for each fact. */
function kindsTable(run) {
  const kinds = kindsOf(run);
  const names = [...new Set(kinds.flatMap((kind) => [...Object.keys(kind.text), ...Object.keys(kind.number)]))];
  const value = (kind) => (name) => (name === null ? hostsText([kind], kind.hosts.length) || null : factOf(kind, name));
  return {
    columns: columns("", { fact: (name) => name?.replaceAll("_", " ") ?? "hosts" },
      kinds.map((kind) => column(`ranks ${kind.ranks}${kinds.length === 1 ? "" : ` (${kind.count})`}`, value(kind), { form: "long" }))),
    items: [null, ...names],
    caption: kinds.length === 1 ? "Nodes: all ranks alike" : `Nodes: ${kinds.length} kinds of ranks`,
  };
}

function launch(run) {
  const system = run.system ?? {};
  const line = system.command_line;
  const environment = Object.entries(system.environment ?? {});
  return [
    { facts: [
      ["file", run.file], ["id", run.id], ["created", dateText(run.created)],
      ["status", run.status === "partial" ? `partial: ${partialText(run)}` : run.status],
      ["command", line ? [el("code", {}, line), " ", copyButton("copy", () => line)] : missing],
      ["Isoscale", joined([run.isoscale_version, system.git_hash && `git ${system.git_hash}`])],
      ["build", joined([system.compiler, system.build_type]) || missing],
      ["device", joined([run.device, system.device_detail])],
      ["MPI", system.mpi_library],
      ["size", `${run.ranks} ranks on ${counted(run.nodes, "node")}`]] },
    { charts: [
      kindsOf(run).length > 0 && table(kindsTable(run)),
      environment.length > 0 && table({ columns: columns("", "variable=0, value:long=1"), items: environment, caption: "Environment that was kept" })] },
  ];
}

export const provenanceBlocks = ({ runs }) =>
  [oneOf("launch", runs.map((run) => `${run.file}, ${dateText(run.created)}`), (i) => launch(runs[i]))];
