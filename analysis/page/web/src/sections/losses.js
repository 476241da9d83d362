// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows where time is lost: the time that each cause adds to the ideal step, up to the measured
// step (the waterfall), and the tree of POP efficiencies (POP Centre of Excellence), by rank count.
import {
  column, columns, eachCurve, el, explains, ink, joined, known, labels, largest, launchesText, lined, lossesOf, meaning,
  metricsOf, note, panel, partOfCause, percent, pointTip, rankCount, seconds, tracing,
} from "../reexports.js";

// Causes that each take less than `least`, a share of the step, are drawn as one bar. It is left
// out if all of them together take less than `leastSeen`.
const least = 0.005;
const leastSeen = 0.0005;
const mostCounts = 10; // limit on the rank counts that the switch offers
const hasWaterfall = (point) => point.full.waterfall?.measured > 0;

/** Returns the bars of a waterfall chart, from the ideal step to the `whole` one: {name, seconds,
 * from, to, isWhole, part, tip}. If the causes do not add up to the loss, one bar stands for all of
 * them, and another for the difference between traced and untraced steps. */
function stairs(point, whole) {
  const { ideal, measured } = point.full.waterfall;
  const told = explains(point);
  const losses = lossesOf(point).filter((loss) => loss.seconds !== 0);
  const isShown = (loss) => Math.abs(loss.share) >= least && (told || loss.cause === tracing);
  const small = losses.filter((loss) => !isShown(loss));
  const rest = small.reduce((sum, loss) => sum + loss.seconds, 0);
  const level = (name, at) => ({ name, seconds: at, from: 0, to: at, isWhole: true });
  const steps = [level("ideal step", ideal)];
  const add = (name, amount, part, tip) => {
    const from = steps.at(-1).to;
    steps.push({ name, seconds: amount, from, to: from + amount, isWhole: false, part, tip });
  };
  for (const loss of losses.filter(isShown)) add(loss.cause, loss.seconds, partOfCause(loss.cause), meaning(loss.cause));
  if (Math.abs(rest) >= leastSeen * measured) {
    const name = !told ? "causes not told apart" : small.length === 1 ? small[0].cause : `${small.length} smaller`;
    add(name, rest, "other", told ? joined(small.map((loss) => loss.cause)) : "too few steps count, or traced steps differ from the others by over 10%");
  }
  return [...steps, level(whole, measured)];
}

function labelOf(step, measured, isWide) {
  if (step.isWhole) return seconds(step.seconds);
  const sign = step.seconds < 0 ? "\u2212" : "+";
  const size = Math.abs(step.seconds);
  return `${sign}${percent(size / measured)}${isWide ? `  ${sign}${seconds(size)}` : ""}`;
}

/** Returns a label for a bar from `x0` to `x1`: right of it, else left of it, else on it. */
function labelBeside(text, { x0, x1, area, colours, colour }) {
  const apart = 6;
  const width = 7.2 * text.length;
  const style = { text, verticalAlign: "middle", font: "12px system-ui, sans-serif", fill: colours.text };
  if (x1 + apart + width <= area.x + area.width) return { ...style, x: x1 + apart };
  if (x0 - apart - width >= area.x) return { ...style, x: x0 - apart, align: "right" };
  return { ...style, x: x1 - apart, align: "right", fill: ink(colour) };
}

const lowest = (step) => Math.min(step.from, step.to);
const highest = (steps) => Math.max(...steps.map((step) => Math.max(step.from, step.to)));

/** Returns the ECharts option for these bars. If the axis shows the whole step, it ends at `most`
 * seconds or later. Every tooltip ends with `tip`. */
function waterfallOption(steps, colours, { axis }, isNarrow, most, tip) {
  const isWhole = axis === "whole step";
  const measured = steps.at(-1).to;
  const low = Math.min(...steps.filter((step) => !step.isWhole).map(lowest), steps[0].to);
  const high = Math.max(highest(steps), isWhole ? most : 0);
  const from = isWhole ? 0 : Math.max(0, low - 0.08 * (high - low || high));
  const colourOf = (step) => (step.isWhole ? colours.ideal : step.seconds < 0 ? colours.good : colours.parts[step.part]);
  // If the axis begins above zero, the bars of whole steps fade out on the left.
  const fade = (step) => ({
    type: "linear", x: 0, y: 0, x2: 1, y2: 0,
    colorStops: [{ offset: 0, color: `${colours.ideal}00` }, { offset: Math.min(1, 0.06 * (high - from) / (step.to - from)), color: colours.ideal }],
  });
  const renderItem = ({ coordSys: area }, api) => {
    const i = api.value(0);
    const step = steps[i];
    const [x0, y] = api.coord([Math.max(from, lowest(step)), i]);
    const [x1] = api.coord([highest([step]), i]);
    const [edge] = api.coord([step.to, i]);
    const size = api.size([0, 1])[1];
    const height = Math.min(26, size * 0.66);
    const fill = from > 0 && step.isWhole ? fade(step) : colourOf(step);
    const label = labelBeside(labelOf(step, measured, !isNarrow), { x0, x1, area, colours, colour: colourOf(step) });
    // This line leads from the end of this bar to the begin of the next one.
    const next = { type: "line", silent: true, shape: { x1: edge, x2: edge, y1: y + height / 2, y2: y + size - height / 2 }, style: { stroke: colours.faint, lineWidth: 1, opacity: 0.6 } };
    return {
      type: "group",
      children: [
        { type: "rect", shape: { x: x0, y: y - height / 2, width: Math.max(1, x1 - x0), height, r: 2 }, style: { fill } },
        ...(i + 1 < steps.length ? [next] : []),
        { type: "text", style: { ...label, y } },
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
      return lined(`${step.name}: ${seconds(step.seconds)}, ${percent(step.seconds / measured)} of the step`, step.tip, tip);
    },
    series: [{
      type: "custom", name: "time", clip: true, data: steps.map((step, i) => [i, step.from, step.to]),
      encode: { y: 0, x: [1, 2] }, itemStyle: { color: colours.ideal }, renderItem,
    }],
  };
}

const numbers = columns("point", "curve, ranks, cause, time:seconds=seconds, share of the step:share=share, what it is", labels);

const rowsOf = (name, points, whole, means) => points.flatMap((point) => {
  const { ideal, measured } = point.full.waterfall;
  const row = (cause, of, what) => ({ curve: name, ranks: point.ranks, labels: point.labels, cause, seconds: of, share: of / measured, "what it is": what });
  return [
    row("ideal step", ideal, "the baseline's, scaled by work and ranks"),
    ...lossesOf(point).map((loss) => row(loss.cause, loss.seconds, meaning(loss.cause))),
    row(`${whole} step`, measured, means),
  ];
});

/** Returns at most mostCounts points: the first, the last and others evenly between them. */
function someOf(points) {
  if (points.length <= mostCounts) return points;
  return Array.from({ length: mostCounts }, (_, i) => points[Math.floor((i * (points.length - 1)) / (mostCounts - 1))]);
}

/** Describes the waterfall chart of a curve at one rank count. whole: "measured" or "predicted".
 * means: a sentence that explains `whole`. sure: the probability of the intervals in tooltips.
 * beside: the points of all charts that are shown together and whose axes end at one value. */
export function waterfallChart({ id, name, points, whole, means, sure, beside = [] }) {
  const isMeasured = whole === "measured";
  const shown = isMeasured ? points : someOf(points);
  const chosen = (all, { ranks }) => all.filter((point) => String(point.ranks) === ranks);
  const at = (all, state) => chosen(all, state).map((point) => stairs(point, whole));
  const counts = [...new Set(shown.map((point) => String(point.ranks)))];
  const last = points.at(-1);
  const lost = 1 - last.full.waterfall.ideal / last.full.waterfall.measured;
  const missing = [...new Set(points.flatMap((point) => point.full.waterfall.missing))];
  const labelled = points.filter((point) => point.labels.length > 0).map((point) => `${rankCount(point.ranks)}: ${point.labels.join(", ")}`);
  return {
    id,
    title: `Ideal to ${whole}: ${name}`,
    note: joined([`${percent(lost)} of the step is lost on ${rankCount(last.ranks)}`, launchesText(points), ...labelled, ...missing], "; "),
    switches: [{ name: "ranks", label: "ranks", choices: counts, value: counts.at(-1) },
      // The axis begins at zero if at least a fifth of the step is lost, else before the lost time.
      { name: "axis", label: "axis", choices: ["whole step", "lost time"], value: lost >= 0.2 ? "whole step" : "lost time" }],
    table: { columns: numbers.slice(0, isMeasured ? undefined : -1), items: rowsOf(name, points, whole, means) },
    legend: false,
    height: (state) => 44 + 32 * at(shown, state)[0].length,
    option: (colours, state, isNarrow) => waterfallOption(at(shown, state)[0], colours, state, isNarrow,
      Math.max(0, ...at(beside, state).map(highest)), pointTip(chosen(shown, state)[0], sure)),
  };
}

export function waterfallBlocks({ curves: all }) {
  const curves = all.filter((curve) => curve.points.some(hasWaterfall));
  const chartOf = (curve, i) => waterfallChart({
    id: `waterfall-${i}`, name: curve.short, points: curve.points.filter(hasWaterfall), whole: "measured", means: "median of untraced steps",
  });
  return [
    { when: curves.length > 0, note: "the ideal step is the baseline's, scaled by work and ranks; shares are of the measured step" },
    ...eachCurve(curves, chartOf)];
}

/** The POP efficiencies in the order of their tree: {key, name, level, what}. Each is the product
 * of those one level below it. In the report, a heading begins with two characters for each level;
 * `name` is the rest. */
const tree = Object.entries(metricsOf("pop")).map(([key, { heading, sentence }]) => {
  const name = heading.replace(/^[\s\u2500-\u257f]+/, "");
  return { key, name, level: (heading.length - name.length) / 2, what: sentence };
});

// POP's guidelines call values of at least 80% acceptable.
const fair = 0.8;

function cellOf(value) {
  const isFair = value >= fair;
  const strength = isFair ? (Math.min(value, 1) - fair) / (1 - fair) : Math.min(1, (fair - value) / 0.4);
  const heat = known(value) ? { class: `number heat ${isFair ? "fair" : "poor"}`, style: `--heat:${(8 + 44 * strength).toFixed(0)}%` } : { class: "number" };
  return el("td", heat, percent(value));
}

/** Makes the text of a point's rank count, with a dagger if the point has labels. */
const countOf = (point) =>
  [String(point.ranks), point.labels.length > 0 ? el("span", { class: "dagger", title: point.labels.join(", ") }, "\u2020") : null];
const head = (look, ...text) => el("th", { scope: "col", class: look }, text);

/** Makes a panel with a table of efficiencies, which can be scrolled in a narrow window. */
const treePanel = (title, label, heads, rows, ...notes) => panel(title, null, "",
  el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `POP efficiencies ${label}` },
    el("table", { class: "tree" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows))),
  notes.filter(Boolean).map(note));

const treesOf = (curve) => curve.points.filter((point) => point.full.pop);

function treeOf(curve) {
  const points = treesOf(curve);
  const labelled = points.filter((point) => point.labels.length > 0).map((point) => `${point.ranks}: ${point.labels.join(", ")}`);
  return treePanel(curve.short, `of ${curve.short}`,
    [head(null, "ranks"), points.map((point) => head("number", countOf(point)))],
    tree.map(({ key, name, level, what }) => el("tr", { class: level === 0 ? "top" : null },
      el("th", { scope: "row", class: `level-${level}`, title: what }, name), points.map((point) => cellOf(point.full.pop[key])))),
    launchesText(points), labelled.length > 0 ? `\u2020 ${labelled.join("; ")}` : "");
}

/** Shows the efficiencies of all curves, one line each, at their largest rank counts. */
const allCurves = (curves) => treePanel("At the largest rank count", "at the largest rank count",
  [head(null, "curve"), head("number", "ranks"),
    tree.map(({ name, what }) => el("th", { scope: "col", class: "number wrapped", title: what }, name))],
  curves.map((curve) => {
    const point = largest(treesOf(curve));
    return el("tr", {}, el("th", { scope: "row" }, curve.short),
      el("td", { class: "number" }, countOf(point)), tree.map(({ key }) => cellOf(point.full.pop[key])));
  }));

const popNumbers = columns("point", "curve, ranks", tree.map(({ key, name, what }) =>
  column(name, (point) => point.full.pop[key], { form: "share", about: what })), labels);

export function popBlocks({ curves: all }) {
  const curves = all.filter((curve) => treesOf(curve).length > 0);
  const items = curves.flatMap((curve) => treesOf(curve).map((point) => ({ curve: curve.short, ...point })));
  return curves.length > 0 && [
    { note: "each is the product of those one level below it; green from 80% on, which POP calls acceptable; \u2020 labelled" },
    curves.length > 1 && allCurves(curves),
    ...eachCurve(curves, treeOf),
    { fold: "table", look: "numbers", blocks: [{ table: { columns: popNumbers, items, caption: "POP efficiencies" } }] }];
}
