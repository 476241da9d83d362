// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Predicted efficiency, throughput and step time over ranks with their intervals, as curves and as
// all the numbers of predict --format csv.
import { chart } from "../chart.js";
import { ownOf } from "../data.js";
import { el } from "../dom.js";
import { fixed, memory, percent, seconds, si } from "../format.js";
import { endsOf, meshText, predictedCurves } from "../predicted.js";
import { table } from "../table.js";
import { symbols } from "../theme.js";
import { ranksAxis } from "./curves.js";
import { band, beginOf, endOf, whiskers } from "./intervals.js";

const share = (value) => percent(value);
const number = (title, text, csv) => ({ title, csv, number: true, text });

const columns = [
  { title: "curve" }, { title: "ranks", number: true }, { title: "nodes", number: true }, { title: "mesh" },
  number("step time", seconds, "step time / s"), number("lower", seconds, "step time, lower / s"), number("upper", seconds, "step time, upper / s"),
  number("throughput", (value) => si(value)), number("lower ", (value) => si(value), "throughput, lower"), number("upper ", (value) => si(value), "throughput, upper"),
  number("speed-up", (value) => fixed(value)),
  number("efficiency", share), number("lower  ", share, "efficiency, lower"), number("upper  ", share, "efficiency, upper"),
  number("noise", share), number("launch", share), number("model", share),
  number("simulated", seconds, "simulated / s"), number("delay by noise", seconds, "delay by noise / s"),
  number("memory per rank", memory, "memory per rank / B"), number("MFU", share),
  { title: "limit" }, { title: "notes" },
];

const ends = (of) => [of.value, of.lower, of.upper];

function notesOf(point) {
  return [point.extrapolated ? "extrapolated" : "", point.fits === false ? "does not fit in memory" : ""].filter(Boolean).join(", ");
}

function predictedRow(curve, point, hasEfficiency) {
  return [curve.name, point.ranks, point.nodes, meshText(point.mesh), ...ends(point.step_time), ...ends(point.throughput), hasEfficiency ? point.speedup.value : null,
    ...(hasEfficiency ? ends(point.efficiency) : none(3)), point.uncertainty.noise, point.uncertainty.launch, point.uncertainty.fit, point.simulated, point.delay,
    point.memory_per_rank, point.mfu, point.limit, notesOf(point)];
}

const none = (count) => Array(count).fill(null);

const measuredRow = (point) => ["measured", point.ranks, point.nodes, meshText(point.mesh), point.step_time, null, null, point.throughput, null, null,
  null, point.efficiency, ...none(5), point.simulated, ...none(5)];

const refusedRow = (curve, point) => [curve.name, point.ranks, point.nodes, ...none(columns.length - 4), point.refused];

/** Returns columns and rows of the measured and predicted points of all curves. */
export function numbersOf(prediction, curves) {
  return {
    columns,
    rows: [
      ...prediction.measured.map(measuredRow),
      ...curves.flatMap((curve) => [...curve.points.map((point) => predictedRow(curve, point, prediction.has_efficiency)), ...curve.refused.map((point) => refusedRow(curve, point))]),
    ],
  };
}

const mostValues = 12;

/** Returns "on", or "64: 8, 256: 2" if points differ. */
function overPoints(points, value) {
  const values = points.map(value);
  if (new Set(values).size === 1) return values[0];
  const shown = points.slice(0, mostValues).map((point, i) => `${point.ranks}: ${values[i] ?? "\u2014"}`);
  return shown.join(", ") + (points.length > mostValues ? ` and ${points.length - mostValues} more` : "");
}

/** Shows what was predicted: mesh, model and options, and how they differ between rank counts. */
function optionsTable(points) {
  const keys = [...new Set(points.flatMap((point) => Object.keys(point.options)))].sort();
  const rows = [
    ["model", overPoints(points, (point) => point.model)],
    ["mesh", overPoints(points, (point) => meshText(point.mesh))],
    ...keys.map((key) => [key, overPoints(points, (point) => ownOf(point.options, key) ?? null)]),
  ];
  return table([{ title: "option" }, { title: "value (ranks: value, where it differs)" }], rows, { caption: "What would be played", id: "predict-options", most: 60 });
}

export function numbersSection(prediction) {
  const curves = predictedCurves(prediction);
  const numbers = numbersOf(prediction, curves);
  return {
    id: "numbers",
    title: "Numbers",
    heading: "All numbers",
    content: el("div", { class: "stacked" },
      table(numbers.columns, numbers.rows, { caption: `Throughput in ${prediction.throughput_unit || "work/s"}; lower and upper: 90% interval; noise, launch, model: relative standard deviations; simulated and delay are without correction`, id: "predict-numbers", most: 40 }),
      curves[0].points.length > 0 ? optionsTable(curves[0].points) : null),
  };
}

const measured = "measured";
const interval = "interval";
const dashes = ["solid", "dashed", "dotted"];

/** For each chart, its title, and the values that it shows of predicted and measured points. */
const views = {
  efficiency: { title: "Efficiency", of: (point) => point.efficiency, measured: (point) => point.efficiency, text: (value) => percent(value), axis: (value) => percent(value, 0), and: [1] },
  throughput: { title: "Throughput", of: (point) => point.throughput, measured: (point) => point.throughput, text: (value) => si(value), axis: (value) => si(value), and: [] },
  step_time: { title: "Step time", of: (point) => point.step_time, measured: (point) => point.step_time, text: seconds, axis: seconds, and: [] },
};

/** Draws the line and interval of each curve. */
function lines(curves, colours, view, shown) {
  return curves.flatMap((curve, i) => {
    const colour = colours.series[i % colours.series.length];
    const ends = curve.points.filter((point) => endsOf(view.of(point))).map((point) => [point.ranks, ...endsOf(view.of(point))]);
    const isShown = ends.length > 0 && (i === 0 || shown === "all");
    return [
      ...(isShown ? [ends.length > 1 ? band(curve.name, colour, ends) : whiskers(curve.name, colour, ends)] : []),
      {
        type: "line",
        name: curve.name,
        data: curve.points.map((point) => ({
          value: [point.ranks, view.of(point).value],
          point,
          // The symbol is hollow if far more ranks are predicted than were measured.
          itemStyle: point.extrapolated ? { color: colours.background, borderColor: colour, borderWidth: 2 } : undefined,
        })),
        symbol: symbols[i % symbols.length],
        symbolSize: 8,
        itemStyle: { color: colour },
        lineStyle: { color: colour, type: dashes[i % dashes.length] },
      },
    ];
  });
}

function measuredPoints(points, colours, view) {
  const known = points.filter((point) => view.measured(point) !== null);
  return known.length === 0 ? [] : [{
    type: "scatter",
    name: measured,
    data: known.map((point) => [point.ranks, view.measured(point)]),
    symbol: "diamond",
    symbolSize: 12,
    z: 4,
    itemStyle: { color: colours.text, borderColor: colours.background, borderWidth: 1 },
  }];
}

function ideal(colours, ranks) {
  return {
    type: "line", name: "ideal", data: ranks.map((n) => [n, 1]), symbol: "none", silent: true,
    itemStyle: { color: colours.ideal }, lineStyle: { type: "dashed", color: colours.ideal, width: 1.5 },
  };
}

function tooltip(view) {
  return {
    trigger: "item",
    formatter: ({ seriesName, value, data }) => {
      const ends = data?.point ? endsOf(view.of(data.point)) : null;
      return [seriesName, `${value[0]} ranks: ${view.text(value[1])}`,
        ends ? `90%: ${view.text(ends[0])} to ${view.text(ends[1])}` : "",
        data?.point?.extrapolated ? "extrapolated" : "",
        data?.point?.fits === false ? "does not fit in a rank's memory" : ""].filter(Boolean).join("\n");
    },
  };
}

function valueAxis(curves, measuredAt, view, type) {
  const points = curves.flatMap((curve) => curve.points);
  const values = [...points.map((point) => view.of(point).value), ...measuredAt.map(view.measured).filter((value) => value !== null), ...view.and];
  const ends = points.map((point) => endsOf(view.of(point))).filter(Boolean);
  return {
    type,
    logBase: 10,
    min: type === "log" ? beginOf(values, ends) : 0,
    max: type === "log" ? undefined : endOf(values, ends, type),
    axisLabel: { formatter: view.axis },
  };
}

const mostNamed = 12;

/** Makes the axis of rank counts; all are labelled if they are few. */
function axisOfRanks(curves, ranks, scale) {
  const axis = ranksAxis(curves, scale);
  return axis.type === "log" && ranks.length <= mostNamed ? { ...axis, axisLabel: { customValues: ranks }, axisTick: { customValues: ranks } } : axis;
}

function curveChart(name, curves, prediction, numbers) {
  const view = views[name];
  const points = prediction.measured;
  const axisOf = [{ points }, ...curves];
  const ranks = [...new Set(axisOf.flatMap((curve) => curve.points.map((point) => point.ranks)))].sort((a, b) => a - b);
  const hollow = curves.some((curve) => curve.points.some((point) => point.extrapolated));
  const isShare = name === "efficiency";
  const baseline = prediction.baseline === null ? "" : ` against that on ${prediction.baseline}`;
  return chart({
    id: `predict-${name.replace("_", "-")}`,
    title: name === "throughput" ? `${view.title}, ${prediction.throughput_unit}` : view.title,
    note: [isShare ? `throughput per rank${baseline}; band: holds the value nine times in ten` : "",
      isShare && points.length > 0 ? "diamonds: measured" : "", isShare && hollow ? "hollow: extrapolated" : ""].filter(Boolean).join("; ") || undefined,
    switches: [{ name: "x", label: "ranks", choices: ["log", "linear"] },
      ...(isShare ? [] : [{ name: "y", label: "values", choices: ["log", "linear"] }]),
      ...(curves.length > 1 ? [{ name: interval, label: "intervals", choices: ["of the base", "all"] }] : [])],
    table: numbers,
    height: isShare ? 360 : 300,
    option: (colours, state) => ({
      xAxis: axisOfRanks(axisOf, ranks, state.x),
      yAxis: valueAxis(curves, points, view, state.y === "log" ? "log" : "value"),
      tooltip: tooltip(view),
      dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
      series: [
        ...lines(curves, colours, view, state[interval]),
        ...measuredPoints(points, colours, view),
        ...(isShare ? [ideal(colours, ranks)] : []),
      ],
    }),
  });
}

/** Shows each what-if beside the base. */
function whatIfTable(curves, hasEfficiency) {
  const [base, ...changed] = curves;
  const efficiencies = (now, then) => (hasEfficiency ? [now.efficiency.value, then.efficiency.value, ...(endsOf(then.efficiency) ?? [null, null])] : []);
  const rows = changed.flatMap((curve) => curve.points.map((then) => {
    const now = base.points.find((point) => point.ranks === then.ranks);
    if (!now) return null;
    return [curve.name, then.ranks, now.step_time.value, then.step_time.value, now.step_time.value / then.step_time.value - 1, ...efficiencies(now, then)];
  }).filter(Boolean));
  if (rows.length === 0) return null;
  const share = (value) => percent(value);
  const ofEfficiency = [{ title: "efficiency", number: true, text: share },
    { title: "then ", csv: "efficiency then", number: true, text: share }, { title: "lower", csv: "efficiency then, lower", number: true, text: share },
    { title: "upper", csv: "efficiency then, upper", number: true, text: share }];
  return table(
    [{ title: "if" }, { title: "ranks", number: true },
      { title: "step time", csv: "step time / s", number: true, text: seconds }, { title: "then", csv: "step time then / s", number: true, text: seconds },
      { title: "faster by", number: true, text: share }, ...(hasEfficiency ? ofEfficiency : [])],
    rows, { caption: hasEfficiency ? "What if: efficiency is against the baseline on the machine so changed" : "What if", id: "what-if", most: 40 });
}

export function predictedCurvesSection(prediction) {
  const all = predictedCurves(prediction);
  const curves = all.filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return null;
  const numbers = numbersOf(prediction, all);
  const make = (name) => curveChart(name, curves, prediction, numbers);
  return {
    id: "curves",
    title: "Curve",
    heading: curves.length > 1 ? "Curves" : "The curve",
    content: el("div", { class: "stacked" },
      prediction.has_efficiency ? make("efficiency") : null,
      el("div", { class: "charts" }, make("throughput"), make("step_time")),
      whatIfTable(curves, prediction.has_efficiency)),
  };
}
