// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows efficiency, speed-up and throughput over rank counts, with intervals and the ideal lines.
import { columns, labels, overRanks, scales, si, viewOf } from "../kit.js";

const numbers = columns("point", "curve, ranks, nodes, launches:count, step_time~, throughput, unit, speedup~, efficiency~", labels,
  "...=full");

/** Returns the baseline that all curves share, "1 rank", or "each curve's baseline". */
function baselineText(curves) {
  const names = new Set(curves.map((curve) => curve.baselineName).filter(Boolean));
  return names.size === 1 ? [...names][0] : "each curve's baseline";
}

const efficiencyChart = (curves) => ({
  id: "efficiency", ...viewOf("efficiency"),
  note: `throughput per rank against ${baselineText(curves)}; whiskers: 95%, with an arrow where they leave the chart; hollow: labelled, no scaling result`,
  curves,
  figure: (point) => point.efficiency,
  yAxis: { name: `efficiency against ${baselineText(curves)}`, nameTextStyle: { align: "left" } },
  ideal: () => 1,
});

function speedupChart(curves) {
  const onNodes = curves.some((curve) => curve.perNode);
  const speedup = viewOf("speedup");
  return {
    id: "speedup", ...speedup, title: `${speedup.title}${onNodes ? " over one node" : ""}`,
    note: "throughput against the baseline's, times its ranks; dashed: ideal",
    switches: [scales("log", "linear")],
    curves,
    figure: (point) => point.speedup,
    axis: String, yAxis: { logBase: 2 },
    ideal: onNodes ? undefined : (n) => n,
  };
}

/** Describes a chart for each unit of throughput: tokens and samples cannot share an axis. */
function throughputCharts(curves) {
  const units = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.unit)))];
  return units.map((unit, i) => ({
    id: i === 0 ? "throughput" : `throughput-${i}`, title: `${viewOf("throughput").title}, ${unit || "work/s"}`,
    switches: [scales("linear", "log")],
    curves: curves.filter((curve) => curve.points.some((point) => point.unit === unit)),
    figure: (point) => point.throughput,
    text: (value) => si(value, unit),
    axis: (value) => si(value),
  }));
}

export function curvesBlocks({ curves: all }) {
  const curves = all.filter((curve) => curve.points.length > 0);
  const items = curves.flatMap((curve) => curve.points.map((point) => ({ curve: curve.short, ...point })));
  const scaling = items.some((point) => point.efficiency.value !== null) ? [efficiencyChart(curves), speedupChart(curves)] : [];
  const charts = [...scaling, ...throughputCharts(curves)].map(({ curves: shown, ...spec }) => overRanks({
    table: { columns: numbers, items }, lines: shown.map(({ short, points }) => ({ name: short, points })),
    // A point with a label says little about scaling, for example if its ranks share cores.
    isHollow: (point) => point.labels.length > 0,
    ...spec,
  }));
  return [{ charts }];
}
