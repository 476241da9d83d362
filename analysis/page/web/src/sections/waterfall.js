// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the time that each cause added, from the ideal step to the measured one.
import { explains, lossesOf, meaning, partOfCause, tracing } from "../causes.js";
import { launchesText } from "../data.js";
import { joined, percent, rankCount, seconds } from "../format.js";
import { ink } from "../parts.js";
import { oneOf } from "../select.js";
import { count, share, time, words } from "../table.js";

const mostSmall = 6;
// Causes below the share `least` of the step are shown as one; if they are below `leastSeen`
// together, they are not shown.
const least = 0.005;
const leastSeen = 0.0005;
// If at least this share of the step is lost, the axis begins at zero; otherwise it shows the lost
// time.
const wholeFrom = 0.2;
const mostCounts = 10; // buttons of a switch

const hasWaterfall = (point) => Boolean(point.full.waterfall && point.full.waterfall.measured > 0);

/**
 * Returns the steps of the staircase: {name, seconds, from, to, kind, part, tip}; the last one is
 * the whole step, named `whole`. If the causes do not explain the loss, they are one step, and the
 * difference between traced and untraced steps is another.
 */
function stairs(point, whole) {
  const { ideal, measured } = point.full.waterfall;
  const told = explains(point);
  const losses = lossesOf(point).filter((loss) => loss.seconds !== 0);
  const isShown = (loss) => Math.abs(loss.share) >= least && (told || loss.cause === tracing);
  const small = losses.filter((loss) => !isShown(loss));
  const rest = small.reduce((sum, loss) => sum + loss.seconds, 0);
  const steps = [{ name: "ideal step", seconds: ideal, from: 0, to: ideal, kind: "whole" }];
  let at = ideal;
  const add = (name, amount, part, tip) => {
    steps.push({ name, seconds: amount, from: at, to: at + amount, kind: "cause", part, tip });
    at += amount;
  };
  for (const loss of losses.filter(isShown)) add(loss.cause, loss.seconds, partOfCause(loss.cause), meaning(loss.cause));
  if (Math.abs(rest) >= leastSeen * measured) {
    const name = !told ? "causes not told apart" : small.length === 1 ? small[0].cause : `${small.length} smaller`;
    add(name, rest, "other", told ? joined(small.map((loss) => loss.cause)) : "too few steps count, or traced steps differ from the others by over 10%");
  }
  return [...steps, { name: whole, seconds: measured, from: 0, to: measured, kind: "whole" }];
}

function labelOf(step, measured, isWide) {
  if (step.kind === "whole") return seconds(step.seconds);
  const sign = step.seconds < 0 ? "\u2212" : "+";
  const size = Math.abs(step.seconds);
  return `${sign}${percent(size / measured)}${isWide ? `  ${sign}${seconds(size)}` : ""}`;
}

/**
 * Places a label on the right of its bar, which is from `x0` to `x1`. If there is no room, the
 * label is on the left; if there is none there either, it is on the bar.
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
 * Returns the chart's option for a staircase; the axis of a whole step ends at least at `highest`.
 */
function waterfallOption(steps, colours, { axis }, isNarrow, highest) {
  const isWhole = axis === "whole step";
  const measured = steps.at(-1).to;
  const low = Math.min(...steps.filter((step) => step.kind === "cause").map((step) => Math.min(step.from, step.to)), steps[0].to);
  const high = Math.max(top(steps), isWhole ? highest : 0);
  const from = isWhole ? 0 : Math.max(0, low - 0.08 * (high - low || high));
  const colourOf = (step) => (step.kind === "whole" ? colours.ideal : step.seconds < 0 ? colours.good : colours.parts[step.part]);
  // If the axis begins above zero, bars that begin at zero fade out towards it.
  const fade = (step) => ({
    type: "linear", x: 0, y: 0, x2: 1, y2: 0,
    colorStops: [{ offset: 0, color: `${colours.ideal}00` }, { offset: Math.min(1, 0.06 * (high - from) / (step.to - from)), color: colours.ideal }],
  });
  const renderItem = ({ coordSys: area }, api) => {
    const i = api.value(0);
    const step = steps[i];
    const [x0, y] = api.coord([Math.max(from, Math.min(step.from, step.to)), i]);
    const x1 = api.coord([Math.max(step.from, step.to), i])[0];
    const size = api.size([0, 1])[1];
    const height = Math.min(26, size * 0.66);
    const edge = api.coord([step.to, i])[0];
    const fill = from > 0 && step.kind === "whole" ? fade(step) : colourOf(step);
    // This line leads to the next step, which begins where this one ends.
    const next = { type: "line", silent: true, shape: { x1: edge, x2: edge, y1: y + height / 2, y2: y + size - height / 2 }, style: { stroke: colours.faint, lineWidth: 1, opacity: 0.6 } };
    return {
      type: "group",
      children: [
        { type: "rect", shape: { x: x0, y: y - height / 2, width: Math.max(1, x1 - x0), height, r: 2 }, style: { fill } },
        ...(i + 1 < steps.length ? [next] : []),
        { type: "text", style: { ...labelBeside(labelOf(step, measured, !isNarrow), { x0, x1, area, colours, colour: colourOf(step) }), y } },
      ],
    };
  };
  return {
    grid: { top: 8 },
    xAxis: {
      min: from, max: high + (isNarrow ? 0.36 : 0.26) * (high - from), splitLine: { showMaxLine: false },
      format: (value) => (value > high || (value === from && from > 0) ? "" : seconds(value)),
    },
    yAxis: { type: "category", inverse: true, data: steps.map((step) => step.name), axisLabel: { interval: 0, width: isNarrow ? 100 : 150, overflow: "truncate" } },
    tip: ({ dataIndex }) => {
      const step = steps[dataIndex];
      return joined([`${step.name}: ${seconds(step.seconds)}, ${percent(step.seconds / measured)} of the step`, step.tip], "\n");
    },
    series: [{
      type: "custom", name: "time", clip: true, data: steps.map((step, i) => [i, step.from, step.to]),
      encode: { y: 0, x: [1, 2] }, itemStyle: { color: colours.ideal }, renderItem,
    }],
  };
}

const columns = [
  words("curve"), count("ranks"), words("cause"), time("time", (row) => row.seconds), share("share of the step", (row) => row.share),
  words("what it is"), words("labels", ({ labels }) => labels.join(" ")),
];

const rowsOf = (name, points, whole, means) => points.flatMap((point) => {
  const { ideal, measured } = point.full.waterfall;
  const row = (cause, of, what) => ({ curve: name, ranks: point.ranks, labels: point.labels, cause, seconds: of, share: of / measured, "what it is": what });
  return [
    row("ideal step", ideal, "the baseline's, scaled by work and ranks"),
    ...lossesOf(point).map((loss) => row(loss.cause, loss.seconds, meaning(loss.cause))),
    row(`${whole} step`, measured, means),
  ];
});

/** Returns all points, or an even selection with the first and the last if there are many. */
function someOf(points) {
  if (points.length <= mostCounts) return points;
  return Array.from({ length: mostCounts }, (_, i) => points[Math.floor((i * (points.length - 1)) / (mostCounts - 1))]);
}

/**
 * Describes the chart of a curve's staircases.
 * @param {{id: string, name: string, points: object[], whole: string, means: string, beside?: object[]}}
 *   of whole: "measured" or "predicted", means: a sentence that explains it; beside: all points of
 *   the charts that are shown together, whose axes end at the same value
 */
export function waterfallChart({ id, name, points, whole, means, beside = [] }) {
  const shown = whole === "measured" ? points : someOf(points);
  const counts = [...new Set(shown.map((point) => String(point.ranks)))];
  const chosen = (state) => shown.find((point) => String(point.ranks) === state.ranks);
  const last = points.at(-1);
  const lost = 1 - last.full.waterfall.ideal / last.full.waterfall.measured;
  const missing = [...new Set(points.flatMap((point) => point.full.waterfall.missing))];
  const labelled = points.filter((point) => point.labels.length > 0).map((point) => `${rankCount(point.ranks)}: ${point.labels.join(", ")}`);
  const highest = (state) => Math.max(0, ...beside.filter((point) => String(point.ranks) === state.ranks).map((point) => top(stairs(point, whole))));
  return {
    id,
    title: `Ideal to ${whole}: ${name}`,
    note: joined([`${percent(lost)} of the step is lost on ${rankCount(last.ranks)}`, launchesText(points), ...labelled, ...missing], "; "),
    switches: [{ name: "ranks", label: "ranks", choices: counts, value: counts.at(-1) },
      { name: "axis", label: "axis", choices: ["whole step", "lost time"], value: lost >= wholeFrom ? "whole step" : "lost time" }],
    table: { columns: columns.slice(0, whole === "measured" ? undefined : -1), items: rowsOf(name, points, whole, means) },
    legend: false,
    height: (state) => 44 + 32 * stairs(chosen(state), whole).length,
    option: (colours, state, isNarrow) => waterfallOption(stairs(chosen(state), whole), colours, state, isNarrow, highest(state)),
  };
}

/** @param {import("../data.js").Curve[]} all */
export function waterfallSection(all) {
  const curves = all.filter((curve) => curve.points.some(hasWaterfall));
  if (curves.length === 0) return null;
  const specs = curves.map((curve, i) => waterfallChart({
    id: `waterfall-${i}`, name: curve.short, points: curve.points.filter(hasWaterfall), whole: "measured", means: "median of untraced steps",
  }));
  return {
    id: "waterfall",
    title: "Lost time",
    heading: "Where time is lost",
    blocks: [
      { note: "the ideal step is the baseline's, scaled by work and ranks; shares are of the measured step" },
      specs.length > mostSmall ? oneOf("curve", curves.map((curve) => curve.short), (i) => [{ charts: [specs[i]] }])
        : { charts: specs }],
  };
}
