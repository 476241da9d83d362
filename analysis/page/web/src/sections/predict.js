// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the page of a prediction: the predicted result first, then curves, intervals with their
// sources and the measurement that would narrow them, causes, numbers.
import { card, cardGrid, causeItem, efficiencyBar, fact, panel, thinBar, warningsPanel } from "../blocks.js";
import { lossesOf } from "../causes.js";
import { copyButton, el } from "../dom.js";
import { fixed, joined, known, memory, missing, percent, rankCount, seconds, si } from "../format.js";
import { curvesWith, endsOf, fallen, lastOf, predictedCurves, together } from "../predicted.js";
import { count, share, words } from "../table.js";
import { numbersSection, predictedCurvesSection } from "./predict_curves.js";
import { bestSection, predictedLossSection, predictedStepSection } from "./predict_step.js";

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
  return {
    id: "predict-uncertainty",
    title: "What the interval is made of",
    note: `relative standard deviations, which add up in squares; the interval is the value times and over exp(1.645 \u00d7 all together); ${
      used.map(({ name, meaning }) => `${name}: ${meaning}`).join("; ")}`,
    table: {
      columns: [words("curve"), count("ranks"), ...sources.map(({ name, key }) => share(name, ({ uncertainty }) => uncertainty[key], 2)),
        share(all, ({ uncertainty }) => together(uncertainty), 2)],
      items: curves.flatMap((curve) => curve.points.map((point) => ({ curve: curve.name, ...point }))),
    },
    height: 280,
    option: (colours) => ({
      xAxis: { type: "category", data: counts, name: "ranks" },
      yAxis: { min: 0, format: (value) => percent(value, value < 0.0995 ? 1 : 0) },
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" } },
      tip: (items) => [`${counts[items[0].dataIndex]} ranks`, ...items.map(({ seriesName, value }) => `${seriesName}: \u00b1${percent(value, 2)}`)].join("\n"),
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
  };
}

/**
 * Shows the measurement that would narrow the interval most: its description, its command, and the
 * width of the interval now and after it.
 */
function nextContent({ what, command, width_now: now, width_then: then }) {
  const bar = (name, width) => el("div", { class: "cause" }, el("b", {}, percent(width)),
    el("div", {}, el("span", { class: "faint" }, name), thinBar("reached", Math.min(1, width / Math.max(now, then)))));
  return el("div", {},
    el("p", {}, el("b", {}, what)),
    command ? el("p", {}, el("code", {}, command), " ", copyButton("copy", () => command)) : null,
    bar("width of the interval at the largest rank count, now", now),
    bar("with that measured", then));
}

function intervalSection(prediction) {
  const curves = curvesWith(prediction, () => true);
  if (curves.length === 0) return null;
  const next = prediction.next && panel("Measure this next", null, "", nextContent(prediction.next));
  if (next) next.id = "next";
  return { id: "interval", title: "Interval", heading: "Where the interval comes from", blocks: [{ charts: [uncertaintyChart(curves), next] }] };
}

const mostCards = 8;
const mostCauses = 3;
const mostWarnings = 6;

function facts(prediction) {
  const { baseline, correction, has_efficiency: hasEfficiency, measured, node_ranks: onNode } = prediction;
  const most = measured.length > 0 ? Math.max(...measured.map((point) => point.ranks)) : null;
  return el("dl", { class: "facts" },
    fact("machine", prediction.machine || missing, `nodes of ${rankCount(onNode)}`),
    fact("would play", prediction.title || prediction.workload, hasEfficiency && baseline !== null && `efficiency against that on ${rankCount(baseline)}`),
    fact("predicted from", prediction.source || missing, joined([
      most === null ? "a data sheet: nothing was measured" : `measured up to ${rankCount(most)}`,
      correction !== null && `simulated step times \u00d7 ${fixed(correction, 3)}, which measured ones are of them`], " \u00b7 ")));
}

const badgesOf = (point) => [
  ...(point.extrapolated ? [{ text: "extrapolated", kind: "warn" }] : []),
  ...(point.fits === false ? [{ text: `does not fit: needs ${memory(point.memory_per_rank)} a rank`, kind: "bad" }] : []),
];

function cardOf(curve, prediction, scale) {
  const point = lastOf(curve);
  const named = { title: curve.name, full: curve.name };
  if (!point) {
    const at = curve.refused.at(-1);
    return card({ ...named, ranks: at?.ranks ?? 0, value: missing, look: "labelled", lines: [at?.refused ?? "nothing was predicted"] });
  }
  const rate = endsOf(point.throughput);
  const between = (of, text) => (endsOf(of) ? ` (${endsOf(of).map(text).join(" to ")})` : "");
  const { efficiency, step_time: time } = point;
  return card({
    ...named, ranks: point.ranks, value: si(point.throughput.value / point.ranks), badges: badgesOf(point),
    beside: [el("span", {}, `${prediction.throughput_unit}/rank`),
      rate ? el("span", { class: "note", title: "90% interval" }, rate.map((end) => si(end / point.ranks)).join(" to ")) : null],
    lines: [joined([point.mfu !== null && `MFU ${percent(point.mfu)}`, `${seconds(time.value)} a step${between(time, (at) => seconds(at))}`], " \u00b7 "),
      prediction.has_efficiency && `efficiency ${percent(efficiency.value)}${between(efficiency, (at) => percent(at))}`],
    bar: prediction.has_efficiency ? efficiencyBar(efficiency.value, endsOf(efficiency), scale) : null,
  });
}

function cards(prediction, curves) {
  const reached = curves.map(lastOf).filter(Boolean).flatMap((point) => [point.efficiency.value, point.efficiency.upper]);
  const scale = Math.max(1, ...reached.filter((value) => known(value) && value < 2));
  return el("div", {},
    el("p", { class: "note" }, `predicted throughput per rank at the largest rank count, with its 90% interval${prediction.has_efficiency ? "; then efficiency against the baseline, the bar's end is ideal" : ""}`),
    cardGrid(curves.map((curve) => cardOf(curve, prediction, scale)), mostCards, "what-ifs"));
}

function causesPanel(base) {
  const point = lastOf({ points: base.points.filter((at) => at.waterfall !== null) });
  const lost = point ? lossesOf(fallen(point)).filter((loss) => loss.share > 0).slice(0, mostCauses) : [];
  if (lost.length === 0) return null;
  return panel(`Where time would be lost, on ${rankCount(point.ranks)}`, "waterfall", "all causes",
    el("ol", { class: "plain" }, lost.map((loss) => causeItem(loss, lost[0].share))));
}

function overviewSection(prediction) {
  const curves = predictedCurves(prediction);
  const warnings = [...curves[0].refused.map((at) => ({ grave: true, text: at.refused })), ...prediction.warnings.map((text) => ({ text }))];
  return {
    id: "overview",
    title: "Overview",
    quiet: true,
    blocks: [
      facts(prediction), cards(prediction, curves),
      el("div", { class: "panels" }, causesPanel(curves[0]),
        prediction.next ? panel("Measure this next", "interval", "why", nextContent(prediction.next)) : null,
        warningsPanel(warnings, mostWarnings, "none"))],
  };
}

/**
 * Returns a function for each section of the page; it returns null if the section is empty.
 * @param {object} prediction as predict --format json writes it
 */
export function predictSections(prediction) {
  const makers = [overviewSection, predictedCurvesSection, intervalSection, predictedStepSection, predictedLossSection, bestSection, numbersSection];
  return makers.map((make) => () => make(prediction));
}
