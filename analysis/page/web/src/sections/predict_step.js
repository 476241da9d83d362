// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The parts of predicted steps: where the time goes, the losses against the baseline, and the best
// meshes and options that a search found, with the reason why each is slower than the first.
import { lossesOf, meaning } from "../causes.js";
import { chart } from "../chart.js";
import { ownOf } from "../data.js";
import { el } from "../dom.js";
import { memory, percent, rankCount, seconds, si } from "../format.js";
import { partCells, partColumns, partsOption, unitSwitch } from "../parts.js";
import { fallen, lastOf, meshText, predictedCurves } from "../predicted.js";
import { oneOf } from "../select.js";
import { table } from "../table.js";
import { stairs, waterfallOption, wholeFrom } from "./waterfall.js";

const mostSmall = 4;
const mostButtons = 10;

const hasParts = (point) => point.breakdown !== null;
const hasWaterfall = (point) => point.waterfall !== null && point.waterfall.predicted > 0;

function barOf(point, name, note = "") {
  return { name, parts: point.breakdown, hidden: point.breakdown.hidden_communication, whole: point.step_time.value, note };
}

const columns = [
  { title: "curve" }, { title: "ranks", number: true },
  { title: "step time", csv: "step time / s", number: true, text: seconds }, ...partColumns,
  { title: "MFU", number: true, text: (value) => percent(value) },
  { title: "memory per rank", csv: "memory per rank / B", number: true, text: memory },
  { title: "limit" },
];

const rowsOf = (curves) => curves.flatMap((curve) => curve.points.filter(hasParts).map((point) => [
  curve.name, point.ranks, point.step_time.value, ...partCells(point.breakdown, point.breakdown.hidden_communication),
  point.mfu, point.memory_per_rank, point.limit]));

function overRanks(base, rows) {
  const bars = base.points.filter(hasParts).map((point) => barOf(point, String(point.ranks), point.fits === false ? "does not fit" : ""));
  return chart({
    id: "predict-step",
    title: `A step, ${base.name}`,
    note: "mean over ranks; waiting that noise causes is part of wait; dashed: communication that computation hides",
    switches: [unitSwitch],
    table: { columns, rows },
    height: 300,
    option: (colours, { unit }, isNarrow) => partsOption(bars, colours, { unit, labels: bars.length <= (isNarrow ? 4 : 10), axis: "ranks", isNarrow }),
  });
}

/** Shows all machines at the largest rank count. */
function besides(curves, rows) {
  const points = curves.map(lastOf);
  const bars = points.map((point, i) => barOf(point, `${curves[i].name} (${point.ranks})`));
  return chart({
    id: "predict-step-what-if",
    title: "A step at the largest rank count, as it is and as it might be",
    note: "in brackets: ranks",
    switches: [{ ...unitSwitch, value: "seconds" }],
    table: { columns, rows },
    height: 50 + 46 * bars.length,
    option: (colours, { unit }, isNarrow) => partsOption(bars, colours, { unit, labels: true, across: true, isNarrow }),
  });
}

export function predictedStepSection(prediction) {
  const curves = predictedCurves(prediction).filter((curve) => curve.points.some(hasParts))
    .map((curve) => ({ ...curve, points: curve.points.filter(hasParts) }));
  if (curves.length === 0) return null;
  const rows = rowsOf(curves);
  return {
    id: "step",
    title: "Step",
    heading: "Where a step would go",
    content: el("div", { class: "charts" }, overRanks(curves[0], rows), curves.length > 1 ? besides(curves, rows) : null),
  };
}

const fallColumns = [
  { title: "curve" }, { title: "ranks", number: true }, { title: "cause" },
  { title: "time", csv: "time / s", number: true, text: seconds },
  { title: "share of the step", number: true, text: (value) => percent(value) }, { title: "what it is" },
];

function fallRows(curve) {
  return curve.points.flatMap((point) => {
    const { ideal, predicted } = point.waterfall;
    return [
      [curve.name, point.ranks, "ideal step", ideal, ideal / predicted, "the baseline's, scaled by work and ranks"],
      ...lossesOf(fallen(point)).map((loss) => [curve.name, point.ranks, loss.cause, loss.seconds, loss.share, meaning(loss.cause)]),
      [curve.name, point.ranks, "predicted step", predicted, 1, "the middle of its interval"],
    ];
  });
}

/** Returns all points, or an even selection with the first and the last if there are many. */
function someOf(points) {
  if (points.length <= mostButtons) return points;
  return Array.from({ length: mostButtons }, (_, i) => points[Math.floor((i * (points.length - 1)) / (mostButtons - 1))]);
}

function waterfallChart(curves, i) {
  const curve = curves[i];
  const shown = someOf(curve.points);
  const counts = shown.map((point) => String(point.ranks));
  const chosen = (state) => shown[counts.indexOf(state.ranks)];
  const last = curve.points.at(-1);
  const lost = 1 - last.waterfall.ideal / last.waterfall.predicted;
  const beside = (ranks) => curves.flatMap((of) => of.points.filter((point) => point.ranks === ranks)).map(fallen);
  return chart({
    id: `predict-waterfall-${i}`,
    title: `Ideal to predicted: ${curve.name}`,
    note: `${percent(lost)} of the step is lost on ${rankCount(last.ranks)}`,
    switches: [{ name: "ranks", label: "ranks", choices: counts, value: counts.at(-1) },
      { name: "axis", label: "axis", choices: ["whole step", "lost time"], value: lost >= wholeFrom ? "whole step" : "lost time" }],
    table: { columns: fallColumns, rows: fallRows(curve) },
    legend: false,
    height: (state) => 44 + 32 * stairs(fallen(chosen(state))).length,
    option: (colours, state, isNarrow) => waterfallOption(fallen(chosen(state)), colours, state, isNarrow, beside(chosen(state).ranks)),
  });
}

export function predictedLossSection(prediction) {
  const curves = predictedCurves(prediction).map((curve) => ({ ...curve, points: curve.points.filter(hasWaterfall) }))
    .filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return null;
  const changed = curves.slice(1);
  return {
    id: "waterfall",
    title: "Lost time",
    heading: "Where time would be lost",
    content: el("div", {},
      el("p", { class: "note" }, "the ideal step is the baseline's, scaled by work and ranks; shares are of the predicted step"),
      prediction.limits.length > 0 ? el("ul", { class: "saying" }, prediction.limits.map((sentence) => el("li", {}, sentence))) : null,
      el("div", { class: "charts" }, waterfallChart(curves, 0),
        changed.length <= mostSmall ? changed.map((_, i) => waterfallChart(curves, i + 1)) : null),
      changed.length > mostSmall ? oneOf("what if", changed.map((curve) => curve.name), (i) => [waterfallChart(curves, i + 1)]) : null),
  };
}

/** Returns the options in which candidates differ, and the microbatch, which always matters. */
function tellingOptions(best) {
  const keys = [...new Set(best.flatMap((at) => Object.keys(at.options)))].sort();
  return keys.filter((key) => key === "microbatch" || new Set(best.map((at) => ownOf(at.options, key))).size > 1);
}

function candidates(best, unit) {
  const keys = tellingOptions(best);
  const first = best[0].step_time;
  return table(
    [{ title: "", csv: "place", number: true }, { title: "mesh" }, ...keys.map((title) => ({ title })),
      { title: "step time", csv: "step time / s", number: true, text: seconds },
      { title: "longer by", number: true, text: (value) => percent(value) },
      { title: unit || "throughput", number: true, text: (value) => si(value) },
      { title: "memory per rank", csv: "memory per rank / B", number: true, text: memory },
      { title: "why it loses to the first" }],
    best.map((at, i) => [i + 1, meshText(at.mesh), ...keys.map((key) => ownOf(at.options, key) ?? null), at.step_time, at.step_time / first - 1,
      at.throughput, at.memory_per_rank, at.why_not]),
    { id: "best-table", stacks: true });
}

function steps(best) {
  const shown = best.map((at, i) => ({ ...at, place: i + 1 })).filter((at) => at.breakdown !== null);
  if (shown.length === 0) return null;
  const bars = shown.map((at) => ({
    name: `${at.place}: ${meshText(at.mesh)}`, parts: at.breakdown, hidden: at.breakdown.hidden_communication, whole: at.step_time, note: "",
  }));
  return chart({
    id: "predict-best",
    title: "Their steps",
    switches: [{ ...unitSwitch, value: "seconds" }],
    table: {
      columns: [{ title: "", csv: "place", number: true }, { title: "mesh" }, { title: "step time", csv: "step time / s", number: true, text: seconds }, ...partColumns],
      rows: shown.map((at) => [at.place, meshText(at.mesh), at.step_time, ...partCells(at.breakdown, at.breakdown.hidden_communication)]),
    },
    height: 50 + 42 * bars.length,
    option: (colours, { unit }, isNarrow) => partsOption(bars, colours, { unit, labels: true, across: true, isNarrow }),
  });
}

export function bestSection(prediction) {
  const { best, searched } = prediction;
  if (best.length === 0) return null;
  const ranks = Object.values(best[0].mesh).reduce((product, extent) => product * extent, 1);
  return {
    id: "best",
    title: "Best",
    heading: `The best of ${searched} meshes and options, on ${ranks} ranks`,
    content: el("div", { class: "stacked" }, candidates(best, prediction.throughput_unit), steps(best)),
  };
}
