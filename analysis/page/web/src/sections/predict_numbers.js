// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// All numbers of a prediction, as predict --format csv has them, and what each point is made of.
import { ownOf } from "../data.js";
import { el } from "../dom.js";
import { fixed, memory, percent, seconds, si } from "../format.js";
import { meshText, predictedCurves } from "../predicted.js";
import { table } from "../table.js";

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

/** Columns and rows of measured and predicted points of all curves. */
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

/** "on", or where points differ "64: 8, 256: 2". */
function overPoints(points, value) {
  const values = points.map(value);
  if (new Set(values).size === 1) return values[0];
  const shown = points.slice(0, mostValues).map((point, i) => `${point.ranks}: ${values[i] ?? "\u2014"}`);
  return shown.join(", ") + (points.length > mostValues ? ` and ${points.length - mostValues} more` : "");
}

/** What was predicted: mesh, model and options, and where they differ between rank counts. */
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
