// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Lists the warnings that a reader needs before trusting a number, most severe first.
import { data, unsound } from "../data.js";
import { counted, joined, rankCount, ranksText } from "../format.js";

/**
 * @typedef {object} Warning
 * @property {string} text
 * @property {boolean} [grave] a number is wrong or missing
 * @property {boolean} [hardware] the cause is hardware, which can be repaired
 * @property {string} [target] id of a section
 */

const mostDeviceWarnings = 4;

/** Joins equal texts of several launches into one. */
function merged(items, runs) {
  const seen = new Map();
  for (const item of items) seen.set(item.text, { ...item, times: (seen.get(item.text)?.times ?? 0) + 1 });
  return [...seen.values()].map((item) =>
    (item.times > 1 && runs > 1 ? { ...item, text: `${item.text} (${item.times} launches)` } : item));
}

function checkItem({ verdict, allowed, name, host, device, what }) {
  const where = joined([host, device]);
  return {
    grave: verdict === "stop",
    text: `preflight ${verdict}${allowed ? " (allowed)" : ""}, ${name}: ${where ? `${where}: ` : ""}${what ?? ""}`,
    target: "preflight",
    hardware: true,
  };
}

const ofRun = (run) => [
  ...(run.status === "partial" ? [{ grave: true, text: "PARTIAL: the run did not come to its end", target: "provenance" }] : []),
  ...run.warnings.map((text) => ({ text })),
  ...(run.preflight?.results ?? []).filter(({ verdict }) => verdict === "stop" || verdict === "warning").map(checkItem),
];

/** Returns the places of points {curve, ranks} as text: "pp on 4, 8 ranks; dp on 2 ranks". */
function places(found) {
  const byCurve = new Map();
  for (const { curve, ranks } of found) byCurve.set(curve, [...(byCurve.get(curve) ?? []), ranks]);
  const all = [...byCurve].map(([curve, ranks]) => `${curve} on ${ranksText(ranks)}`);
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
  return kinds.filter(({ found }) => found.length > 0)
    .map(({ grave, what, found }) => ({ grave, text: `${what}: ${places(found)}`, target: "curves" }));
}

function ofBenches(report) {
  const failed = report.runs.flatMap((run) => run.points.filter((point) => point.rows.length > 0 && point.status === "failed"));
  return failed.map(({ workload, ranks, reason }) =>
    ({ grave: true, text: `failed: ${workload} on ${rankCount(ranks)}${reason ? ` (${reason})` : ""}` }));
}

function leftOut(report) {
  // A single launch has no joined curves; other warnings name its skipped points.
  const all = report.runs.length < 2 ? [] : (report.curves ?? []).flatMap((curve) => curve.left_out);
  const reasons = [...new Set(all.map((at) => at.reason))];
  const text = `left out of the joined curves: ${counted(all.length, "point")} (${reasons.slice(0, 3).join(", ")}${reasons.length > 3 ? ", ..." : ""})`;
  return all.length === 0 ? [] : [{ text, target: "launches" }];
}

/** Joins equal warnings about devices at several points into one. */
function ofDevices(curves) {
  const seen = new Map();
  for (const curve of curves) {
    for (const { full, ranks } of curve.points) {
      for (const text of full.device_state?.warnings ?? []) seen.set(text, [...(seen.get(text) ?? []), { curve: curve.short, ranks }]);
    }
  }
  const all = [...seen].sort((a, b) => b[1].length - a[1].length).map(([text, found]) => `${text}: ${places(found)}`);
  const rest = all.length > mostDeviceWarnings ? [`${all.length - mostDeviceWarnings} more about devices`] : [];
  return [...all.slice(0, mostDeviceWarnings), ...rest].map((text) => ({ text, target: "devices", hardware: true }));
}

/** Returns a warning for each finding of pairs of ranks slower than others of their link class. */
const ofPairs = (report) => (report.findings ?? []).flatMap((at, i) =>
  (at.rule === "slow-pair" ? [{ text: `slow pairs: ${at.sentence}`, target: `finding-${i + 1}`, hardware: true }] : []));

/**
 * Returns grave warnings first, then those about hardware, which can be repaired.
 * @param {import("../data.js").Curve[]} curves
 * @returns {Warning[]}
 */
export function warningsOf(report, curves) {
  const notes = data.notes ?? [];
  const items = [
    ...merged(report.runs.flatMap(ofRun), report.runs.length),
    ...ofPoints(curves),
    ...ofBenches(report),
    ...leftOut(report),
    ...(report.warnings ?? []).map((text) => ({ text, target: report.runs.length > 1 ? "launches" : undefined })),
    ...ofPairs(report),
    ...ofDevices(curves),
    ...(notes.length > 0 ? [{ text: `this page shows less than the file holds: ${notes.length} notes`, target: "notes" }] : []),
  ];
  const rank = ({ grave, hardware }) => (grave ? 0 : hardware ? 1 : 2);
  return items.sort((a, b) => rank(a) - rank(b));
}
