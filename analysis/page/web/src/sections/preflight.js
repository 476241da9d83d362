// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The checks made before the measurement, worst results first.
import { data } from "../data.js";
import { el } from "../dom.js";
import { table } from "../table.js";

const worstFirst = ["stop", "warning", "ok", "not checked"];
const looks = { stop: "bad", warning: "warn", ok: "good", "not checked": "faint" };

const columns = [
  { title: "verdict", look: (value) => looks[value.replace(" (allowed)", "")] ?? null },
  { title: "check", look: () => "nowrap" },
  { title: "what was found", look: () => "long" },
  { title: "fix", look: () => "long" },
  { title: "cost" },
  { title: "where" },
];
const fewShown = 15; // further checks are shown at first only if they found something
const launchColumn = { title: "launches", number: true };

/** Returns the checks of all launches; equal results appear once. */
function merged(runs) {
  const seen = new Map();
  for (const run of runs) {
    for (const check of run.preflight?.results ?? []) {
      const where = [check.host, check.device].filter(Boolean).join(", ") || null;
      const cells = [`${check.verdict}${check.allowed ? " (allowed)" : ""}`, check.name, check.what, check.fix, check.cost, where];
      const key = JSON.stringify(cells);
      const known = seen.get(key) ?? { verdict: check.verdict, cells, launches: 0 };
      known.launches += 1;
      seen.set(key, known);
    }
  }
  const place = (verdict) => (worstFirst.includes(verdict) ? worstFirst.indexOf(verdict) : 0);
  return [...seen.values()].sort((a, b) => place(a.verdict) - place(b.verdict));
}

function counts(checks) {
  return el("p", { class: "counts" }, worstFirst.map((verdict) => {
    const count = checks.filter((check) => check.verdict === verdict).length;
    return count === 0 ? null : el("span", { class: looks[verdict] }, el("b", {}, String(count)), ` ${verdict}${count > 1 && (verdict === "stop" || verdict === "warning") ? "s" : ""}`);
  }));
}

/** Returns null if no launch was checked. */
export function preflightSection() {
  const { runs } = data.report;
  const checks = merged(runs);
  if (checks.length === 0) return null;
  const several = runs.length > 1;
  const shown = several ? [...columns, launchColumn] : columns;
  const rows = (of) => of.map((check) => (several ? [...check.cells, check.launches] : check.cells));
  const judged = checks.filter((check) => check.verdict !== "not checked");
  const others = checks.filter((check) => check.verdict === "not checked");
  const found = judged.filter((check) => check.verdict !== "ok").length;
  const unchecked = runs.filter((run) => !run.preflight).length;
  return {
    id: "preflight",
    title: "Preflight",
    content: el("div", {},
      counts(checks),
      unchecked > 0 ? el("p", { class: "note" }, `${unchecked} of ${runs.length} launches hold no checks`) : null,
      judged.length > 0 ? table(shown, rows(judged), { caption: "Checks before the run", most: Math.max(fewShown, found), stacks: true }) : null,
      others.length > 0 ? el("details", {}, el("summary", {}, `${others.length} not checked`),
        table(shown, rows(others), { caption: "Not checked, and why", stacks: true })) : null),
  };
}
