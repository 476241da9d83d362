// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Findings, ranked: what each costs, the evidence for it, and what to do.
import { data } from "../data.js";
import { el } from "../dom.js";
import { counted, missing, percent, rankCount } from "../format.js";
import { table } from "../table.js";

/** Returns the findings of the report in its order, most severe first. */
export const findingsOf = (report = data.report) => report.findings ?? [];

/** Shows one line for each point, the most severe first. */
function evidence(at) {
  if (!Array.isArray(at.evidence)) return at.evidence;
  const lines = new Map();
  for (const one of at.evidence) {
    lines.set(one.ranks, [...(lines.get(one.ranks) ?? []), `${one.what} ${one.text}`]);
  }
  return [...lines].map(([ranks, parts]) => el("div", {}, (ranks && lines.size > 1 ? `${rankCount(ranks)}: ` : "") + parts.join(", ")));
}

/** Returns the curve's name on this page; the sentence of the finding has its ranks. */
export function whereOf(at, curves) {
  if (!at.curve) return "";
  return curves.find((curve) => curve.title === at.curve)?.short ?? at.curve;
}

function line(name, text) {
  return text && text.length > 0 ? el("div", { class: "fact-line" }, el("dt", {}, name), el("dd", {}, text)) : null;
}

/** Lists the points that the rules did not judge, with the reason; null if they judged all. */
export function leftOut(curves, report = data.report) {
  const all = report.findings_left_out ?? [];
  if (all.length === 0) return null;
  const text = all.map((at) => `${whereOf(at, curves)} on ${at.ranks.join(", ")} (${at.why})`).join("; ");
  return el("p", { class: "note" }, `not judged: ${text}`);
}

const opened = 3;
const most = 10; // findings that are shown at first

function severity(share, scale) {
  const isKnown = typeof share === "number";
  return el("span", { class: "severity" },
    el("b", { class: "big" }, isKnown ? percent(share, share < 0.0995 ? 1 : 0) : missing),
    el("span", { class: "bar thin", "aria-hidden": "true" },
      el("i", { class: "lost-bar", style: `width:${isKnown && scale > 0 ? (100 * Math.min(share, scale)) / scale : 0}%` })));
}

function finding(at, i, scale, curves) {
  return el("li", { id: `finding-${i + 1}` },
    el("details", { class: "finding", open: i < opened },
      el("summary", {}, severity(at.severity, scale),
        el("span", {}, el("b", {}, at.sentence), el("span", { class: "note" }, at.curve ? ` \u00b7 ${whereOf(at, curves)}` : ""))),
      el("dl", {}, line("evidence", evidence(at)), line("next step", at.next_step),
        line("source", [at.rule, at.source].filter(Boolean).join(" \u00b7 ")))));
}

const columns = [{ title: "curve" }, { title: "on ranks", number: true }, { title: "kind", look: () => "nowrap" }, { title: "which ranks" }, { title: "what was seen", look: () => "long" }];

/** Lists what the analysis found at single points. */
function remarks(curves) {
  const all = curves.flatMap((curve) => curve.points.flatMap((point) => [
    ...(point.full.findings ?? []).map((at) => ({ size: at.size, row: [curve.short, point.ranks, at.kind, at.ranks.length > 0 ? at.ranks.join(", ") : null, at.text] })),
    ...(point.full.flags ?? []).map((text) => ({ size: -1, row: [curve.short, point.ranks, "remark", null, text] })),
  ]));
  return all.sort((a, b) => b.size - a.size).map((at) => at.row);
}

/** @param {import("../data.js").Curve[]} curves */
export function findingsSection(curves) {
  const all = findingsOf();
  const seen = remarks(curves);
  const unjudged = leftOut(curves);
  if (all.length === 0 && seen.length === 0 && unjudged === null) return null;
  const scale = Math.max(0, ...all.map((at) => at.severity ?? 0));
  const items = all.map((at, i) => finding(at, i, scale, curves));
  // The worst finding of each hardware fault is always shown, however little it costs.
  const isShown = (i) => i < most || (all[i].concern === "hardware" && all.findIndex((at) => at.rule === all[i].rule) === i);
  const rest = items.filter((_, i) => !isShown(i));
  const points = table(columns, seen, { caption: "Seen at single points" });
  return {
    id: "findings",
    title: "Findings",
    content: el("div", {},
      all.length > 0 ? el("p", { class: "note" }, "largest first, by the estimated share of the step that is lost; estimates overlap and do not add up; \u2014: not known: faults of hardware, then the largest") : null,
      unjudged,
      el("ol", { class: "plain findings" }, items.filter((_, i) => isShown(i))),
      rest.length === 0 ? null : el("details", { class: "rest" }, el("summary", {}, `${rest.length} more findings`), el("ol", { class: "plain findings" }, rest)),
      seen.length === 0 ? null
        : all.length === 0 ? points
          : el("details", {}, el("summary", {}, `${counted(seen.length, "remark")} on single points`), points)),
  };
}
