// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the series of a point's step times, and their distribution.
import { fixed, percent, rankCount, seconds } from "../format.js";
import { colourOf, markLine } from "../marks.js";
import { pointContent } from "../select.js";
import { count, decimal, time, words } from "../table.js";

/** The looks of steps, by `kind` in details.steps. */
const kinds = [
  { name: "measured", symbol: "circle", size: 5, colour: (colours) => colours.series[0] },
  { name: "traced", symbol: "triangle", size: 6, colour: (colours) => colours.series[1] },
  { name: "dropped: first of a block", symbol: "diamond", size: 8, hollow: true, colour: (colours) => colours.series[3] },
  { name: "warm-up", symbol: "circle", size: 6, hollow: true, colour: (colours) => colours.ideal },
];
const measured = 0, warmUp = 3;

/** Draws the median as a line, and its interval as a band. */
function medianMarks({ median, lower, upper }, colours) {
  if (typeof median !== "number") return {};
  const band = { silent: true, itemStyle: { color: colours.series[0], opacity: 0.15 }, data: [[{ yAxis: lower }, { yAxis: upper }]] };
  return {
    markLine: markLine([{ yAxis: median }], { lineStyle: { color: colours.text, type: "dashed", width: 1 } }),
    ...(lower && upper ? { markArea: band } : {}),
  };
}

const medianText = ({ median, lower, upper }) =>
  `${seconds(median)}${lower && upper ? ` (band: 95%, ${seconds(lower)} to ${seconds(upper)})` : ""}`;

/** True if warm-up steps are so long that the other steps would be hard to tell apart. */
function isSlowStart(items) {
  const longest = (of) => Math.max(0, ...of.map((at) => at.time));
  return longest(items.filter((at) => at.kind === warmUp)) > 1.3 * longest(items.filter((at) => at.kind !== warmUp));
}

const stepColumns = [count("step"), time("time"), words("kind", ({ kind }) => kinds[kind].name)];

function seriesChart(steps, median) {
  const items = steps.first.map((step, i) => ({ step, time: steps.time[i], kind: steps.kind[i] }));
  const hasStart = items.findIndex(({ kind }) => kind !== warmUp) > 0;
  const all = kinds.map((_, kind) => items.filter((at) => at.kind === kind));
  return {
    id: "steps-series",
    title: "Step times",
    note: `the slowest rank's${steps.every > 1 ? `, the longest of ${steps.every} steps each` : ""}; ` +
      `only measured steps count; dashed: their median, ${medianText(median)}`,
    switches: [{ name: "show", label: "show", choices: hasStart ? ["all", "without warm-up"] : ["all"], value: isSlowStart(items) ? "without warm-up" : "all" }],
    table: { columns: stepColumns, items },
    option: (colours, state) => ({
      xAxis: { min: "dataMin", max: "dataMax", name: "step", splitLine: { show: false } },
      yAxis: { scale: true, name: "step time", format: seconds },
      zoom: true,
      tip: ({ seriesName, value }) => `step ${value[0]}: ${seconds(value[1])}\n${seriesName}`,
      series: kinds.flatMap(({ name, symbol, size, colour, hollow }, kind) => {
        const own = all[kind];
        if (own.length === 0 || (state.show === "without warm-up" && kind === warmUp)) return [];
        const itemStyle = hollow ? { color: colours.background, borderColor: colour(colours), borderWidth: 1.5 } : undefined;
        return [{
          type: "scatter", name, symbol, symbolSize: own.length > 400 ? size - 2 : size, itemStyle: { color: colour(colours) },
          data: own.map((at) => ({ value: [at.step, at.time], itemStyle })),
          ...(kind === measured ? medianMarks(median, colours) : {}),
        }];
      }),
    }),
  };
}

// A distribution of fewer steps than this is not readable.
const fewest = 6;
const hasDistribution = ({ details: { steps } }) =>
  Boolean(steps?.quantiles) && steps.kind.filter((kind) => kind === measured).length >= fewest;

const quantileColumns = [
  count("ranks"),
  ...[0, 5, 25, 50, 75, 95, 99, 100].map((share) =>
    time(share === 0 ? "min" : share === 100 ? "max" : `${share}%`, ({ details }) => details.steps.quantiles[share])),
  decimal("99% / median", ({ details: { steps: { quantiles } } }) => quantiles[99] / quantiles[50]),
];

/** Describes the chart of distributions at all rank counts of a curve: tails grow with ranks. */
function distributionChart(point, group) {
  const points = group.points.filter(hasDistribution);
  if (!points.includes(point)) return null;
  return {
    id: "steps-distribution",
    title: "Distribution of step times",
    note: "share of measured steps that are no longer; over the curve's counts, each against its own median",
    switches: [{ name: "of", label: "of", choices: points.length > 1 ? ["the curve", "this point"] : ["this point"] }],
    table: { columns: quantileColumns, items: points },
    option: (colours, state) => {
      const own = state.of === "this point";
      return {
        xAxis: { scale: true, name: own ? "step time" : "step time / median", format: (value) => (own ? seconds(value) : fixed(value)) },
        yAxis: { min: 0, max: 1, name: "steps", format: (value) => percent(value, 0) },
        zoom: true,
        tip: ({ seriesName, value }) =>
          `${seriesName}: ${percent(value[1], 0)} of steps take at most ${own ? seconds(value[0]) : `${fixed(value[0], 3)} of the median`}`,
        series: points.flatMap((at, i) => (own && at !== point ? [] : [{
          type: "line",
          name: rankCount(at.ranks),
          symbol: "none",
          triggerLineEvent: true,
          itemStyle: { color: colourOf(colours, i) },
          lineStyle: { width: at === point ? 3 : 1.5, color: colourOf(colours, i) },
          z: at === point ? 4 : 2,
          data: at.details.steps.quantiles.map((value, share, all) => [own ? value : value / all[50], share / 100]),
        }])),
      };
    },
  };
}

/** Returns the step time, with its interval, of the launch whose steps are shown. */
const ownTime = (point) => point.full?.step_time ?? point.stepTime;

/** @param {object[]} groups of detailed() */
export function stepsSection(groups) {
  if (!groups.some((group) => group.points.some((point) => point.details.steps))) return null;
  return {
    id: "steps",
    title: "Steps",
    blocks: [pointContent(groups, (point, group) => {
      const { steps } = point.details;
      if (!steps || steps.first.length === 0) return [{ note: "This point has no step times." }];
      return [{ charts: [seriesChart(steps, ownTime(point)), distributionChart(point, group)] }];
    })],
  };
}
