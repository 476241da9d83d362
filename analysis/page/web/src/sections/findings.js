// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Findings, ranked: what costs how much, by what evidence, and what to do.
import { data } from "../data.js";
import { el } from "../dom.js";
import { missing, percent, ranksText } from "../format.js";
import { table } from "../table.js";

/** Findings of the report, gravest first; those that several launches share stand once. */
export function findingsOf(report = data.report) {
  const all = report.findings ?? report.runs.flatMap((run) => run.findings ?? []);
  const seen = new Map();
  for (const at of all) {
    const key = JSON.stringify([at.rule, at.curve, at.ranks, report.runs.length > 1 ? null : at.sentence]);
    const known = seen.get(key);
    if (!known || (at.severity ?? 0) > (known.severity ?? 0)) seen.set(key, at);
  }
  return [...seen.values()].sort((a, b) => (b.severity ?? 0) - (a.severity ?? 0));
}

const texts = (value) => (Array.isArray(value) ? value.join("; ") : value ?? "");

function where(at) {
  const ranks = at.ranks?.length > 0 ? ranksText(at.ranks) : "";
  return [at.curve, ranks].filter(Boolean).join(", ");
}

function line(name, text) {
  return text ? el("div", { class: "fact-line" }, el("dt", {}, name), el("dd", {}, text)) : null;
}

function finding(at, scale) {
  const share = at.severity;
  return el("li", { class: "finding" },
    el("div", { class: "severity" }, el("b", { class: "big" }, typeof share === "number" ? percent(share, share < 0.0995 ? 1 : 0) : missing),
      el("div", { class: "bar thin" }, el("i", { class: "lost-bar", style: `width:${scale > 0 ? (100 * (share ?? 0)) / scale : 0}%` })),
      el("span", { class: "note" }, typeof share === "number" ? "of the step" : "share not known")),
    el("div", {},
      el("h3", {}, at.sentence),
      where(at) ? el("p", { class: "note" }, where(at)) : null,
      el("dl", {}, line("evidence", texts(at.evidence)), line("next step", at.next_step),
        line("source", [at.rule, at.source].filter(Boolean).join(" \u00b7 ")))));
}

const columns = [{ title: "curve" }, { title: "on ranks", number: true }, { title: "kind" }, { title: "which ranks" }, { title: "what was seen", look: () => "long" }];

/** What the analysis says of single points. */
function remarks(curves) {
  return curves.flatMap((curve) => curve.points.flatMap((point) => [
    ...(point.full.findings ?? []).map((at) => [curve.short, point.ranks, at.kind, at.ranks.length > 0 ? at.ranks.join(", ") : null, at.text]),
    ...(point.full.flags ?? []).map((text) => [curve.short, point.ranks, "remark", null, text]),
  ]));
}

/** @param {import("../data.js").Curve[]} curves */
export function findingsSection(curves) {
  const all = findingsOf();
  const seen = remarks(curves);
  if (all.length === 0 && seen.length === 0) return null;
  const scale = Math.max(0, ...all.map((at) => at.severity ?? 0));
  const points = table(columns, seen, { caption: "Seen at single points" });
  return {
    id: "findings",
    title: "Findings",
    content: el("div", {},
      all.length > 0 ? el("p", { class: "note" }, "largest first, by the estimated share of the step; estimates overlap and do not add up") : null,
      el("ol", { class: "plain findings" }, all.map((at) => finding(at, scale))),
      seen.length === 0 ? null
        : all.length === 0 ? points
          : el("details", {}, el("summary", {}, `${seen.length} remark${seen.length === 1 ? "" : "s"} on single points`), points)),
  };
}
