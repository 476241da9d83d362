// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The page of a prediction: what would be reached first, then curves, intervals, causes, numbers.
import { lossesOf, meaning, partOfCause } from "../causes.js";
import { el } from "../dom.js";
import { fixed, memory, missing, percent, rankCount, seconds, si } from "../format.js";
import { endsOf, fallen, lastOf, predictedCurves } from "../predicted.js";
import { bar } from "./cards.js";
import { bestSection } from "./predict_best.js";
import { predictedCurvesSection } from "./predict_curves.js";
import { intervalSection, nextContent } from "./predict_interval.js";
import { numbersSection } from "./predict_numbers.js";
import { predictedLossSection, predictedStepSection } from "./predict_step.js";

const mostCards = 8;
const mostCauses = 3;
const mostWarnings = 6;

function fact(name, title, details) {
  return el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, el("b", {}, title)), details ? el("dd", { class: "note" }, details) : null);
}

function facts(prediction) {
  const { baseline, correction, has_efficiency: hasEfficiency, measured, node_ranks: onNode } = prediction;
  const most = measured.length > 0 ? Math.max(...measured.map((point) => point.ranks)) : null;
  return el("dl", { class: "facts" },
    fact("machine", prediction.machine || missing, `nodes of ${rankCount(onNode)}`),
    fact("would play", prediction.title || prediction.workload, hasEfficiency && baseline !== null ? `efficiency against that on ${rankCount(baseline)}` : null),
    fact("predicted from", prediction.source || missing,
      [most === null ? "a data sheet: nothing was measured" : `measured up to ${rankCount(most)}`,
        correction === null ? "" : `simulated step times \u00d7 ${fixed(correction, 3)}, which measured ones are of them`].filter(Boolean).join(" \u00b7 ")));
}

function badges(point) {
  const all = [
    ...(point.extrapolated ? [{ text: "extrapolated", kind: "warn" }] : []),
    ...(point.fits === false ? [{ text: `does not fit: needs ${memory(point.memory_per_rank)} a rank`, kind: "bad" }] : []),
  ];
  return el("p", { class: "badges" }, all.map(({ text, kind }) => el("span", { class: `badge ${kind}` }, text)));
}

function cardTitle(curve, ranks) {
  return el("div", { class: "card-title" }, el("h3", { title: curve.name }, curve.name), el("span", {}, rankCount(ranks)));
}

function refusedCard(curve) {
  const at = curve.refused.at(-1);
  return el("article", { class: "card labelled" }, cardTitle(curve, at?.ranks ?? 0),
    el("div", { class: "headline" }, el("b", { class: "huge" }, missing)), el("p", { class: "note" }, at?.refused ?? "nothing was predicted"));
}

function card(curve, prediction, scale) {
  const point = lastOf(curve);
  if (!point) return refusedCard(curve);
  const ends = endsOf(point.efficiency);
  const rate = endsOf(point.throughput);
  const time = endsOf(point.step_time);
  const unit = `${prediction.throughput_unit}/rank`;
  const between = (of, text) => (of ? ` (${text(of[0])} to ${text(of[1])})` : "");
  const efficiency = () => [
    el("p", { class: "note" }, `efficiency ${percent(point.efficiency.value)}${between(ends, (value) => percent(value))}`),
    bar({ efficiency: point.efficiency.value, efficiencyInterval: ends }, scale)];
  return el("article", { class: "card" }, cardTitle(curve, point.ranks),
    el("div", { class: "headline" }, el("b", { class: "huge" }, si(point.throughput.value / point.ranks)), el("span", {}, unit),
      rate ? el("span", { class: "note", title: "90% interval" }, `${si(rate[0] / point.ranks)} to ${si(rate[1] / point.ranks)}`) : null),
    el("p", { class: "note" }, `${point.mfu === null ? "" : `MFU ${percent(point.mfu)} \u00b7 `}${seconds(point.step_time.value)} a step${between(time, seconds)}`),
    ...(prediction.has_efficiency ? efficiency() : []),
    badges(point));
}

function cards(prediction, curves) {
  const reached = curves.map((curve) => lastOf(curve)).filter(Boolean).flatMap((point) => [point.efficiency.value, point.efficiency.upper]);
  const scale = Math.max(1, ...reached.filter((value) => Number.isFinite(value) && value < 2));
  const made = curves.map((curve) => card(curve, prediction, scale));
  return el("div", {},
    el("p", { class: "note" }, `predicted throughput per rank at the largest rank count, with its 90% interval${prediction.has_efficiency ? "; then efficiency against the baseline, the bar's end is ideal" : ""}`),
    el("div", { class: made.length <= 4 ? "cards few" : "cards" }, made.slice(0, mostCards)),
    made.length <= mostCards ? null
      : el("details", {}, el("summary", {}, `${made.length - mostCards} more what-ifs`), el("div", { class: "cards" }, made.slice(mostCards))));
}

function panel(title, target, more, ...content) {
  return el("div", { class: "panel" }, el("h3", {}, title, target ? el("a", { class: "more", href: `#${target}` }, more) : null), content);
}

function causeItem({ cause, share }, most) {
  return el("li", { class: "cause", title: meaning(cause) },
    el("b", { class: "big" }, percent(share, share < 0.0995 ? 1 : 0)),
    el("div", {}, el("div", {}, el("b", {}, cause), " of the step"),
      el("div", { class: "bar thin", "aria-hidden": "true" }, el("i", { class: `part-${partOfCause(cause)}`, style: `width:${(100 * share) / most}%` }))));
}

function causesPanel(base) {
  const point = lastOf({ points: base.points.filter((at) => at.waterfall !== null) });
  const lost = point ? lossesOf(fallen(point)).filter((loss) => loss.share > 0).slice(0, mostCauses) : [];
  if (lost.length === 0) return null;
  return panel(`Where time would be lost, on ${rankCount(point.ranks)}`, "waterfall", "all causes",
    el("ol", { class: "plain" }, lost.map((loss) => causeItem(loss, lost[0].share))));
}

function warningsPanel(prediction, curves) {
  const refused = curves[0].refused.map((at) => ({ grave: true, text: at.refused }));
  const all = [...refused, ...prediction.warnings.map((text) => ({ grave: false, text }))];
  if (all.length === 0) return panel("Warnings", null, "", el("p", { class: "good" }, "none"));
  const item = ({ grave, text }) => el("li", { class: grave ? "bad" : "warn" },
    el("span", { class: "sign", "aria-hidden": "true" }, grave ? "\u2716" : "\u25b2"), el("span", {}, text));
  const rest = all.slice(mostWarnings);
  return panel(`Warnings: ${all.length}`, null, "", el("ul", { class: "plain lines" }, all.slice(0, mostWarnings).map(item)),
    rest.length === 0 ? null : el("details", {}, el("summary", {}, `${rest.length} more`), el("ul", { class: "plain lines" }, rest.map(item))));
}

function overviewSection(prediction, curves) {
  return {
    id: "overview",
    title: "Overview",
    quiet: true,
    content: el("div", {}, facts(prediction), cards(prediction, curves),
      el("div", { class: "panels" }, causesPanel(curves[0]),
        prediction.next ? panel("Measure this next", "interval", "why", nextContent(prediction.next)) : null,
        warningsPanel(prediction, curves))),
  };
}

/** "Isoscale: dp predicted on 1024 ranks" */
export function titleOfPrediction(prediction) {
  const ranks = Math.max(...prediction.curve.points.map((point) => point.ranks));
  return `Isoscale: ${prediction.workload} predicted on ${rankCount(ranks)}`;
}

/**
 * The sections of the page, each behind a function; null of one has nothing to show.
 * @param {object} prediction as predict --format json writes it
 */
export function predictSections(prediction) {
  return [
    () => overviewSection(prediction, predictedCurves(prediction)),
    () => predictedCurvesSection(prediction),
    () => intervalSection(prediction),
    () => predictedStepSection(prediction),
    () => predictedLossSection(prediction),
    () => bestSection(prediction),
    () => numbersSection(prediction),
  ];
}
