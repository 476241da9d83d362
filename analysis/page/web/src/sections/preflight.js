// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Lists the checks made before the measurement, worst results first.
import { data } from "../data.js";
import { el } from "../dom.js";
import { joined } from "../format.js";
import { count, words } from "../table.js";

const worstFirst = ["stop", "warning", "ok", "not checked"];
const looks = { stop: "bad", warning: "warn", ok: "good", "not checked": "faint" };

const columns = [
  words("verdict", (check) => `${check.verdict}${check.allowed ? " (allowed)" : ""}`, (value) => looks[value.replace(" (allowed)", "")] ?? null),
  words("check", ({ name }) => name, "nowrap"), words("what was found", ({ what }) => what, "long"), words("fix", null, "long"), words("cost"),
  words("where", ({ host, device }) => joined([host, device]) || null),
];
const fewShown = 15; // further checks are shown at first only if they found something

/** Returns the checks of all launches; equal results appear once. */
function merged(runs) {
  const seen = new Map();
  for (const check of runs.flatMap((run) => run.preflight?.results ?? [])) {
    const key = JSON.stringify(columns.map(({ value }) => value(check)));
    if (!seen.has(key)) seen.set(key, { ...check, launches: 0 });
    seen.get(key).launches += 1;
  }
  const place = ({ verdict }) => Math.max(0, worstFirst.indexOf(verdict));
  return [...seen.values()].sort((a, b) => place(a) - place(b));
}

const counts = (checks) => el("p", { class: "counts" }, worstFirst.map((verdict) => {
  const found = checks.filter((check) => check.verdict === verdict).length;
  const plural = found > 1 && (verdict === "stop" || verdict === "warning") ? "s" : "";
  return found === 0 ? null : el("span", { class: looks[verdict] }, el("b", {}, String(found)), ` ${verdict}${plural}`);
}));

/** Returns null if no launch was checked. */
export function preflightSection() {
  const { runs } = data.report;
  const checks = merged(runs);
  if (checks.length === 0) return null;
  const shown = runs.length > 1 ? [...columns, count("launches")] : columns;
  const others = checks.filter((check) => check.verdict === "not checked");
  const judged = checks.filter((check) => !others.includes(check));
  const found = judged.filter((check) => check.verdict !== "ok").length;
  const unchecked = runs.filter((run) => !run.preflight).length;
  const table = (items, caption, most) => ({ when: items.length > 0, table: { columns: shown, items, caption, most, stacks: true } });
  return {
    id: "preflight",
    title: "Preflight",
    blocks: [
      counts(checks),
      { when: unchecked > 0, note: `${unchecked} of ${runs.length} launches hold no checks` },
      table(judged, "Checks before the run", Math.max(fewShown, found)),
      { when: others.length > 0, fold: `${others.length} not checked`, blocks: [table(others, "Not checked, and why")] }],
  };
}
