// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the first screen: the workloads and the machine, how well they scale, the causes of lost
// time, and warnings.
import { causeItem, fact, panel, warningsPanel } from "../blocks.js";
import { explains, headlineOf, isSound, lossesOf, tracing } from "../causes.js";
import { data, unsound } from "../data.js";
import { el } from "../dom.js";
import { counted, distinctOf, joined, listed, percent, rankCount } from "../format.js";
import { machineOf, periodText } from "../machine.js";
import { benchCards, curveCards } from "./cards.js";
import { findingsOf, whereOf } from "./findings.js";
import { warningsOf } from "./warnings.js";

const mostCauses = 3;
const mostFindings = 3;
const mostWarnings = 4;

function machineFact(runs) {
  const machines = runs.map(machineOf);
  const titles = distinctOf(machines.map((at) => at.title));
  if (titles.length === 1) return fact("machine", titles[0], joined(machines[0].details, " \u00b7 "));
  return fact("machines", listed(titles, 3), `${titles.length} shapes in ${runs.length} launches`);
}

function ranFact(runs) {
  const scaled = runs.flatMap((run) => run.points.filter((point) => run.curves.some((curve) => curve.points.includes(point.index))));
  const points = runs.flatMap((run) => run.points);
  const of = (key, from = scaled) => distinctOf(from.map((point) => point[key]));
  const others = of("workload", points.filter((point) => !scaled.includes(point)));
  if (scaled.length === 0) return fact("ran", listed(others, 8), listed(of("dtype", points)));
  const models = [listed(of("model")), listed(of("dtype")), `${of("scaling").join(", ")} scaling`];
  return fact("ran", listed(of("workload"), 8), joined([...models, others.length > 0 && `also ${listed(others, 4)}`], " \u00b7 "));
}

function launchFact(runs) {
  const dates = runs.map((run) => run.created).sort();
  const versions = distinctOf(runs.map((run) => run.isoscale_version));
  const hashes = distinctOf(runs.map(({ system }) => system?.git_hash && `git ${system.git_hash}`));
  return fact(runs.length === 1 ? "launch" : `${runs.length} launches`, periodText(dates[0], dates.at(-1)),
    `Isoscale ${versions.join(", ")} \u00b7 ${hashes.join(", ")}`);
}

// If traced and untraced steps differ by more than this share of the step, causes are uncertain.
const mostTracing = 0.05;
const markedCauses = [...unsound, "few-steps"];

const tracingShare = (point) => lossesOf(point).find((loss) => loss.cause === tracing)?.share ?? 0;

/**
 * Returns the largest losses of the curves at their headline points (see headlineOf()). Each cause
 * appears once, for the curve where it is worst.
 */
function causes(curves) {
  const all = curves.flatMap((curve) => {
    const point = headlineOf(curve.points);
    if (!point || !explains(point)) return [];
    return lossesOf(point).filter((loss) => loss.share > 0 && loss.cause !== tracing).map((loss) => ({ ...loss, curve, point }));
  });
  // The losses of ranks that share cores tell little about the machine, so they are shown only if
  // there are no others.
  const sound = all.filter((at) => isSound(at.point));
  const worst = new Map();
  for (const at of (sound.length > 0 ? sound : all).sort((a, b) => b.share - a.share)) {
    const known = worst.get(at.cause);
    if (known) known.others += at.share >= 0.01 ? 1 : 0;
    else worst.set(at.cause, { ...at, others: 0 });
  }
  return [...worst.values()].slice(0, mostCauses);
}

const placeOf = (curve, point) => `${curve.short} on ${rankCount(point.ranks)}`;

function causeOf(at, scale) {
  const { curve, point, others } = at;
  const labels = point.labels.filter((name) => markedCauses.includes(name));
  const where = joined([placeOf(curve, point), point.launch && `launch ${point.launch}`]);
  const more = others > 0 ? `, ${counted(others, "other curve")} too` : "";
  return causeItem(at, scale, ", ", el("span", { class: "faint" }, `${where}${labels.length > 0 ? ` (${joined(labels)})` : ""}${more}`));
}

/**
 * Says by how much traced steps differ from the others at the points of these causes; null if
 * little.
 */
function tracingText(items) {
  const points = new Map(items.map((at) => [at.point, at.curve]));
  const differing = [...points].filter(([point]) => Math.abs(tracingShare(point)) > mostTracing);
  if (differing.length === 0) return null;
  const text = differing.map(([point, curve]) =>
    `${percent(Math.abs(tracingShare(point)), 0)}${items.length > 1 ? ` (${placeOf(curve, point)})` : ""}`).join(", ");
  return `traced steps differ from the others by ${text}: the causes below are uncertain`;
}

/** Names the points whose loss the causes do not explain; null if there are none. */
function unexplainedText(curves) {
  const parts = curves.map((curve) => [curve, headlineOf(curve.points)])
    .filter(([, point]) => point?.full.waterfall && !explains(point))
    .map(([curve, point]) => `${placeOf(curve, point)} (traced steps differ by ${percent(tracingShare(point))})`);
  return parts.length === 0 ? null : `unexplained, too few steps or traced steps unlike the others: ${listed(parts, 4)}`;
}

function causesPanel(curves) {
  const items = causes(curves);
  const texts = [unexplainedText(curves), tracingText(items)].filter(Boolean);
  if (items.length === 0 && texts.length === 0) return null;
  const scale = Math.max(...items.map((at) => at.share));
  return panel("Where time is lost", "waterfall", "all causes", texts.map((text) => el("p", { class: "note" }, text)),
    el("ol", { class: "plain" }, items.map((at) => causeOf(at, scale))));
}

/**
 * Shows the worst finding of each rule. Hardware faults come first and all of them are shown, since
 * they can be repaired.
 */
function findingsPanel(curves) {
  const all = findingsOf();
  if (all.length === 0) return null;
  const first = all.map((at, i) => ({ at, i })).filter(({ at, i }) => all.findIndex((other) => other.rule === at.rule) === i);
  const faults = first.filter(({ at }) => at.concern === "hardware");
  const ranked = [...faults, ...first.filter((one) => !faults.includes(one))];
  const items = ranked.slice(0, Math.max(mostFindings, faults.length)).map(({ at, i }) => el("li", {},
    el("a", { href: `#finding-${i + 1}` }, at.sentence), el("span", { class: "faint" }, at.curve ? ` \u00b7 ${whereOf(at, curves)}` : "")));
  const what = faults.length > 0 ? "hardware first, most severe of each kind" : "most severe of each kind";
  return panel(`Findings: ${what}`, "findings", all.length > items.length ? `all ${all.length}` : "what to do", el("ol", { class: "plain lines" }, items));
}

function reportWarnings(curves) {
  const all = warningsOf(data.report, curves);
  const isMeasured = data.report.runs.some((run) => run.points.some((point) => point.status === "ok"));
  if (!isMeasured) all.unshift({ grave: true, text: "no point was measured" });
  return warningsPanel(all, mostWarnings, "none: every point was measured and verified as asked");
}

/** @param {import("../data.js").Curve[]} curves */
export function overviewSection(curves) {
  const { runs } = data.report;
  return {
    id: "overview",
    title: "Overview",
    quiet: true,
    blocks: [
      el("dl", { class: "facts" }, machineFact(runs), ranFact(runs), launchFact(runs)),
      el("div", {}, curves.length > 0 ? curveCards(curves) : null, benchCards(curves.length > 0)),
      el("div", { class: "panels" }, causesPanel(curves), findingsPanel(curves), reportWarnings(curves))],
  };
}
