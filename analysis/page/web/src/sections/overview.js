// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The first screen: what was measured on which machine, how well it scales, what it loses, and
// warnings.
import { explains, headlineOf, isSound, lossesOf, meaning, partOfCause, tracing } from "../causes.js";
import { data, unsound } from "../data.js";
import { el } from "../dom.js";
import { counted, percent, rankCount } from "../format.js";
import { distinctOf, machineOf, periodText } from "../machine.js";
import { benchCards, curveCards, servedCards } from "./cards.js";
import { findingsOf, whereOf } from "./findings.js";
import { warningsOf } from "./warnings.js";

const mostCauses = 3;
const mostFindings = 3;
const mostWarnings = 4;

function fact(name, title, details) {
  return el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, el("b", {}, title)),
    details ? el("dd", { class: "note" }, details) : null);
}

const listed = (values, most = 6) =>
  values.slice(0, most).join(", ") + (values.length > most ? ` and ${values.length - most} more` : "");

function machineFact(runs) {
  const machines = runs.map(machineOf);
  const titles = distinctOf(machines.map((at) => at.title));
  if (titles.length === 1) return fact("machine", titles[0], machines[0].details.join(" \u00b7 "));
  return fact("machines", listed(titles, 3), `${titles.length} shapes in ${runs.length} launches`);
}

function ranFact(runs) {
  const scaled = runs.flatMap((run) => run.points.filter((point) => run.curves.some((curve) => curve.points.includes(point.index))));
  const points = runs.flatMap((run) => run.points);
  const of = (key, from = scaled) => distinctOf(from.map((point) => point[key]));
  const others = of("workload", points.filter((point) => !scaled.includes(point)));
  if (scaled.length === 0) return fact("ran", listed(others, 8), listed(of("dtype", points)));
  const models = [listed(of("model")), listed(of("dtype")), `${of("scaling").join(", ")} scaling`];
  return fact("ran", listed(of("workload"), 8),
    [...models, others.length > 0 ? `also ${listed(others, 4)}` : ""].filter(Boolean).join(" \u00b7 "));
}

function launchFact(runs) {
  const dates = runs.map((run) => run.created).sort();
  const versions = distinctOf(runs.map((run) => run.isoscale_version));
  return fact(runs.length === 1 ? "launch" : `${runs.length} launches`, periodText(dates[0], dates.at(-1)),
    `Isoscale ${versions.join(", ")} \u00b7 ${distinctOf(runs.map((run) => (run.system?.git_hash ? `git ${run.system.git_hash}` : ""))).join(", ")}`);
}

// Share of the step. If traced and untraced steps differ by more than this, causes are uncertain.
const mostTracing = 0.05;
const markedCauses = [...unsound, "few-steps"];

/** Returns the largest losses at the largest counts, each cause once, where it is worst. */
function causes(curves) {
  const all = curves.flatMap((curve) => {
    const point = headlineOf(curve.points);
    if (!point || !explains(point)) return [];
    return lossesOf(point).filter((loss) => loss.share > 0 && loss.cause !== tracing)
      .map((loss) => ({ ...loss, curve, point, isSound: isSound(point) }));
  });
  // The losses of ranks that share cores tell little about the machine, so they are shown only if
  // there are no others.
  const judged = all.some((at) => at.isSound) ? all.filter((at) => at.isSound) : all;
  const worst = new Map();
  for (const at of judged.sort((a, b) => b.share - a.share)) {
    const known = worst.get(at.cause);
    if (known) known.others += at.share >= 0.01 ? 1 : 0;
    else worst.set(at.cause, { ...at, others: 0 });
  }
  return [...worst.values()].slice(0, mostCauses);
}

function causeItem({ cause, share, curve, point, others }, scale) {
  const more = others > 0 ? `, ${counted(others, "other curve")} too` : "";
  const labels = point.labels.filter((name) => markedCauses.includes(name));
  const launch = point.launch ? `, launch ${point.launch}` : "";
  const label = `${launch}${labels.length > 0 ? ` (${labels.join(", ")})` : ""}`;
  return el("li", { class: "cause", title: meaning(cause) },
    el("b", { class: "big" }, percent(share, share < 0.0995 ? 1 : 0)),
    el("div", {},
      el("div", {}, el("b", {}, cause), " of the step, ",
        el("span", { class: "faint" }, `${curve.short} on ${rankCount(point.ranks)}${label}${more}`)),
      el("div", { class: "bar thin", "aria-hidden": "true" }, el("i", { class: `part-${partOfCause(cause)}`, style: `width:${(100 * share) / scale}%` }))));
}

/**
 * Warns if traced steps differ from the others at the points of these causes; null if they do not.
 */
function tracingNote(items) {
  const differing = items.map(({ point, curve }) => ({ point, curve, share: Math.abs(lossesOf(point).find((loss) => loss.cause === tracing)?.share ?? 0) }))
    .filter(({ share }, i, all) => share > mostTracing && all.findIndex((at) => at.point === all[i].point) === i);
  if (differing.length === 0) return null;
  const text = differing.map(({ share, curve, point }) => `${percent(share, 0)}${items.length > 1 || differing.length > 1 ? ` (${curve.short} on ${rankCount(point.ranks)})` : ""}`).join(", ");
  return el("p", { class: "note" }, `traced steps differ from the others by ${text}: the causes below are uncertain`);
}

/**
 * Names the points whose loss the causes do not explain, and how much traced steps differ; null if
 * there are none.
 */
function unexplainedNote(curves) {
  const parts = curves.flatMap((curve) => {
    const point = headlineOf(curve.points);
    if (!point?.full.waterfall || explains(point)) return [];
    const share = lossesOf(point).find((loss) => loss.cause === tracing)?.share ?? 0;
    return [`${curve.short} on ${rankCount(point.ranks)} (traced steps differ by ${percent(share)})`];
  });
  return parts.length === 0 ? null : el("p", { class: "note" }, `unexplained, too few steps or traced steps unlike the others: ${listed(parts, 4)}`);
}

function causesPanel(curves) {
  const items = causes(curves);
  const unexplained = unexplainedNote(curves);
  if (items.length === 0 && unexplained === null) return null;
  const scale = Math.max(...items.map((at) => at.share));
  return panel("Where time is lost", "waterfall", "all causes", el("div", {}, unexplained, tracingNote(items),
    el("ol", { class: "plain" }, items.map((at) => causeItem(at, scale)))));
}

function panel(title, target, more, content) {
  return el("div", { class: "panel" },
    el("h3", {}, title, target ? el("a", { class: "more", href: `#${target}` }, more) : null), content);
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

function warningItem({ grave, text, target }) {
  return el("li", { class: grave ? "bad" : "warn" },
    el("span", { class: "sign", "aria-hidden": "true" }, grave ? "\u2716" : "\u25b2"),
    target ? el("a", { href: `#${target}` }, text) : el("span", {}, text));
}

function warningsPanel(curves) {
  const all = warningsOf(data.report, curves);
  if (!data.report.runs.some((run) => run.points.some((point) => point.status === "ok"))) {
    all.unshift({ grave: true, text: "no point was measured" });
  }
  if (all.length === 0) {
    return panel("Warnings", null, "", el("p", { class: "good" }, "none: every point was measured and verified as asked"));
  }
  const rest = all.slice(mostWarnings);
  return panel(`Warnings: ${all.length}`, null, "", el("div", {},
    el("ul", { class: "plain lines" }, all.slice(0, mostWarnings).map(warningItem)),
    rest.length === 0 ? null : el("details", {}, el("summary", {}, `${rest.length} more`),
      el("ul", { class: "plain lines" }, rest.map(warningItem)))));
}

function servedPanel() {
  const cards = servedCards();
  return cards.length > 0 ? el("div", { class: "cards" }, cards) : null;
}

/** @param {import("../data.js").Curve[]} curves */
export function overviewSection(curves) {
  const { runs } = data.report;
  return {
    id: "overview",
    title: "Overview",
    quiet: true,
    content: el("div", {},
      el("dl", { class: "facts" }, machineFact(runs), ranFact(runs), launchFact(runs)),
      curves.length > 0 ? [curveCards(curves), servedPanel()] : benchCards(),
      el("div", { class: "panels" }, causesPanel(curves), findingsPanel(curves), warningsPanel(curves))),
  };
}
