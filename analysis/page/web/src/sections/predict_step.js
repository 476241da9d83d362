// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the parts of predicted steps, the losses relative to the baseline, and the best meshes and
// options that a search found, with the reason why each is slower than the first.
import { ownOf } from "../data.js";
import { meshText } from "../format.js";
import { partColumns, partsChart } from "../parts.js";
import { curvesWith, fallen, lastOf } from "../predicted.js";
import { oneOf } from "../select.js";
import { count, memorySize, rate, share, time, words } from "../table.js";
import { waterfallChart } from "./waterfall.js";

const mostSmall = 4;

const partsOf = ({ breakdown }, whole) => ({ parts: breakdown, hidden: breakdown.hidden_communication, whole });

const barOf = (curve, point, name = String(point.ranks)) =>
  ({ ...point, curve: curve.name, name, ...partsOf(point, point.step_time.value) });

const columns = [
  words("curve"), count("ranks"), time("step time", ({ whole }) => whole), ...partColumns,
  share("MFU", ({ mfu }) => mfu), memorySize("memory per rank", (bar) => bar.memory_per_rank), words("limit"),
];

export function predictedStepSection(prediction) {
  const curves = curvesWith(prediction, (point) => point.breakdown !== null);
  if (curves.length === 0) return null;
  const items = curves.flatMap((curve) => curve.points.map((point) => barOf(curve, point)));
  const base = curves[0];
  const overRanks = partsChart({
    id: "predict-step",
    title: `A step, ${base.name}`,
    note: "mean over ranks; waiting that noise causes is part of wait; dashed: communication that computation hides",
    bars: base.points.map((point) => ({ ...barOf(base, point), note: point.fits === false ? "does not fit" : "" })),
    columns,
    items,
    height: 300,
    axis: "ranks",
  });
  // This chart compares the machine as it is with all what-ifs, at the largest rank count.
  const besides = curves.length > 1 && partsChart({
    id: "predict-step-what-if",
    title: "A step at the largest rank count, as it is and as it might be",
    note: "in brackets: ranks",
    bars: curves.map((curve) => barOf(curve, lastOf(curve), `${curve.name} (${lastOf(curve).ranks})`)),
    columns,
    items,
    unit: "seconds",
    across: true,
  });
  return { id: "step", title: "Step", heading: "Where a step would go", blocks: [{ charts: [overRanks, besides] }] };
}

export function predictedLossSection(prediction) {
  const curves = curvesWith(prediction, (point) => point.waterfall !== null && point.waterfall.predicted > 0)
    .map((curve) => ({ ...curve, points: curve.points.map(fallen) }));
  if (curves.length === 0) return null;
  const beside = curves.flatMap((curve) => curve.points);
  const specs = curves.map(({ name, points }, i) =>
    waterfallChart({ id: `predict-waterfall-${i}`, name, points, whole: "predicted", means: "the middle of its interval", beside }));
  const isMany = specs.length > mostSmall + 1;
  const changed = curves.slice(1).map((curve) => curve.name);
  return {
    id: "waterfall",
    title: "Lost time",
    heading: "Where time would be lost",
    blocks: [
      { note: "the ideal step is the baseline's, scaled by work and ranks; shares are of the predicted step" },
      { list: prediction.limits, most: prediction.limits.length },
      { charts: isMany ? [specs[0]] : specs },
      isMany ? oneOf("what if", changed, (i) => [{ charts: [specs[i + 1]] }]) : null],
  };
}

/** Returns the options in which candidates differ, and always the microbatch. */
function tellingOptions(best) {
  const keys = [...new Set(best.flatMap((at) => Object.keys(at.options)))].sort();
  return keys.filter((key) => key === "microbatch" || new Set(best.map((at) => ownOf(at.options, key))).size > 1);
}

const place = { ...count("place"), title: "", csv: "place" };
const bestColumns = [place, words("mesh", ({ mesh }) => meshText(mesh)), time("step time", (at) => at.step_time)];

const candidates = (best, unit) => ({
  columns: [
    ...bestColumns.slice(0, 2), ...tellingOptions(best).map((key) => words(key, ({ options }) => ownOf(options, key))), bestColumns[2],
    share("longer by", (at) => at.step_time / best[0].step_time - 1), rate(unit || "throughput", (at) => at.throughput),
    memorySize("memory per rank", (at) => at.memory_per_rank), words("why it loses to the first", (at) => at.why_not)],
  items: best,
  id: "best-table",
  stacks: true,
});

export function bestSection(prediction) {
  const best = prediction.best.map((at, i) => ({ ...at, place: i + 1 }));
  if (best.length === 0) return null;
  const ranks = Object.values(best[0].mesh).reduce((product, extent) => product * extent, 1);
  const bars = best.filter((at) => at.breakdown !== null)
    .map((at) => ({ ...at, name: `${at.place}: ${meshText(at.mesh)}`, ...partsOf(at, at.step_time) }));
  const steps = bars.length > 0 && partsChart({
    id: "predict-best", title: "Their steps", bars, columns: [...bestColumns, ...partColumns], unit: "seconds", across: true,
  });
  return {
    id: "best",
    title: "Best",
    heading: `The best of ${prediction.searched} meshes and options, on ${ranks} ranks`,
    look: "stacked",
    blocks: [{ table: candidates(best, prediction.throughput_unit) }, { charts: [steps] }],
  };
}
