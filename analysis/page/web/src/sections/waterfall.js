// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the time that each cause added, from the ideal step to the measured one.
import { explains, lossesOf, meaning, partOfCause, tracing } from "../causes.js";
import { chart } from "../chart.js";
import { launchesText } from "../data.js";
import { el } from "../dom.js";
import { percent, rankCount, seconds } from "../format.js";
import { ink } from "../parts.js";
import { oneOf } from "../select.js";

const mostSmall = 6;
// Shares of the step: smaller causes are shown together, or not at all.
const least = 0.005;
const leastSeen = 0.0005;
// Share of the step that is lost; from this on, bars from zero show it well.
export const wholeFrom = 0.2;

const hasWaterfall = (point) => Boolean(point.full.waterfall && point.full.waterfall.measured > 0);

/**
 * Returns the steps of the staircase: {name, seconds, from, to, kind, part, tip}; the last one is
 * the whole step, named `point.whole`. If the causes do not explain the loss, they are one step,
 * and the difference between traced and untraced steps is another.
 */
export function stairs(point) {
  const { ideal, measured } = point.full.waterfall;
  const told = explains(point);
  const losses = lossesOf(point).filter((loss) => loss.seconds !== 0);
  const isShown = (loss) => Math.abs(loss.share) >= least && (told || loss.cause === tracing);
  const shown = losses.filter(isShown);
  const small = losses.filter((loss) => !isShown(loss));
  const rest = small.reduce((sum, loss) => sum + loss.seconds, 0);
  const steps = [{ name: "ideal step", seconds: ideal, from: 0, to: ideal, kind: "whole" }];
  let at = ideal;
  const add = (name, amount, part, tip) => {
    steps.push({ name, seconds: amount, from: at, to: at + amount, kind: "cause", part, tip });
    at += amount;
  };
  for (const loss of shown) add(loss.cause, loss.seconds, partOfCause(loss.cause), meaning(loss.cause));
  if (Math.abs(rest) >= leastSeen * measured) {
    const name = !told ? "causes not told apart" : small.length === 1 ? small[0].cause : `${small.length} smaller`;
    add(name, rest, "other", told ? small.map((loss) => loss.cause).join(", ") : "too few steps count, or traced steps differ from the others by over 10%");
  }
  return [...steps, { name: point.whole ?? "measured", seconds: measured, from: 0, to: measured, kind: "whole" }];
}

function labelOf(step, point, isWide) {
  if (step.kind === "whole") return seconds(step.seconds);
  const share = step.seconds / point.full.waterfall.measured;
  const sign = share < 0 ? "\u2212" : "+";
  return `${sign}${percent(Math.abs(share))}${isWide ? `  ${sign}${seconds(Math.abs(step.seconds))}` : ""}`;
}

/**
 * Places a label right of its bar from `x0` to `x1`; if there is no room, left of it, else on it.
 */
function labelBeside(text, { x0, x1, area, colours, colour }) {
  const apart = 6;
  const width = 7.2 * text.length;
  const style = { text, verticalAlign: "middle", font: "12px system-ui, sans-serif", fill: colours.text };
  if (x1 + apart + width <= area.x + area.width) return { ...style, x: x1 + apart };
  if (x0 - apart - width >= area.x) return { ...style, x: x0 - apart, align: "right" };
  return { ...style, x: x1 - apart, align: "right", fill: ink(colour) };
}

const top = (steps) => Math.max(...steps.map((step) => Math.max(step.from, step.to)));

/**
 * `beside` holds the points shown beside this one; their axes end at the same value as its axis.
 */
export function waterfallOption(point, colours, state, isNarrow, beside = []) {
  const steps = stairs(point);
  const low = Math.min(...steps.filter((step) => step.kind === "cause").map((step) => Math.min(step.from, step.to)), steps[0].to);
  const high = Math.max(top(steps), ...(state.axis === "whole step" ? beside.map((at) => top(stairs(at))) : []));
  const from = state.axis === "whole step" ? 0 : Math.max(0, low - 0.08 * (high - low || high));
  const colour = (step) => (step.kind === "whole" ? colours.ideal : step.seconds < 0 ? colours.good : colours.parts[step.part]);
  // If the axis does not begin at zero, bars that do begin there fade out.
  const fill = (step) => (from > 0 && step.kind === "whole"
    ? { type: "linear", x: 0, y: 0, x2: 1, y2: 0, colorStops: [{ offset: 0, color: `${colours.ideal}00` }, { offset: Math.min(1, 0.06 * (high - from) / (step.to - from)), color: colours.ideal }] }
    : colour(step));
  const end = high + (isNarrow ? 0.36 : 0.26) * (high - from);
  return {
    grid: { top: 8 },
    xAxis: { type: "value", min: from, max: end, axisLabel: { formatter: (value) => (value > high || (value === from && from > 0) ? "" : seconds(value)) }, splitLine: { showMaxLine: false } },
    yAxis: { type: "category", inverse: true, data: steps.map((step) => step.name), axisTick: { show: false }, axisLabel: { interval: 0, width: isNarrow ? 100 : 150, overflow: "truncate" } },
    tooltip: {
      trigger: "item",
      formatter: ({ dataIndex }) => {
        const step = steps[dataIndex];
        return `${step.name}: ${seconds(step.seconds)}, ${percent(step.seconds / point.full.waterfall.measured)} of the step${step.tip ? `\n${step.tip}` : ""}`;
      },
    },
    series: [
      {
        type: "custom",
        name: "time",
        clip: true,
        data: steps.map((step, i) => [i, step.from, step.to]),
        encode: { y: 0, x: [1, 2] },
        itemStyle: { color: colours.ideal },
        renderItem: ({ coordSys: area }, api) => {
          const i = api.value(0);
          const [x0, y] = api.coord([Math.max(from, Math.min(api.value(1), api.value(2))), i]);
          const x1 = api.coord([Math.max(api.value(1), api.value(2)), i])[0];
          const size = api.size([0, 1])[1];
          const height = Math.min(26, size * 0.66);
          const edge = api.coord([api.value(2), i])[0];
          return {
            type: "group",
            children: [
              { type: "rect", shape: { x: x0, y: y - height / 2, width: Math.max(1, x1 - x0), height, r: 2 }, style: { fill: fill(steps[i]) } },
              // This line leads to the next step, which begins where this one ends.
              ...(i + 1 < steps.length ? [{ type: "line", silent: true, shape: { x1: edge, x2: edge, y1: y + height / 2, y2: y + size - height / 2 }, style: { stroke: colours.faint, lineWidth: 1, opacity: 0.6 } }] : []),
              { type: "text", style: { ...labelBeside(labelOf(steps[i], point, !isNarrow), { x0, x1, area, colours, colour: colour(steps[i]) }), y } },
            ],
          };
        },
      },
    ],
  };
}

const columns = [
  { title: "curve" },
  { title: "ranks", number: true },
  { title: "cause" },
  { title: "time", csv: "time / s", number: true, text: seconds },
  { title: "share of the step", number: true, text: (value) => percent(value) },
  { title: "what it is" },
  { title: "labels" },
];

function rowsOf(curve) {
  return curve.points.filter(hasWaterfall).flatMap((point) => {
    const { ideal, measured } = point.full.waterfall;
    const labels = point.labels.join(" ");
    return [
      [curve.short, point.ranks, "ideal step", ideal, ideal / measured, "the baseline's, scaled by work and ranks", labels],
      ...lossesOf(point).map((loss) => [curve.short, point.ranks, loss.cause, loss.seconds, loss.share, meaning(loss.cause), labels]),
      [curve.short, point.ranks, "measured step", measured, 1, "median of untraced steps", labels],
    ];
  });
}

function waterfallChart(curve, index) {
  const points = curve.points.filter(hasWaterfall);
  const counts = points.map((point) => String(point.ranks));
  const chosen = (state) => points[counts.indexOf(state.ranks)];
  const last = points.at(-1);
  const lost = 1 - last.full.waterfall.ideal / last.full.waterfall.measured;
  const missing = [...new Set(points.flatMap((point) => point.full.waterfall.missing))];
  const labelled = points.filter((point) => point.labels.length > 0).map((point) => `${rankCount(point.ranks)}: ${point.labels.join(", ")}`);
  return chart({
    id: `waterfall-${index}`,
    title: `Ideal to measured: ${curve.short}`,
    note: [`${percent(lost)} of the step is lost on ${rankCount(last.ranks)}`, launchesText(points), ...labelled, ...missing].filter(Boolean).join("; "),
    switches: [{ name: "ranks", label: "ranks", choices: [...new Set(counts)], value: counts.at(-1) },
      { name: "axis", label: "axis", choices: ["whole step", "lost time"], value: lost >= wholeFrom ? "whole step" : "lost time" }],
    table: { columns, rows: rowsOf(curve) },
    legend: false,
    height: (state) => 44 + 32 * stairs(chosen(state)).length,
    option: (colours, state, isNarrow) => waterfallOption(chosen(state), colours, state, isNarrow),
  });
}

/** @param {import("../data.js").Curve[]} all */
export function waterfallSection(all) {
  const curves = all.filter((curve) => curve.points.some(hasWaterfall));
  if (curves.length === 0) return null;
  return {
    id: "waterfall",
    title: "Lost time",
    heading: "Where time is lost",
    content: el("div", {},
      el("p", { class: "note" }, "the ideal step is the baseline's, scaled by work and ranks; shares are of the measured step"),
      curves.length > mostSmall
        ? oneOf("curve", curves.map((curve) => curve.short), (i) => [waterfallChart(curves[i], i)])
        : el("div", { class: "charts" }, curves.map(waterfallChart))),
  };
}
