// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Efficiency, speed-up and throughput over rank counts, with intervals and the ideal.
import { chart } from "../chart.js";
import { el } from "../dom.js";
import { fixed, percent, seconds, si } from "../format.js";
import { symbols } from "../theme.js";
import { beginOf, endOf, whiskers } from "./intervals.js";

/**
 * Lines over ranks, one for each curve, with whiskers where there are intervals.
 * @param {import("../data.js").Curve[]} curves
 * @param {(point) => number|null} value
 * @param {(point) => number[]|null} interval
 */
export function lines(curves, colours, value, interval) {
  return curves.flatMap((curve, i) => {
    const colour = colours.series[i % colours.series.length];
    const points = curve.points.filter((point) => value(point) !== null);
    const bars = points.filter((point) => interval(point)).map((point) => [point.ranks, ...interval(point)]);
    return [
      {
        type: "line",
        name: curve.short,
        data: points.map((point) => ({
          value: [point.ranks, value(point)],
          // The symbol is hollow if the point has labels (ranks shared cores, for example), since
          // it then says little about scaling.
          itemStyle: point.labels.length > 0 ? { color: colours.background, borderColor: colour, borderWidth: 2 } : undefined,
          labels: point.labels,
          interval: interval(point),
        })),
        symbol: symbols[i % symbols.length],
        symbolSize: 8,
        itemStyle: { color: colour },
        lineStyle: { color: colour },
      },
      ...(bars.length > 0 ? [whiskers(curve.short, colour, bars)] : []),
    ];
  });
}

const allRanks = (curves) => [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.ranks)))].sort((a, b) => a - b);

/** Makes the axis of rank counts; at least both ends are labelled. */
export function ranksAxis(curves, scale) {
  const ranks = allRanks(curves);
  const logarithmic = scale === "log" && ranks.length > 1;
  return {
    type: logarithmic ? "log" : "value",
    logBase: 2,
    name: "ranks",
    nameLocation: "middle",
    nameGap: 26,
    min: logarithmic ? ranks[0] : 0,
    max: ranks.at(-1),
    minorTick: { show: false },
  };
}

function ideal(colours, ranks, value) {
  return {
    type: "line",
    name: "ideal",
    data: ranks.map((n) => [n, value(n)]),
    symbol: "none",
    silent: true,
    itemStyle: { color: colours.ideal },
    lineStyle: { type: "dashed", color: colours.ideal, width: 1.5 },
  };
}

/**
 * Makes an axis of values. Its ends are chosen for the values; intervals that are much wider are
 * cut.
 */
function valueAxis(curves, type, { value, interval, and = [] }) {
  const points = curves.flatMap((curve) => curve.points).filter((point) => value(point) !== null);
  const values = [...points.map(value), ...and];
  const intervals = points.map(interval).filter(Boolean);
  return {
    type,
    logBase: 2,
    min: type === "log" ? beginOf(values, intervals) : 0,
    max: endOf(values, intervals, type),
  };
}

const scales = [{ name: "x", label: "ranks", choices: ["log", "linear"] }];
const bothScales = [...scales, { name: "y", label: "values", choices: ["log", "linear"] }];
const zoom = [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }];

const columns = [
  { title: "curve" },
  { title: "ranks", number: true },
  { title: "nodes", number: true },
  { title: "launches", number: true },
  { title: "step time", csv: "step time / s", number: true, text: seconds },
  { title: "lower", number: true, text: seconds },
  { title: "upper", number: true, text: seconds },
  { title: "throughput", number: true, text: (value) => si(value) },
  { title: "unit" },
  { title: "speed-up", number: true, text: (value) => fixed(value) },
  { title: "lower ", csv: "speed-up, lower", number: true, text: (value) => fixed(value) },
  { title: "upper ", csv: "speed-up, upper", number: true, text: (value) => fixed(value) },
  { title: "efficiency", number: true, text: (value) => percent(value) },
  { title: "lower  ", csv: "efficiency, lower", number: true, text: (value) => percent(value) },
  { title: "upper  ", csv: "efficiency, upper", number: true, text: (value) => percent(value) },
  { title: "labels" },
];

const ends = (interval) => interval ?? [null, null];

function rows(curves) {
  return curves.flatMap((curve) =>
    curve.points.map((point) => [
      curve.short, point.ranks, point.nodes, point.launches, point.stepTime.median, point.stepTime.lower,
      point.stepTime.upper, point.throughput, point.unit, point.speedup,
      ...ends(point.speedupInterval), point.efficiency, ...ends(point.efficiencyInterval), point.labels.join(" "),
    ]));
}

function tooltip(show) {
  return {
    trigger: "item",
    formatter: ({ seriesName, value, data }) =>
      `${seriesName}\n${value[0]} ranks: ${show(value[1])}${data?.interval ? `\n95%: ${show(data.interval[0])} to ${show(data.interval[1])}` : ""}${data?.labels?.length ? `\n${data.labels.join(", ")}` : ""}`,
  };
}

/** Returns "1 rank" if all curves have that baseline. */
function baselineText(curves) {
  const names = new Set(curves.map((curve) => curve.baselineName).filter(Boolean));
  return names.size === 1 ? [...names][0] : "each curve's baseline";
}

const efficiency = { value: (point) => point.efficiency, interval: (point) => point.efficiencyInterval };
const speedup = { value: (point) => point.speedup, interval: (point) => point.speedupInterval };

function efficiencyChart(curves, numbers) {
  return chart({
    id: "efficiency",
    title: "Efficiency",
    note: `throughput per rank against ${baselineText(curves)}; whiskers: 95%, with an arrow where they leave the chart; hollow: labelled, no scaling result`,
    switches: scales,
    table: numbers,
    option: (colours, state) => ({
      xAxis: ranksAxis(curves, state.x),
      yAxis: {
        ...valueAxis(curves, "value", { ...efficiency, and: [1] }), axisLabel: { formatter: (value) => percent(value, 0) },
        name: `efficiency against ${baselineText(curves)}`, nameLocation: "end", nameTextStyle: { align: "left" },
      },
      tooltip: tooltip((value) => percent(value)),
      dataZoom: zoom,
      series: [
        ...lines(curves, colours, efficiency.value, efficiency.interval),
        ideal(colours, allRanks(curves), () => 1),
      ],
    }),
  });
}

function speedupChart(curves, numbers) {
  const onNodes = curves.some((curve) => curve.perNode);
  return chart({
    id: "speedup",
    title: onNodes ? "Speed-up over one node" : "Speed-up",
    note: "throughput against the baseline's, times its ranks; dashed: ideal",
    switches: bothScales,
    table: numbers,
    option: (colours, state) => ({
      xAxis: ranksAxis(curves, state.x),
      yAxis: valueAxis(curves, state.y === "log" ? "log" : "value", { ...speedup, and: onNodes ? [] : allRanks(curves) }),
      tooltip: tooltip((value) => fixed(value)),
      dataZoom: zoom,
      series: [
        ...lines(curves, colours, speedup.value, speedup.interval),
        ...(onNodes ? [] : [ideal(colours, allRanks(curves), (n) => n)]),
      ],
    }),
  });
}

/** Makes one chart for each unit, since tokens and samples cannot share an axis. */
function throughputCharts(curves, numbers) {
  const units = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.unit)))];
  return units.map((unit, i) => {
    const own = curves.filter((curve) => curve.points.some((point) => point.unit === unit));
    const spread = (point) => {
      const { median, lower, upper } = point.stepTime;
      return lower && upper ? [(point.throughput * median) / upper, (point.throughput * median) / lower] : null;
    };
    return chart({
      id: i === 0 ? "throughput" : `throughput-${i}`,
      title: `Throughput, ${unit || "work/s"}`,
      switches: [...scales, { name: "y", label: "values", choices: ["linear", "log"] }],
      table: numbers,
      option: (colours, state) => ({
        xAxis: ranksAxis(own, state.x),
        yAxis: {
          ...valueAxis(own, state.y === "log" ? "log" : "value", { value: (point) => point.throughput, interval: spread }),
          logBase: 10,
          axisLabel: { formatter: (value) => si(value) },
        },
        tooltip: tooltip((value) => si(value, unit)),
        dataZoom: zoom,
        series: lines(own, colours, (point) => point.throughput, spread),
      }),
    });
  });
}

/** @param {import("../data.js").Curve[]} all */
export function curvesSection(all) {
  const curves = all.filter((curve) => curve.points.length > 0);
  if (curves.length === 0) return null;
  const numbers = { columns, rows: rows(curves) };
  return {
    id: "curves",
    title: "Scaling",
    content: el("div", { class: "charts" },
      curves.some((curve) => curve.points.some((point) => point.efficiency !== null))
        ? [efficiencyChart(curves, numbers), speedupChart(curves, numbers)] : null,
      throughputCharts(curves, numbers)),
  };
}
