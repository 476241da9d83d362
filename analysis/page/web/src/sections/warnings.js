// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Warns of what a reader must know before believing a number, most severe first.
import { data, unsound } from "../data.js";
import { counted, rankCount } from "../format.js";

const mostDeviceWarnings = 4;

/** Joins equal texts of several launches into one. */
function merged(items, runs) {
  const seen = new Map();
  for (const item of items) {
    const known = seen.get(item.text);
    if (known) known.times += 1;
    else seen.set(item.text, { ...item, times: 1 });
  }
  return [...seen.values()].map(({ times, ...item }) =>
    times > 1 && runs > 1 ? { ...item, text: `${item.text} (${times} launches)` } : item);
}

function checkItem(check) {
  const where = [check.host, check.device].filter(Boolean).join(", ");
  const grave = check.verdict === "stop";
  return {
    grave,
    text: `preflight ${check.verdict}${check.allowed ? " (allowed)" : ""}, ${check.name}: ${where ? `${where}: ` : ""}${check.what ?? ""}`,
    target: "preflight",
    hardware: true,
  };
}

function ofRun(run) {
  const checks = (run.preflight?.results ?? []).filter((check) => check.verdict === "stop" || check.verdict === "warning");
  return [
    ...(run.status === "partial" ? [{ grave: true, text: "PARTIAL: the run did not come to its end", target: "provenance" }] : []),
    ...run.warnings.map((text) => ({ grave: false, text })),
    ...checks.map(checkItem),
  ];
}

/** Returns "4, 8 ranks of pp" */
function places(found) {
  const byCurve = new Map();
  for (const { curve, ranks } of found) byCurve.set(curve, [...(byCurve.get(curve) ?? []), ranks]);
  const all = [...byCurve].map(([curve, ranks]) =>
    `${curve} on ${ranks.length > 1 ? `${ranks.join(", ")} ranks` : rankCount(ranks[0])}`);
  return all.slice(0, 3).join("; ") + (all.length > 3 ? `; and ${all.length - 3} more curves` : "");
}

function ofPoints(curves) {
  const points = curves.flatMap((curve) => [...curve.points, ...curve.skipped].map((point) => ({ curve: curve.short, ...point })));
  const items = [];
  const add = (grave, what, found, target = "curves") => {
    if (found.length > 0) items.push({ grave, text: `${what}: ${places(found)}`, target });
  };
  const failed = points.filter((point) => point.status === "failed");
  const reasons = [...new Set(failed.map((point) => point.reason).filter(Boolean))];
  add(true, `failed${reasons.length > 0 ? ` (${reasons[0]})` : ""}`, failed);
  const measured = points.filter((point) => point.status === "ok");
  add(true, "wrong results, did not verify", measured.filter((point) => point.full.verified === false));
  for (const label of new Set(measured.flatMap((point) => point.labels))) {
    add(false, `${label}${unsound.includes(label) ? ", no scaling result" : ""}`, measured.filter((point) => point.labels.includes(label)));
  }
  add(false, "not verified", measured.filter((point) => point.full.verified === null));
  add(false, "skipped", points.filter((point) => point.status === "skipped"));
  return items;
}

function ofBenches(report) {
  const failed = report.runs.flatMap((run) => run.points.filter((point) => point.rows.length > 0 && point.status === "failed"));
  return failed.map((point) => ({
    grave: true,
    text: `failed: ${point.workload} on ${rankCount(point.ranks)}${point.reason ? ` (${point.reason})` : ""}`,
  }));
}

function leftOut(report) {
  // A single launch is not joined with others; its skipped points are named by themselves.
  if (report.runs.length < 2) return [];
  const count = (report.curves ?? []).reduce((sum, curve) => sum + curve.left_out.length, 0);
  const reasons = [...new Set((report.curves ?? []).flatMap((curve) => curve.left_out.map((at) => at.reason)))];
  return count === 0 ? [] : [{
    grave: false,
    text: `left out of the joined curves: ${counted(count, "point")} (${reasons.slice(0, 3).join(", ")}${reasons.length > 3 ? ", ..." : ""})`,
    target: "launches",
  }];
}

/** Joins equal warnings about devices at several points into one. */
function ofDevices(curves) {
  const seen = new Map();
  for (const curve of curves) {
    for (const point of curve.points) {
      for (const text of point.full.device_state?.warnings ?? []) {
        seen.set(text, [...(seen.get(text) ?? []), { curve: curve.short, ranks: point.ranks }]);
      }
    }
  }
  const all = [...seen].sort((a, b) => b[1].length - a[1].length);
  const items = all.slice(0, mostDeviceWarnings).map(([text, found]) => ({ grave: false, text: `${text}: ${places(found)}`, target: "devices", hardware: true }));
  if (all.length > items.length) items.push({ grave: false, text: `${all.length - items.length} more about devices`, target: "devices", hardware: true });
  return items;
}

/** Returns pairs of ranks that are slow against others of their class. */
function ofPairs(report) {
  return (report.findings ?? []).flatMap((at, i) => (at.rule === "slow-pair"
    ? [{ grave: false, text: `slow pairs: ${at.sentence}`, target: `finding-${i + 1}`, hardware: true }] : []));
}

/**
 * Returns grave warnings first, then those about hardware, which can be repaired.
 * @param {import("../data.js").Curve[]} curves
 * @returns {{grave: boolean, text: string, target?: string}[]} target: id of a section
 */
export function warningsOf(report, curves) {
  const items = [
    ...merged(report.runs.flatMap(ofRun), report.runs.length),
    ...ofPoints(curves),
    ...ofBenches(report),
    ...leftOut(report),
    ...(report.warnings ?? []).map((text) => ({ grave: false, text, target: report.runs.length > 1 ? "launches" : undefined })),
    ...ofPairs(report),
    ...ofDevices(curves),
    ...((data.notes ?? []).length > 0 ? [{ grave: false, text: `this page shows less than the file holds: ${data.notes.length} notes`, target: "notes" }] : []),
  ];
  const rank = ({ grave, hardware }) => (grave ? 0 : hardware ? 1 : 2);
  return items.sort((a, b) => rank(a) - rank(b));
}
