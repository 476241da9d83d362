// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows efficiency, speed-up and throughput over rank counts, with intervals and the ideal.
import { fixed, joined, meshTip, percent, si } from "../format.js";
import { overRanks, stepTip } from "../marks.js";
import { count, decimal, ends, rate, share, time, words } from "../table.js";

const columns = [
  words("curve"), count("ranks"), count("nodes"), count("launches"),
  ...ends(time, "step time", ({ stepTime: at }) => [at.median, at.lower, at.upper]),
  rate("throughput"), words("unit"),
  ...ends(decimal, "speed-up", (point) => [point.speedup, ...(point.speedupInterval ?? [])]),
  ...ends(share, "efficiency", (point) => [point.efficiency, ...(point.efficiencyInterval ?? [])]),
  words("labels", ({ labels }) => labels.join(" ")),
];

/** Returns the lines of a quantity, one for each curve. */
const linesOf = (curves, value, interval) => curves.map((curve) => ({
  name: curve.short,
  items: curve.points.filter((point) => value(point) !== null).map((point) => ({
    x: point.ranks,
    y: value(point),
    interval: interval(point),
    // A point with a label says little about scaling, for example if its ranks share cores.
    isHollow: point.labels.length > 0,
    tip: joined([stepTip(point.stepTime), meshTip(point.full.mesh), joined(point.labels)], "\n"),
  })),
}));

/** Returns the baseline that all curves have, such as "1 rank", or else "each curve's baseline". */
function baselineText(curves) {
  const names = new Set(curves.map((curve) => curve.baselineName).filter(Boolean));
  return names.size === 1 ? [...names][0] : "each curve's baseline";
}

const valuesSwitch = (...choices) => ({ name: "y", label: "values", choices });

const efficiencyChart = (curves) => ({
  id: "efficiency",
  title: "Efficiency",
  note: `throughput per rank against ${baselineText(curves)}; whiskers: 95%, with an arrow where they leave the chart; hollow: labelled, no scaling result`,
  lines: linesOf(curves, (point) => point.efficiency, (point) => point.efficiencyInterval),
  text: (value) => percent(value),
  axis: (value) => percent(value, 0),
  yAxis: { name: `efficiency against ${baselineText(curves)}`, nameTextStyle: { align: "left" } },
  ideal: () => 1,
});

function speedupChart(curves) {
  const onNodes = curves.some((curve) => curve.perNode);
  return {
    id: "speedup",
    title: onNodes ? "Speed-up over one node" : "Speed-up",
    note: "throughput against the baseline's, times its ranks; dashed: ideal",
    switches: [valuesSwitch("log", "linear")],
    lines: linesOf(curves, (point) => point.speedup, (point) => point.speedupInterval),
    text: (value) => fixed(value),
    axis: String,
    yAxis: { logBase: 2 },
    ideal: onNodes ? undefined : (n) => n,
  };
}

function throughputInterval({ throughput, stepTime: { median, lower, upper } }) {
  return lower && upper ? [(throughput * median) / upper, (throughput * median) / lower] : null;
}

/** Describes one chart for each unit, since tokens and samples cannot share an axis. */
function throughputCharts(curves) {
  const units = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.unit)))];
  return units.map((unit, i) => ({
    id: i === 0 ? "throughput" : `throughput-${i}`,
    title: `Throughput, ${unit || "work/s"}`,
    switches: [valuesSwitch("linear", "log")],
    lines: linesOf(curves.filter((curve) => curve.points.some((point) => point.unit === unit)), (point) => point.throughput, throughputInterval),
    text: (value) => si(value, unit),
    axis: (value) => si(value),
  }));
}

/** @param {import("../data.js").Curve[]} all */
export function curvesSection(all) {
  const curves = all.filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return null;
  const items = curves.flatMap((curve) => curve.points.map((point) => ({ curve: curve.short, ...point })));
  const scales = items.some((point) => point.efficiency !== null);
  const specs = [...(scales ? [efficiencyChart(curves), speedupChart(curves)] : []), ...throughputCharts(curves)];
  return {
    id: "curves",
    title: "Scaling",
    blocks: [{ charts: specs.map((spec) => overRanks({ table: { columns, items }, ...spec })) }],
  };
}
