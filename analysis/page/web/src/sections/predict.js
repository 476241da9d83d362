// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The page of a prediction: the predicted result first, then curves, intervals with their sources
// and the measurement that would narrow them, causes, numbers.
import { lossesOf, meaning, partOfCause } from "../causes.js";
import { chart } from "../chart.js";
import { copyText, el } from "../dom.js";
import { fixed, memory, missing, percent, rankCount, seconds, si } from "../format.js";
import { endsOf, fallen, lastOf, predictedCurves, together } from "../predicted.js";
import { bar } from "./cards.js";
import { numbersSection, predictedCurvesSection } from "./predict_curves.js";
import { bestSection, predictedLossSection, predictedStepSection } from "./predict_step.js";

const share = (value) => percent(value, value < 0.0995 ? 1 : 0);

const sources = [
  { name: "noise", key: "noise", part: "wait", meaning: "of the step time, from step to step" },
  { name: "launch", key: "launch", part: "copies", meaning: "of the median step, from launch to launch" },
  { name: "model", key: "fit", part: "compute", meaning: "what it misses of known points, and of its extrapolation" },
];
const all = "together";

function uncertaintyChart(curves) {
  const [{ points }] = curves;
  const counts = points.map((point) => String(point.ranks));
  const used = sources.filter(({ key }) => points.some((point) => point.uncertainty[key] > 0));
  return chart({
    id: "predict-uncertainty",
    title: "What the interval is made of",
    note: `relative standard deviations, which add up in squares; the interval is the value times and over exp(1.645 \u00d7 all together); ${
      used.map(({ name, meaning }) => `${name}: ${meaning}`).join("; ")}`,
    table: {
      columns: [{ title: "curve" }, { title: "ranks", number: true },
        ...[...sources.map(({ name }) => name), all].map((title) => ({ title, number: true, text: (value) => percent(value, 2) }))],
      rows: curves.flatMap((curve) => curve.points.map((point) =>
        [curve.name, point.ranks, ...sources.map(({ key }) => point.uncertainty[key]), together(point.uncertainty)])),
    },
    height: 280,
    option: (colours) => ({
      xAxis: { type: "category", data: counts, name: "ranks", nameLocation: "middle", nameGap: 26, axisTick: { show: false } },
      yAxis: { type: "value", min: 0, axisLabel: { formatter: share } },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: (items) => [`${counts[items[0].dataIndex]} ranks`, ...items.map(({ seriesName, value }) => `${seriesName}: \u00b1${percent(value, 2)}`)].join("\n"),
      },
      series: [
        ...used.map(({ name, key, part }) => ({
          type: "bar", name, barMaxWidth: 28, itemStyle: { color: colours.parts[part] }, data: points.map((point) => point.uncertainty[key]),
        })),
        {
          type: "line", name: all, data: points.map((point) => together(point.uncertainty)), symbol: "diamond", symbolSize: 10,
          itemStyle: { color: colours.text }, lineStyle: { color: colours.text, width: 1.5, type: "dashed" },
        },
      ],
    }),
  });
}

/**
 * Shows the measurement that helps most: what it is, how to make it, and how wide the interval is
 * then.
 */
export function nextContent(next) {
  const copy = el("button", {
    type: "button",
    class: "quiet",
    on: {
      click: async () => {
        await copyText(next.command);
        copy.textContent = "copied";
        setTimeout(() => { copy.textContent = "copy"; }, 1500);
      },
    },
  }, "copy");
  const bar = (name, width) => el("div", { class: "cause" }, el("b", {}, percent(width)),
    el("div", {}, el("span", { class: "faint" }, name),
      el("div", { class: "bar thin", "aria-hidden": "true" }, el("i", { class: "reached", style: `width:${Math.min(100, (100 * width) / Math.max(next.width_now, next.width_then))}%` }))));
  return el("div", {},
    el("p", {}, el("b", {}, next.what)),
    next.command ? el("p", {}, el("code", {}, next.command), " ", copy) : null,
    bar("width of the interval at the largest rank count, now", next.width_now),
    bar("with that measured", next.width_then));
}

export function intervalSection(prediction) {
  const curves = predictedCurves(prediction).filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return null;
  return {
    id: "interval",
    title: "Interval",
    heading: "Where the interval comes from",
    content: el("div", { class: "charts" },
      uncertaintyChart(curves),
      prediction.next ? el("div", { class: "panel", id: "next" }, el("h3", {}, "Measure this next"), nextContent(prediction.next)) : null),
  };
}

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

/** Returns "Isoscale: dp predicted on 1024 ranks" */
export function titleOfPrediction(prediction) {
  const ranks = Math.max(...prediction.curve.points.map((point) => point.ranks));
  return `Isoscale: ${prediction.workload} predicted on ${rankCount(ranks)}`;
}

/**
 * Returns a function for each section of the page; it returns null if the section is empty.
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
