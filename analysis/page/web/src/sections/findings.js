// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the findings, most severe first, with the cost of each, its evidence, and the next step.
// Also makes the list of warnings that a reader needs before trusting a number.
import {
  benches, columns, counted, data, dotted, el, factLine, groupBy, joined, known, missing, rankCount, ranksText, shareText, thinBar,
  unsound,
} from "../kit.js";

/** Returns the evidence for a finding: a line for each point, the most severe first. */
function evidence(at) {
  const lines = groupBy(at.evidence, (one) => one.ranks);
  return [...lines].map(([ranks, all]) => el("div", {},
    (ranks && lines.size > 1 ? `${rankCount(ranks)}: ` : "") + all.map(({ what, unit, text }) => `${what}${unit === "text" ? ":" : ""} ${text}`).join(", ")));
}

/** Returns the name of a finding's curve on this page, without ranks, which its sentence has. */
export const whereOf = ({ curve }, curves) => (curve ? curves.find(({ title }) => title === curve)?.short ?? curve : "");

/** Lists the points to which the rules were not applied, with the reasons; "" if there are none. */
const leftOutText = (curves) => data.report.findings_left_out
  .map((at) => `${whereOf(at, curves)} on ${at.ranks.join(", ")} (${at.why})`).join("; ");

const opened = 3; // number of findings that are unfolded at first
const most = 10; // number of findings that are shown at first

const severity = (share, scale) => el("span", { class: "severity" },
  el("b", { class: "big" }, known(share) ? shareText(share) : missing),
  thinBar("lost-bar", known(share) && scale > 0 ? Math.min(1, share / scale) : 0, "span"));

const finding = (at, i, scale, curves) => el("li", { id: `finding-${i + 1}` },
  el("details", { class: "finding", open: i < opened },
    el("summary", {}, severity(at.severity, scale),
      el("span", {}, el("b", {}, at.sentence), el("span", { class: "note" }, at.curve ? ` \u00b7 ${whereOf(at, curves)}` : ""))),
    el("dl", {}, factLine("evidence", evidence(at)), factLine("next step", at.next_step), factLine("source", dotted(at.rule, at.source)))));

const numbers = columns("", "curve, on ranks:count, kind:nowrap, which ranks, what was seen:long");

/** Lists the remarks of the analysis on single points, the largest first. */
function remarks(curves) {
  const row = (curve, point, { size = -1, kind = "remark", ranks = [], text }) =>
    ({ curve: curve.short, "on ranks": point.ranks, kind, "which ranks": ranks.join(", ") || null, "what was seen": text, size });
  return curves.flatMap((curve) => curve.points.flatMap((point) => [
    ...point.full.findings.map((at) => row(curve, point, at)),
    ...point.full.flags.map((text) => row(curve, point, { text })),
  ])).sort((a, b) => b.size - a.size);
}

export function findingsBlocks({ curves }) {
  const all = data.report.findings;
  const seen = remarks(curves);
  const unjudged = leftOutText(curves);
  const scale = Math.max(0, ...all.map((at) => at.severity ?? 0));
  const items = all.map((at, i) => finding(at, i, scale, curves));
  // The worst finding of each rule about hardware is always shown, however little it costs.
  const isShown = (i) => i < most || (all[i].concern === "hardware" && all.findIndex((at) => at.rule === all[i].rule) === i);
  const list = (some) => some.length > 0 && el("ol", { class: "plain findings" }, some);
  const rest = items.filter((_, i) => !isShown(i));
  const points = { table: { columns: numbers, items: seen, caption: "Seen at single points" } };
  return [
    { when: all.length > 0, note: "largest first, by the estimated share of the step that is lost; estimates overlap and do not add up; \u2014: not known: faults of hardware, then the largest" },
    { when: unjudged !== "", note: `not judged: ${unjudged}` },
    list(items.filter((_, i) => isShown(i))),
    { when: rest.length > 0, fold: `${rest.length} more findings`, look: "rest", blocks: [list(rest)] },
    all.length === 0 ? points : { when: seen.length > 0, fold: `${counted(seen.length, "remark")} on single points`, blocks: [points] }];
}

const mostDeviceWarnings = 4;
/** Joins equal texts of several launches into one, which tells the number of launches. */
const merged = (items, runs) => [...groupBy(items, ({ text }) => text).values()].map((same) =>
  (same.length > 1 && runs > 1 ? { ...same.at(-1), text: `${same[0].text} (${same.length} launches)` } : same.at(-1)));

function checkItem({ verdict, allowed, name, host, device, what }) {
  const where = joined([host, device]);
  const text = `preflight ${verdict}${allowed ? " (allowed)" : ""}, ${name}: ${where ? `${where}: ` : ""}${what ?? ""}`;
  return { grave: verdict === "stop", text, target: "preflight", hardware: true };
}

export const partialText = ({ planned }) => `the run did not finish${planned ? `; it was to measure ${counted(planned, "point")}` : ""}`;

const ofRun = (run) => [
  ...(run.status === "partial" ? [{ grave: true, text: `PARTIAL: ${partialText(run)}`, target: "provenance" }] : []),
  ...run.warnings.map((text) => ({ grave: run.altered.includes(text), text })),
  ...(run.preflight?.results ?? []).filter(({ verdict }) => verdict === "stop" || verdict === "warning").map(checkItem),
];

/** Returns the places of points {curve, ranks}: "pp on 4, 8 ranks; dp on 2 ranks". */
function places(found) {
  const all = [...groupBy(found, ({ curve }) => curve)].map(([curve, points]) => `${curve} on ${ranksText(points.map(({ ranks }) => ranks))}`);
  return all.slice(0, 3).join("; ") + (all.length > 3 ? `; and ${all.length - 3} more curves` : "");
}

function ofPoints(curves) {
  const points = curves.flatMap((curve) => [...curve.points, ...curve.skipped].map((point) => ({ curve: curve.short, ...point })));
  const failed = points.filter((point) => point.status === "failed");
  const measured = points.filter((point) => point.status === "ok");
  const reason = failed.map((point) => point.reason).find(Boolean);
  const labels = [...new Set(measured.flatMap((point) => point.labels))];
  const kinds = [
    { grave: true, what: `failed${reason ? ` (${reason})` : ""}`, found: failed },
    { grave: true, what: "wrong results, did not verify", found: measured.filter((point) => point.full.verified === false) },
    ...labels.map((label) => ({
      what: `${label}${unsound.includes(label) ? ", no scaling result" : ""}`, found: measured.filter((point) => point.labels.includes(label)),
    })),
    { what: "not verified", found: measured.filter((point) => point.full.verified === null) },
    { what: "skipped", found: points.filter((point) => point.status === "skipped") },
  ];
  return kinds.filter(({ found }) => found.length > 0).map(({ grave, what, found }) => ({ grave, text: `${what}: ${places(found)}`, target: "curves" }));
}

const ofBenches = (report) => benches(report).map(({ point }) => point).filter(({ status }) => status === "failed")
  .map(({ workload, ranks, reason }) => ({ grave: true, text: `failed: ${workload} on ${rankCount(ranks)}${reason ? ` (${reason})` : ""}` }));

function ofLeftOut(report) {
  // A report on one launch has no joined curves; its skipped points are named by other warnings.
  const all = report.runs.length < 2 ? [] : report.curves.flatMap((curve) => curve.left_out);
  const reasons = [...new Set(all.map((at) => at.reason))];
  const text = `left out of the joined curves: ${counted(all.length, "point")} (${reasons.slice(0, 3).join(", ")}${reasons.length > 3 ? ", ..." : ""})`;
  return all.length === 0 ? [] : [{ text, target: "launches" }];
}

/** Returns the warnings about devices. Equal warnings at several points become one. */
function ofDevices(curves) {
  const found = curves.flatMap((curve) => curve.points.flatMap(({ full, ranks }) =>
    (full.device_state?.warnings ?? []).map((text) => ({ text, curve: curve.short, ranks }))));
  const all = [...groupBy(found, ({ text }) => text)].sort((a, b) => b[1].length - a[1].length).map(([text, at]) => `${text}: ${places(at)}`);
  const rest = all.length > mostDeviceWarnings ? [`${all.length - mostDeviceWarnings} more about devices`] : [];
  return [...all.slice(0, mostDeviceWarnings), ...rest].map((text) => ({ text, target: "devices", hardware: true }));
}

const ofPairs = (report) => report.findings.flatMap((at, i) =>
  (at.rule === "slow-pair" ? [{ text: `slow pairs: ${at.sentence}`, target: `finding-${i + 1}`, hardware: true }] : []));

/** Returns the warnings as objects with these keys:
 * - text
 * - grave: true if a number is wrong or missing; these warnings come first
 * - hardware: true if the cause can be repaired; these come next
 * - target: id of the section with more on it */
export function warningsOf(report, curves) {
  const { notes } = data;
  const items = [
    ...merged(report.runs.flatMap(ofRun), report.runs.length), ...ofPoints(curves), ...ofBenches(report), ...ofLeftOut(report),
    ...report.warnings.map((text) => ({ text, target: report.runs.length > 1 ? "launches" : undefined })),
    ...ofPairs(report), ...ofDevices(curves),
    ...(notes.length > 0 ? [{ text: `this page shows less than the file holds: ${notes.length} notes`, target: "notes" }] : []),
  ];
  const rank = ({ grave, hardware }) => (grave ? 0 : hardware ? 1 : 2);
  return items.sort((a, b) => rank(a) - rank(b));
}
