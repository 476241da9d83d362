// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the ranked findings: the cost of each, the evidence for it, and the next step.
import { factLine, shareText, thinBar } from "../blocks.js";
import { data } from "../data.js";
import { el } from "../dom.js";
import { counted, joined, known, missing, rankCount } from "../format.js";
import { count, words } from "../table.js";

/** Returns the findings of the report in its order, most severe first. */
export const findingsOf = (report = data.report) => report.findings ?? [];

/** Returns the evidence of a finding: one line for each point, the most severe first. */
function evidence(at) {
  if (!Array.isArray(at.evidence)) return at.evidence;
  const lines = new Map();
  for (const one of at.evidence) {
    lines.set(one.ranks, [...(lines.get(one.ranks) ?? []), `${one.what} ${one.text}`]);
  }
  return [...lines].map(([ranks, parts]) => el("div", {}, (ranks && lines.size > 1 ? `${rankCount(ranks)}: ` : "") + parts.join(", ")));
}

/** Returns the curve's name on this page, without ranks, which the finding's sentence has. */
export function whereOf(at, curves) {
  if (!at.curve) return "";
  return curves.find((curve) => curve.title === at.curve)?.short ?? at.curve;
}

/** Lists the points that the rules did not judge, with the reason; "" if they judged all. */
const leftOut = (curves) => (data.report.findings_left_out ?? [])
  .map((at) => `${whereOf(at, curves)} on ${at.ranks.join(", ")} (${at.why})`).join("; ");

const opened = 3;
const most = 10; // findings that are shown at first

const severity = (share, scale) => el("span", { class: "severity" },
  el("b", { class: "big" }, known(share) ? shareText(share) : missing),
  thinBar("lost-bar", known(share) && scale > 0 ? Math.min(1, share / scale) : 0, "span"));

const finding = (at, i, scale, curves) => el("li", { id: `finding-${i + 1}` },
  el("details", { class: "finding", open: i < opened },
    el("summary", {}, severity(at.severity, scale),
      el("span", {}, el("b", {}, at.sentence), el("span", { class: "note" }, at.curve ? ` \u00b7 ${whereOf(at, curves)}` : ""))),
    el("dl", {}, factLine("evidence", evidence(at)), factLine("next step", at.next_step),
      factLine("source", joined([at.rule, at.source], " \u00b7 ")))));

const columns = [
  words("curve"), count("on ranks"), words("kind", null, "nowrap"), words("which ranks"), words("what was seen", null, "long"),
];

/** Lists what the analysis found at single points. */
function remarks(curves) {
  const row = (curve, point, kind, ranks, text) =>
    ({ curve: curve.short, "on ranks": point.ranks, kind, "which ranks": ranks.join(", ") || null, "what was seen": text });
  const all = curves.flatMap((curve) => curve.points.flatMap((point) => [
    ...(point.full.findings ?? []).map((at) => ({ size: at.size, ...row(curve, point, at.kind, at.ranks, at.text) })),
    ...(point.full.flags ?? []).map((text) => ({ size: -1, ...row(curve, point, "remark", [], text) })),
  ]));
  return all.sort((a, b) => b.size - a.size);
}

/** @param {import("../data.js").Curve[]} curves */
export function findingsSection(curves) {
  const all = findingsOf();
  const seen = remarks(curves);
  const unjudged = leftOut(curves);
  if (all.length === 0 && seen.length === 0 && unjudged === "") return null;
  const scale = Math.max(0, ...all.map((at) => at.severity ?? 0));
  const items = all.map((at, i) => finding(at, i, scale, curves));
  // The worst finding of each hardware fault is always shown, however little it costs.
  const isShown = (i) => i < most || (all[i].concern === "hardware" && all.findIndex((at) => at.rule === all[i].rule) === i);
  const list = (some) => el("ol", { class: "plain findings" }, some);
  const rest = items.filter((_, i) => !isShown(i));
  const points = { table: { columns, items: seen, caption: "Seen at single points" }, when: seen.length > 0 };
  return {
    id: "findings",
    title: "Findings",
    blocks: [
      { when: all.length > 0, note: "largest first, by the estimated share of the step that is lost; estimates overlap and do not add up; \u2014: not known: faults of hardware, then the largest" },
      { when: unjudged !== "", note: `not judged: ${unjudged}` },
      list(items.filter((_, i) => isShown(i))),
      { when: rest.length > 0, fold: `${rest.length} more findings`, look: "rest", blocks: [list(rest)] },
      all.length === 0 ? points : { when: seen.length > 0, fold: `${counted(seen.length, "remark")} on single points`, blocks: [points] }],
  };
}
