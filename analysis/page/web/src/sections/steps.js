// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Step by step: the series of a point's step times, and their distribution.
import { el } from "../dom.js";
import { fixed, percent, rankCount, seconds } from "../format.js";
import { changingChart, pointContent } from "../select.js";

/** The looks of steps, by `kind` in details.steps. */
const kinds = [
  { name: "measured", symbol: "circle", size: 5, colour: (colours) => colours.series[0] },
  { name: "traced", symbol: "triangle", size: 6, colour: (colours) => colours.series[1] },
  { name: "dropped: first of a block", symbol: "diamond", size: 8, hollow: true, colour: (colours) => colours.series[3] },
  { name: "warm-up", symbol: "circle", size: 6, hollow: true, colour: (colours) => colours.ideal },
];

/** Draws the median as a line, and its interval as a band. */
function medianMarks(time, colours) {
  const { median, lower, upper } = time;
  const known = typeof median === "number";
  return {
    markLine: known
      ? {
          silent: true,
          precision: 12,
          symbol: "none",
          lineStyle: { color: colours.text, type: "dashed", width: 1 },
          label: { show: false },
          data: [{ yAxis: median }],
        }
      : undefined,
    markArea: known && lower && upper
      ? { silent: true, itemStyle: { color: colours.series[0], opacity: 0.15 }, data: [[{ yAxis: lower }, { yAxis: upper }]] }
      : undefined,
  };
}

function medianText({ median, lower, upper }) {
  return `${seconds(median)}${lower && upper ? ` (band: 95%, ${seconds(lower)} to ${seconds(upper)})` : ""}`;
}

/** True if warm-up steps are so long that the other steps would be hard to tell apart. */
function isSlowStart(steps) {
  const longest = (of) => Math.max(0, ...steps.time.filter((_, i) => of(steps.kind[i])));
  return longest((kind) => kind === 3) > 1.3 * longest((kind) => kind !== 3);
}

function seriesChart(steps, point, time) {
  const counts = kinds.map((_, kind) => steps.kind.filter((at) => at === kind).length);
  const first = steps.kind.findIndex((kind) => kind !== 3);
  return changingChart({
    id: "steps-series",
    title: "Step times",
    note: `the slowest rank's${steps.every > 1 ? `, the longest of ${steps.every} steps each` : ""}; ` +
      `only measured steps count; dashed: their median, ${medianText(time)}`,
    switches: [{ name: "show", label: "show", choices: first > 0 ? ["all", "without warm-up"] : ["all"], value: isSlowStart(steps) ? "without warm-up" : "all" }],
    table: {
      columns: [{ title: "step", number: true }, { title: "time", csv: "time / s", number: true, text: seconds }, { title: "kind" }],
      rows: steps.first.map((step, i) => [step, steps.time[i], kinds[steps.kind[i]].name]),
    },
    option: (colours, state) => {
      const without = state.show === "without warm-up";
      const of = (kind) => steps.first.flatMap((step, i) => (steps.kind[i] === kind ? [[step, steps.time[i]]] : []));
      return {
        grid: { bottom: 26 },
        xAxis: { type: "value", min: "dataMin", max: "dataMax", name: "step", nameLocation: "middle", nameGap: 26, splitLine: { show: false } },
        yAxis: { type: "value", scale: true, name: "step time", axisLabel: { formatter: (value) => seconds(value) } },
        dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
        tooltip: { formatter: ({ seriesName, value }) => `step ${value[0]}: ${seconds(value[1])}\n${seriesName}` },
        series: kinds.flatMap(({ name, symbol, size, colour, hollow }, kind) =>
          counts[kind] === 0 || (without && kind === 3) ? [] : [{
            type: "scatter",
            name,
            symbol,
            symbolSize: counts[kind] > 400 ? size - 2 : size,
            itemStyle: { color: colour(colours) },
            data: of(kind).map((value) => ({
              value,
              itemStyle: hollow ? { color: colours.background, borderColor: colour(colours), borderWidth: 1.5 } : undefined,
            })),
            ...(kind === 0 ? medianMarks(time, colours) : {}),
          }]),
      };
    },
  });
}

const shares = Array.from({ length: 101 }, (_, i) => i / 100);

/** Shows the distributions of the whole curve: the tail grows with the ranks. */
function distributionChart(point, group) {
  // Fewer steps than this make no readable distribution.
  const fewest = 6;
  const points = group.points.filter((at) => at.details.steps?.quantiles && at.details.steps.kind.filter((kind) => kind === 0).length >= fewest);
  if (!points.includes(point)) return null;
  const middle = (at) => at.details.steps.quantiles[50];
  const nameOf = (at) => rankCount(at.ranks);
  return changingChart({
    id: "steps-distribution",
    title: "Distribution of step times",
    note: "share of measured steps that are no longer; over the curve's counts, each against its own median",
    switches: [{ name: "of", label: "of", choices: points.length > 1 ? ["the curve", "this point"] : ["this point"] }],
    table: {
      columns: [
        { title: "ranks", number: true },
        ...[0, 5, 25, 50, 75, 95, 99, 100].map((share) => {
          const title = share === 0 ? "min" : share === 100 ? "max" : `${share}%`;
          return { title, csv: `${title} / s`, number: true, text: seconds };
        }),
        { title: "99% / median", number: true, text: (value) => fixed(value) },
      ],
      rows: points.map((at) => {
        const q = at.details.steps.quantiles;
        return [at.ranks, ...[0, 5, 25, 50, 75, 95, 99, 100].map((share) => q[share]), q[99] / q[50]];
      }),
    },
    option: (colours, state) => {
      const own = state.of === "this point";
      const shown = own ? points.filter((at) => at === point) : points;
      return {
        grid: { bottom: 26 },
        xAxis: {
          type: "value", scale: true, nameLocation: "middle", nameGap: 26,
          name: own ? "step time" : "step time / median",
          axisLabel: { formatter: (value) => (own ? seconds(value) : fixed(value)) },
        },
        yAxis: { type: "value", min: 0, max: 1, name: "steps", axisLabel: { formatter: (value) => percent(value, 0) } },
        dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
        tooltip: {
          formatter: ({ seriesName, value }) =>
            `${seriesName}: ${percent(value[1], 0)} of steps take at most ${own ? seconds(value[0]) : `${fixed(value[0], 3)} of the median`}`,
        },
        series: shown.map((at) => ({
          type: "line",
          name: nameOf(at),
          symbol: "none",
          triggerLineEvent: true,
          itemStyle: { color: colours.series[points.indexOf(at) % colours.series.length] },
          lineStyle: { width: at === point ? 3 : 1.5, color: colours.series[points.indexOf(at) % colours.series.length] },
          z: at === point ? 4 : 2,
          data: at.details.steps.quantiles.map((time, i) => [own ? time : time / middle(at), shares[i]]),
        })),
      };
    },
  });
}

/** Returns the interval of the launch whose steps are shown. */
const ownTime = (point) => point.full?.step_time ?? point.stepTime;

/** @param {object[]} groups of detailed() */
export function stepsSection(groups) {
  if (!groups.some((group) => group.points.some((point) => point.details.steps))) return null;
  return {
    id: "steps",
    title: "Steps",
    content: pointContent(groups, (point, group) => {
      const { steps } = point.details;
      if (!steps || steps.first.length === 0) return [el("p", { class: "note" }, "This point has no step times.")];
      return [el("div", { class: "charts" }, seriesChart(steps, point, ownTime(point)), distributionChart(point, group))];
    }),
  };
}
