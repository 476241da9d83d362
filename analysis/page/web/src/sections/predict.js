// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the page of a prediction (predict --format json): the predicted result, curves over ranks,
// the sources of the intervals' widths, steps, losses, the best meshes and options, all numbers.
import {
  card, cardGrid, causeItem, column, columns, copyButton, distinct, dotted, efficiencyBar, el, ends, endsOf, fact, fixed,
  joined, known, largest, lined, located, lossesOf, memory, meshText, metricsOf, missing, note, oneOf, overRanks, ownOf, panel,
  percent, pointTip, rankCount, scales, seconds, shareText, si, thinBar, tipOfAll, viewOf, warningsPanel,
} from "../reexports.js";
import { partColumns, partsChart } from "./breakdown.js";
import { waterfallChart } from "./losses.js";

/** Returns the curve of the machine as it is, followed by those of the what-ifs (changed machines):
 * {name, points, refused}. Names are unique; `refused` has the points that cannot be predicted. */
export function predictedCurves(prediction) {
  const all = [prediction.curve, ...prediction.what_if];
  const names = distinct(all.map((curve) => curve.title));
  return all.map(({ points }, i) => ({
    name: names[i], points: points.filter((point) => point.refused === null), refused: points.filter((point) => point.refused !== null),
  }));
}

/** Returns the curves that have points for which `passes` is true, with these points alone. */
const curvesWith = (prediction, passes = () => true) => predictedCurves(prediction)
  .map((curve) => ({ ...curve, points: curve.points.filter(passes) })).filter((curve) => curve.points.length > 0);

const lastOf = ({ points }) => largest(points);
/** Returns a predicted value, with null bounds if its interval is empty, as at the baseline. */
const sureOf = (at) => (at.lower < at.upper ? at : located(at.value, null));
/** Converts a predicted point to the form of a measured point, which the waterfall chart takes. */
const fallen = ({ ranks, mesh, step_time, waterfall: { ideal, predicted, lost } }) =>
  ({ ranks, mesh, step_time, labels: [], full: { waterfall: { ideal, measured: predicted, lost, missing: [] } } });

const numbers = columns("forecast", "curve, ranks, nodes", { mesh: ({ mesh }) => mesh && meshText(mesh) },
  "step_time~, throughput~, speedup, efficiency~, noise=uncertainty.noise, launch=uncertainty.launch, fit=uncertainty.fit",
  "simulated, delay, memory_per_rank, mfu, limit, notes");

const measuredRow = ({ step_time: step, throughput, efficiency, ...point }) =>
  ({ ...point, curve: "measured", step_time: { value: step }, throughput: { value: throughput }, efficiency: { value: efficiency } });

function numbersOf(prediction) {
  const blank = prediction.has_efficiency ? {} : { speedup: null, efficiency: null };
  const notesOf = ({ extrapolated, fits }) => joined([extrapolated && "extrapolated", fits === false && "does not fit in memory"]);
  const items = predictedCurves(prediction).flatMap(({ name, points, refused }) => [
    ...points.map((point) => ({ curve: name, notes: notesOf(point), ...point, ...blank })),
    ...refused.map((point) => ({ curve: name, ranks: point.ranks, nodes: point.nodes, notes: point.refused }))]);
  return { columns: numbers, items: [...prediction.measured.map(measuredRow), ...items] };
}

const mostValues = 12; // limit on the values in one table cell

/** Returns the value that all points share, or the values by rank count: "64: 8, 256: 2". */
function overPoints(points, value) {
  const values = points.map(value);
  if (new Set(values).size === 1) return values[0];
  const shown = points.slice(0, mostValues).map((point, i) => `${point.ranks}: ${values[i] ?? "\u2014"}`);
  return shown.join(", ") + (points.length > mostValues ? ` and ${points.length - mostValues} more` : "");
}

const optionKeys = (all) => [...new Set(all.flatMap((at) => Object.keys(at.options)))].sort();

/** Returns the table of model, mesh and options, by rank count where they differ. */
const optionsTable = (points) => ({
  columns: columns("", { option: ([key]) => key, "value (ranks: value, where it differs)": ([, value]) => overPoints(points, value) }),
  items: [
    ["model", (point) => point.model], ["mesh", (point) => meshText(point.mesh)],
    ...optionKeys(points).map((key) => [key, (point) => ownOf(point.options, key) ?? null])],
  caption: "What would be played", id: "predict-options", most: 60,
});

export const numbersBlocks = ({ prediction, curves: [{ points }] }) => [
  { table: {
    ...numbersOf(prediction), id: "predict-numbers", most: 40,
    caption: `Throughput in ${prediction.throughput_unit || "work/s"}; lower and upper: 90% interval; noise, launch, model: relative standard deviations; simulated and delay are without correction`,
  } },
  points.length > 0 && { table: optionsTable(points) }];

const dashes = ["solid", "dashed", "dotted"];
const sure = "90%"; // the probability with which the interval of a prediction contains the value

const tipOf = (point) =>
  lined(pointTip(point, sure), point.extrapolated && "extrapolated", point.fits === false && "does not fit in a rank's memory");

function curveChart(key, curves, prediction) {
  const isShare = key === "efficiency";
  const measured = prediction.measured.filter((point) => point[key] !== null)
    .map((point) => ({ x: point.ranks, y: point[key], tip: pointTip({ ...point, step_time: { value: point.step_time } }) }));
  const baseline = prediction.baseline === null ? "" : ` against that on ${prediction.baseline}`;
  // A hollow symbol marks a prediction for far more ranks than were measured.
  const isHollow = (point) => point.extrapolated;
  return overRanks({
    id: `predict-${key.replace("_", "-")}`,
    ...viewOf(key),
    title: joined([viewOf(key).title, key === "throughput" && prediction.throughput_unit]),
    note: isShare ? joined([`throughput per rank${baseline}; band: the true value is expected in it nine times in ten`,
      measured.length > 0 && "diamonds: measured", curves.some(({ points }) => points.some(isHollow)) && "hollow: extrapolated"], "; ") : undefined,
    switches: [
      ...(isShare ? [] : [scales("log", "linear")]),
      ...(curves.length > 1 ? [{ name: "interval", label: "intervals", choices: ["of the base", "all"] }] : [])],
    table: numbersOf(prediction),
    height: isShare ? 360 : 300,
    lines: (state) => curves.map(({ name, points }, i) =>
      ({ name, points, stroke: { type: dashes[i % dashes.length] }, isBare: i > 0 && state.interval !== "all" })),
    figure: (point) => sureOf(point[key]),
    isHollow, tipOf, measured, sure, hasBands: true,
    ideal: isShare ? () => 1 : undefined,
  });
}

/** Returns the table of each what-if against the machine as it is, where both have a point. */
function whatIfTable([base, ...changed], hasEfficiency) {
  const items = changed.flatMap((curve) => curve.points.map((then) => ({ if: curve.name, ranks: then.ranks, then, now: base.points.find((point) => point.ranks === then.ranks) })))
    .filter(({ now }) => now);
  const efficiencyThen = ({ then: { efficiency: at } }) => [at.value, ...(endsOf(sureOf(at)) ?? [])];
  const [efficiency, ...bounds] = ends("efficiency then", efficiencyThen, { form: "share" });
  return {
    columns: columns("forecast", "if, ranks, step_time=now.step_time",
      column("then", ({ then }) => then.step_time.value, { form: "seconds", csv: "step time then / s" }),
      column("faster by", ({ now, then }) => now.step_time.value / then.step_time.value - 1, { form: "share" }),
      hasEfficiency ? columns("forecast", "efficiency=now.efficiency", { ...efficiency, title: "then" }, bounds) : []),
    items,
    caption: hasEfficiency ? "What if: efficiency is against the baseline on the machine so changed" : "What if", id: "what-if", most: 40,
  };
}

export const predictedHeading = ({ prediction }) => (curvesWith(prediction).length > 1 ? "Curves" : "The curve");

export function predictedCurvesBlocks({ prediction }) {
  const curves = curvesWith(prediction);
  return curves.length > 0 && [
    prediction.has_efficiency && { chart: curveChart("efficiency", curves, prediction) },
    { charts: ["throughput", "step_time"].map((key) => curveChart(key, curves, prediction)) },
    { table: whatIfTable(curves, prediction.has_efficiency) }];
}

const partsOf = ({ breakdown }, whole) => ({ parts: breakdown, hidden: breakdown.hidden_communication, whole });
const barOf = (curve, point, name = String(point.ranks)) =>
  ({ ...point, curve: curve.name, name, ...partsOf(point, point.step_time.value), tip: tipOf(point) });
const stepNumbers = columns("forecast", "curve, ranks, step_time=whole", partColumns, "mfu, memory_per_rank, limit");

export function predictedStepBlocks({ prediction }) {
  const curves = curvesWith(prediction, (point) => point.breakdown !== null);
  if (curves.length === 0) return [];
  const items = curves.flatMap((curve) => curve.points.map((point) => barOf(curve, point)));
  const base = curves[0];
  const ofBase = partsChart({
    id: "predict-step", title: `A step, ${base.name}`,
    note: "mean over ranks; waiting that noise causes is part of wait; dashed: communication that computation hides",
    bars: base.points.map((point) => ({ ...barOf(base, point), note: point.fits === false ? "does not fit" : "" })),
    numbers: stepNumbers, items, height: 300, axis: "ranks",
  });
  // This chart has the machine as it is beside all what-ifs, at the largest rank count.
  const besides = curves.length > 1 && partsChart({
    id: "predict-step-what-if", title: "A step at the largest rank count, as it is and as it might be",
    note: "in brackets: ranks",
    bars: curves.map((curve) => barOf(curve, lastOf(curve), `${curve.name} (${lastOf(curve).ranks})`)),
    numbers: stepNumbers, items, unit: "seconds", across: true,
  });
  return [{ charts: [ofBase, besides] }];
}

export function predictedLossBlocks({ prediction }) {
  const curves = curvesWith(prediction, (point) => point.waterfall !== null && point.waterfall.predicted > 0)
    .map((curve) => ({ ...curve, points: curve.points.map(fallen) }));
  const beside = curves.flatMap((curve) => curve.points);
  const specs = curves.map(({ name, points }, i) =>
    waterfallChart({ id: `predict-waterfall-${i}`, name, points, whole: "predicted", means: "the middle of its interval", sure, beside }));
  const isMany = specs.length > 5;
  return curves.length > 0 && [
    { note: "the ideal step is the baseline's, scaled by work and ranks; shares are of the predicted step" },
    { list: prediction.limits, most: prediction.limits.length },
    { charts: isMany ? [specs[0]] : specs },
    isMany && oneOf("what if", curves.slice(1).map((curve) => curve.name), (i) => [{ charts: [specs[i + 1]] }])];
}

const bestColumns = columns("forecast", { ...column("place", null, { form: "count" }), title: "", csv: "place" }, { mesh: ({ mesh }) => meshText(mesh) },
  "step_time");

/** Returns the table of the best candidates, with microbatch and the options that differ. */
function candidates(best, unit) {
  const telling = optionKeys(best).filter((key) => key === "microbatch" || new Set(best.map((at) => ownOf(at.options, key))).size > 1);
  return {
    columns: columns("forecast", bestColumns.slice(0, 2), telling.map((key) => column(key, ({ options }) => ownOf(options, key))), bestColumns[2],
      column("longer by", (at) => at.step_time / best[0].step_time - 1, { form: "share" }),
      column(unit || "throughput", (at) => at.throughput, { form: "prefixed" }), "memory_per_rank, why it loses to the first=why_not"),
    items: best, id: "best-table", stacks: true,
  };
}

/** Returns the heading with the number of candidates that were searched and the rank count. */
export function bestHeading({ prediction: { best, searched } }) {
  const ranks = Object.values(best[0].mesh).reduce((product, extent) => product * extent, 1);
  return `The fastest of ${searched} meshes and options on ${ranks} ranks, and others that were simulated`;
}

export function bestBlocks({ prediction }) {
  const best = prediction.best.map((at, i) => ({ ...at, place: i + 1 }));
  const bars = best.filter((at) => at.breakdown !== null)
    .map((at) => ({ ...at, name: `${at.place}: ${meshText(at.mesh)}`, ...partsOf(at, at.step_time) }));
  const steps = bars.length > 0 && partsChart({
    id: "predict-best", title: "Their steps", bars, numbers: columns("", bestColumns, partColumns), unit: "seconds", across: true,
  });
  return best.length > 0 && [{ table: candidates(best, prediction.throughput_unit) }, { charts: [steps] }];
}

/** The sources of an interval's width; each has the colour of a `part` of a step. */
const sources = [["noise", "wait"], ["launch", "copies"], ["fit", "compute"]].map(([key, part]) => {
  const { heading: name, sentence: meaning } = metricsOf("forecast")[key];
  return { key, name, meaning, part };
});
const allTogether = "together";
/** Combines the independent sources of uncertainty, all relative standard deviations, into one. */
const together = ({ noise, launch, fit }) => Math.hypot(noise, launch, fit);

function uncertaintyChart(curves) {
  const [{ points }] = curves;
  const counts = points.map((point) => String(point.ranks));
  const used = sources.filter(({ key }) => points.some((point) => point.uncertainty[key] > 0));
  const share = (title, value) => column(title, (point) => value(point.uncertainty), { form: "share", text: (at) => percent(at, 2) });
  return {
    id: "predict-uncertainty", title: "What the interval is made of",
    note: `relative standard deviations, which add up in squares; the interval is the value times and over exp(1.645 \u00d7 all together); ${
      used.map(({ name, meaning }) => `${name}: ${meaning}`).join("; ")}`,
    table: {
      columns: columns("forecast", "curve, ranks", sources.map(({ name, key }) => share(name, (of) => of[key])), share(allTogether, together)),
      items: curves.flatMap((curve) => curve.points.map((point) => ({ curve: curve.name, ...point }))),
    },
    height: 280,
    option: (colours) => ({
      xAxis: { type: "category", data: counts, name: "ranks" }, yAxis: { min: 0, format: shareText },
      tooltip: tipOfAll,
      tip: (items) => lined(`${counts[items[0].dataIndex]} ranks`,
        ...items.map(({ seriesName, value }) => `${seriesName}: \u00b1${percent(value, 2)}`), tipOf(points[items[0].dataIndex])),
      series: [
        ...used.map(({ name, key, part }) => ({
          type: "bar", name, barMaxWidth: 28, itemStyle: { color: colours.parts[part] }, data: points.map((point) => point.uncertainty[key]),
        })),
        {
          type: "line", name: allTogether, data: points.map((point) => together(point.uncertainty)), symbol: "diamond", symbolSize: 10,
          itemStyle: { color: colours.text }, lineStyle: { color: colours.text, width: 1.5, type: "dashed" },
        },
      ],
    }),
  };
}

/** Shows the measurement that would narrow the interval most, and the width before and after it. */
function nextContent({ what, command, width_now: now, width_then: then }) {
  const bar = (name, width) => el("div", { class: "cause" }, el("b", {}, percent(width)),
    el("div", {}, el("span", { class: "faint" }, name), thinBar("reached", Math.min(1, width / Math.max(now, then)))));
  return el("div", {},
    el("p", {}, el("b", {}, what)),
    command ? el("p", {}, el("code", {}, command), " ", copyButton("copy", () => command)) : null,
    bar("width of the interval at the largest rank count, now", now),
    bar("with that measured", then));
}

export function intervalBlocks({ prediction }) {
  const curves = curvesWith(prediction);
  if (curves.length === 0) return [];
  const next = prediction.next && panel("Measure this next", null, "", nextContent(prediction.next));
  if (next) next.id = "next";
  return [{ charts: [uncertaintyChart(curves), next] }];
}

const shownAtFirst = { cards: 8, causes: 3, warnings: 6 };

function facts(prediction) {
  const { baseline, correction, has_efficiency: hasEfficiency, measured, node_ranks: onNode } = prediction;
  const most = measured.length > 0 ? Math.max(...measured.map((point) => point.ranks)) : null;
  return el("dl", { class: "facts" },
    fact("machine", prediction.machine || missing, `nodes of ${rankCount(onNode)}`),
    fact("would play", prediction.title || prediction.workload, hasEfficiency && baseline !== null && `efficiency against that on ${rankCount(baseline)}`),
    fact("predicted from", prediction.source || missing, dotted(
      most === null ? "a data sheet: nothing was measured" : `measured up to ${rankCount(most)}`,
      correction !== null && `simulated step times \u00d7 ${fixed(correction, 3)}, which measured ones are of them`)));
}

const badgesOf = (point) => [
  ...(point.extrapolated ? [{ text: "extrapolated", kind: "warn" }] : []),
  ...(point.fits === false ? [{ text: `does not fit: needs ${memory(point.device_memory_per_rank)} a rank`, kind: "bad" }] : []),
];

function cardOf(curve, prediction, scale) {
  const point = lastOf(curve);
  const named = { title: curve.name, full: curve.name };
  if (!point) {
    const at = curve.refused.at(-1);
    return card({ ...named, ranks: at?.ranks, value: missing, look: "labelled", lines: [at?.refused ?? "nothing was predicted"] });
  }
  const between = (of, text) => (endsOf(of) ? ` (${endsOf(of).map((end) => text(end)).join(" to ")})` : "");
  const [rate, efficiency, time] = [point.throughput, point.efficiency, point.step_time].map(sureOf);
  return card({
    ...named, ranks: point.ranks, value: si(point.throughput.value / point.ranks), badges: badgesOf(point),
    beside: [el("span", {}, `${prediction.throughput_unit}/rank`),
      endsOf(rate) && el("span", { class: "note", title: "90% interval" }, endsOf(rate).map((end) => si(end / point.ranks)).join(" to "))],
    lines: [dotted(point.mfu !== null && `MFU ${percent(point.mfu)}`, `${seconds(time.value)} a step${between(time, seconds)}`),
      prediction.has_efficiency && `efficiency ${percent(efficiency.value)}${between(efficiency, percent)}`],
    bar: prediction.has_efficiency ? efficiencyBar(efficiency.value, endsOf(efficiency), scale) : null,
  });
}

function cards(prediction, curves) {
  const reached = curves.map(lastOf).filter(Boolean).flatMap((point) => [point.efficiency.value, point.efficiency.upper]);
  const scale = Math.max(1, ...reached.filter((value) => known(value) && value < 2));
  const ceiling = prediction.mfu_ceiling;
  return el("div", {},
    note(joined(["predicted throughput per rank at the largest rank count, with its 90% interval", ceiling && `MFU: share of ${ceiling.what}`,
      prediction.has_efficiency && "then efficiency against the baseline, the bar's end is ideal"], "; ")),
    cardGrid(curves.map((curve) => cardOf(curve, prediction, scale)), shownAtFirst.cards, "what-ifs"));
}

function causesPanel(base) {
  const point = lastOf({ points: base.points.filter((at) => at.waterfall !== null) });
  const lost = point ? lossesOf(fallen(point)).filter((loss) => loss.share > 0).slice(0, shownAtFirst.causes) : [];
  if (lost.length === 0) return null;
  return panel(`Where time would be lost, on ${rankCount(point.ranks)}`, "waterfall", "all causes",
    el("ol", { class: "plain" }, lost.map((loss) => causeItem(loss, lost[0].share))));
}

export function predictionBlocks({ prediction, curves }) {
  const warnings = [...curves[0].refused.map((at) => ({ grave: true, text: at.refused })), ...prediction.warnings.map((text) => ({ text }))];
  return [
    facts(prediction), cards(prediction, curves),
    el("div", { class: "panels" }, causesPanel(curves[0]),
      prediction.next ? panel("Measure this next", "interval", "why", nextContent(prediction.next)) : null,
      warningsPanel(warnings, shownAtFirst.warnings, "none"))];
}
