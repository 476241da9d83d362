// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the predicted efficiency, throughput and step time over ranks with their intervals, as
// curves and as a table with all numbers of predict --format csv.
import { ownOf } from "../data.js";
import { joined, meshText, meshTip, percent, seconds, si } from "../format.js";
import { overRanks, stepTip } from "../marks.js";
import { curvesWith, endsOf, predictedCurves } from "../predicted.js";
import { count, decimal, ends, memorySize, rate, share, time, words } from "../table.js";

const boundsOf = (of) => [of?.value, of?.lower, of?.upper];

const columns = [
  words("curve"), count("ranks"), count("nodes"), words("mesh", ({ mesh }) => mesh && meshText(mesh)),
  ...ends(time, "step time", (row) => boundsOf(row.step_time)), ...ends(rate, "throughput", (row) => boundsOf(row.throughput)),
  decimal("speed-up", (row) => row.speedup?.value), ...ends(share, "efficiency", (row) => boundsOf(row.efficiency)),
  share("noise", (row) => row.uncertainty?.noise), share("launch", (row) => row.uncertainty?.launch), share("model", (row) => row.uncertainty?.fit),
  time("simulated"), time("delay by noise", (row) => row.delay), memorySize("memory per rank", (row) => row.memory_per_rank),
  share("MFU", (row) => row.mfu), words("limit"), words("notes"),
];

function predictedRow(curve, point, hasEfficiency) {
  const notes = joined([point.extrapolated && "extrapolated", point.fits === false && "does not fit in memory"]);
  return { curve: curve.name, notes, ...point, ...(hasEfficiency ? {} : { speedup: null, efficiency: null }) };
}

const measuredRow = ({ step_time: step, throughput, efficiency, ...point }) =>
  ({ ...point, curve: "measured", step_time: { value: step }, throughput: { value: throughput }, efficiency: { value: efficiency } });

/** Returns the numbers of the measured and predicted points of all curves. */
function numbersOf(prediction) {
  const items = predictedCurves(prediction).flatMap((curve) => [
    ...curve.points.map((point) => predictedRow(curve, point, prediction.has_efficiency)),
    ...curve.refused.map(({ ranks, nodes, refused }) => ({ curve: curve.name, ranks, nodes, notes: refused }))]);
  return { columns, items: [...prediction.measured.map(measuredRow), ...items] };
}

const mostValues = 12;

/** Returns the common value, such as "on", or else the values by rank count: "64: 8, 256: 2". */
function overPoints(points, value) {
  const values = points.map(value);
  if (new Set(values).size === 1) return values[0];
  const shown = points.slice(0, mostValues).map((point, i) => `${point.ranks}: ${values[i] ?? "\u2014"}`);
  return shown.join(", ") + (points.length > mostValues ? ` and ${points.length - mostValues} more` : "");
}

/** Returns the table of model, mesh and options, with their differences between rank counts. */
function optionsTable(points) {
  const keys = [...new Set(points.flatMap((point) => Object.keys(point.options)))].sort();
  const items = [
    ["model", (point) => point.model], ["mesh", (point) => meshText(point.mesh)],
    ...keys.map((key) => [key, (point) => ownOf(point.options, key) ?? null])];
  return {
    columns: [words("option", ([key]) => key), words("value (ranks: value, where it differs)", ([, value]) => overPoints(points, value))],
    items, caption: "What would be played", id: "predict-options", most: 60,
  };
}

export function numbersSection(prediction) {
  const [{ points }] = predictedCurves(prediction);
  const caption = `Throughput in ${prediction.throughput_unit || "work/s"}; lower and upper: 90% interval; noise, launch, model: relative standard deviations; simulated and delay are without correction`;
  return {
    id: "numbers",
    title: "Numbers",
    heading: "All numbers",
    look: "stacked",
    blocks: [
      { table: { ...numbersOf(prediction), caption, id: "predict-numbers", most: 40 } },
      points.length > 0 ? { table: optionsTable(points) } : null],
  };
}

const dashes = ["solid", "dashed", "dotted"];

/** Maps each chart to its title and to the format of its values. */
const views = {
  efficiency: { title: "Efficiency", text: (value) => percent(value), axis: (value) => percent(value, 0) },
  throughput: { title: "Throughput", text: (value) => si(value) },
  step_time: { title: "Step time", text: (value) => seconds(value) },
};

function tipOf(point) {
  const { value, lower, upper } = point.step_time;
  return joined([stepTip({ median: value, lower, upper }, "90%"), meshTip(point.mesh), point.extrapolated && "extrapolated",
    point.fits === false && "does not fit in a rank's memory"], "\n");
}

function curveChart(key, curves, prediction) {
  const { title, ...view } = views[key];
  const isShare = key === "efficiency";
  const measured = prediction.measured.filter((point) => point[key] !== null).map((point) => ({ x: point.ranks, y: point[key], tip: meshTip(point.mesh) }));
  const hollow = curves.some((curve) => curve.points.some((point) => point.extrapolated));
  const baseline = prediction.baseline === null ? "" : ` against that on ${prediction.baseline}`;
  return overRanks({
    id: `predict-${key.replace("_", "-")}`,
    title: key === "throughput" ? `${title}, ${prediction.throughput_unit}` : title,
    note: isShare ? joined([`throughput per rank${baseline}; band: holds the value nine times in ten`,
      measured.length > 0 && "diamonds: measured", hollow && "hollow: extrapolated"], "; ") : undefined,
    switches: [
      ...(isShare ? [] : [{ name: "y", label: "values", choices: ["log", "linear"] }]),
      ...(curves.length > 1 ? [{ name: "interval", label: "intervals", choices: ["of the base", "all"] }] : [])],
    table: numbersOf(prediction),
    height: isShare ? 360 : 300,
    lines: (state) => curves.map((curve, i) => ({
      name: curve.name,
      stroke: { type: dashes[i % dashes.length] },
      isBare: i > 0 && state.interval !== "all",
      items: curve.points.map((point) => ({
        // A hollow symbol marks a prediction for far more ranks than were measured.
        x: point.ranks, y: point[key].value, interval: endsOf(point[key]), isHollow: point.extrapolated, tip: tipOf(point),
      })),
    })),
    measured,
    ...view,
    sure: "90%",
    hasBands: true,
    ideal: isShare ? () => 1 : undefined,
  });
}

/** Returns the table that compares each what-if with the base; null if they share no rank count. */
function whatIfTable([base, ...changed], hasEfficiency) {
  const items = changed.flatMap((curve) => curve.points.map((then) => ({ if: curve.name, ranks: then.ranks, then, now: base.points.find((point) => point.ranks === then.ranks) })))
    .filter(({ now }) => now);
  if (items.length === 0) return null;
  const [efficiency, ...bounds] = ends(share, "efficiency then", ({ then }) => [then.efficiency.value, ...(endsOf(then.efficiency) ?? [])]);
  return {
    columns: [
      words("if"), count("ranks"), time("step time", ({ now }) => now.step_time.value),
      { ...time("step time then", ({ then }) => then.step_time.value), title: "then" },
      share("faster by", ({ now, then }) => now.step_time.value / then.step_time.value - 1),
      ...(hasEfficiency ? [share("efficiency", ({ now }) => now.efficiency.value), { ...efficiency, title: "then" }, ...bounds] : [])],
    items,
    caption: hasEfficiency ? "What if: efficiency is against the baseline on the machine so changed" : "What if", id: "what-if", most: 40,
  };
}

export function predictedCurvesSection(prediction) {
  const curves = curvesWith(prediction, () => true);
  if (curves.length === 0) return null;
  const make = (key) => curveChart(key, curves, prediction);
  return {
    id: "curves",
    title: "Curve",
    heading: curves.length > 1 ? "Curves" : "The curve",
    look: "stacked",
    blocks: [
      prediction.has_efficiency ? { chart: make("efficiency") } : null,
      { charts: [make("throughput"), make("step_time")] },
      { table: whatIfTable(curves, prediction.has_efficiency) }],
  };
}
