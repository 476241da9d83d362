// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows how far the compared sides differ, point by point, and which causes make up the difference.
import { partOfCause, tracing } from "../causes.js";
import { fixed, joined, known, missing, percent, rankCount, signedPercent } from "../format.js";
import { hollow, markLine, whiskers } from "../marks.js";
import { count, decimal, ends, time, words } from "../table.js";

/** Maps each verdict to its colour (theme.js) and symbol; other verdicts look like "one launch". */
const verdicts = {
  regression: ["bad", "diamond"], slower: ["bad", "diamond"], faster: ["good", "triangle"], passed: ["good", "circle"],
  "too noisy to tell": ["warn", "rect"], "one launch": ["ideal", "circle"],
};
const lookOf = (verdict) => verdicts[verdict] ?? verdicts["one launch"];

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

/**
 * Makes the axis of rows. Each row is a difference: its ranks, its side if there are several, and in
 * the first row of a curve the curve's name.
 */
function rowAxis(compare, names, differences) {
  const several = compare.sides.length > 2;
  const most = window.innerWidth < 520 ? 12 : 30;
  const rows = differences.map((at, i) => {
    const begins = names.length > 1 && differences[i - 1]?.curve_index !== at.curve_index;
    const ranks = `${rankCount(at.ranks)}${several ? `, ${at.side}` : ""}${at.marks.length > 0 ? " *" : ""}`;
    return `${begins ? `${shortened(names[at.curve_index], most)}:  ` : ""}${ranks}`;
  });
  return {
    type: "category", data: rows.map((_, row) => String(row)), inverse: true, splitLine: { show: false },
    axisLabel: { interval: 0, formatter: (_, row) => rows[row] },
  };
}

const heightOf = (rows) => 100 + rows * (rows <= 24 ? 22 : 14);

const edge = 0.02; // margin on each side of an axis, as a share of the values' range

const sizes = {
  throughput: {
    of: ({ throughput: { ratio, lower, upper } }) => [ratio, lower, upper].map((at) => (at === null ? null : at - 1)),
    text: (value) => signedPercent(value),
    axis: (value) => percent(value, 0),
    name: "change of throughput",
    least: 0.1,
  },
  efficiency: {
    of: ({ efficiency: { points, lower, upper } }) => [points, lower, upper],
    text: (value) => `${value > 0 ? "+" : ""}${fixed(value, 1)} points`,
    axis: (value) => fixed(value, 0),
    name: "difference of efficiency in points",
    least: 10,
  },
};

/** Draws vertical lines at a difference of zero, and at the largest loss that the gate allows. */
const marks = (colours, gate) => markLine([
  { xAxis: 0, lineStyle: { color: colours.faint, type: "solid" } },
  ...(gate ? [{
    xAxis: -gate.loss, lineStyle: { color: colours.bad, type: "dashed" },
    label: { show: true, formatter: `gate ${percent(gate.loss, 0)}`, position: "start", color: colours.bad },
  }] : []),
]);

const ratio = (title, value) => decimal(title, value, 4);
const identity = (names) => [words("curve", (at) => names[at.curve_index]), count("ranks"), words("side")];

const differenceColumns = (names) => [
  ...identity(names),
  ...ends(ratio, "throughput ratio", ({ throughput: at }) => [at.ratio, at.lower, at.upper]),
  ...ends(decimal, "efficiency, points", ({ efficiency: at }) => [at.points, at.lower, at.upper]),
  words("verdict"), ratio("p of a regression", (at) => at.p_regression), ratio("p of passing", (at) => at.p_passed),
  words("unlike", (at) => at.marks.join(", ")),
];

function differenceChart(compare, names) {
  const { differences, gate: asked } = compare;
  const first = compare.sides[0].name;
  const found = [...new Set(differences.map((at) => at.verdict))];
  const marked = differences.some((at) => at.marks.length > 0);
  return {
    id: "compare-differences",
    title: `Against ${first}`,
    note: `left of the line: slower than ${first}; whiskers: 95% over launches, with an arrow where they leave the chart, none below 3 launches a side` +
      `${asked ? "; dashed red: the gate" : ""}${marked ? "; *: unlike, compared anyway" : ""}`,
    switches: [{ name: "what", label: "show", choices: differences.some((at) => known(at.efficiency.points)) ? ["throughput", "efficiency"] : ["throughput"] }],
    height: heightOf(differences.length),
    table: { columns: differenceColumns(names), items: differences },
    option: (colours, state) => {
      const size = sizes[state.what];
      const gate = state.what === "throughput" ? asked : null;
      const items = differences.map((at, row) => ({ at, row, ends: size.of(at) })).filter(({ ends: [value] }) => known(value));
      // The differences themselves must be visible, however wide their intervals are.
      const widest = 5 * Math.max(size.least, ...items.map(({ ends: [value] }) => Math.abs(value)));
      return {
        grid: { top: 26 },
        xAxis: {
          scale: true, name: size.name, format: size.axis,
          // The lines of zero difference and of the gate are always visible, and whole symbols fit
          // at the ends.
          min: ({ min, max }) => Math.max(-widest, Math.min(min, gate ? -1.4 * gate.loss : 0)) - edge * (max - min),
          max: ({ min, max }) => Math.min(widest, Math.max(max, 0)) + edge * (max - min),
        },
        yAxis: rowAxis(compare, names, differences),
        tip: ({ data: { of: { at, ends: [value, lower, upper] } } }) => joined([
          at.curve, `${at.side} against ${at.against}, ${at.ranks} ranks: ${size.text(value)}`,
          known(lower) ? `95%: ${size.text(lower)} to ${size.text(upper)}` : "no interval",
          at.verdict, at.marks.length > 0 && `unlike: ${at.marks.join(", ")}`], "\n"),
        series: found.flatMap((verdict, i) => {
          const own = items.filter(({ at }) => at.verdict === verdict);
          const [name, symbol] = lookOf(verdict);
          const colour = colours[name];
          return [
            {
              type: "scatter",
              name: verdict,
              symbol,
              symbolSize: 11,
              itemStyle: { color: colour, opacity: 1 },
              data: own.map((item) => ({
                value: [item.ends[0], item.row],
                of: item,
                itemStyle: verdict === "one launch" ? hollow(colours, colour) : undefined,
              })),
              ...(i === 0 ? { markLine: marks(colours, gate) } : {}),
            },
            whiskers(verdict, colour, own.filter(({ ends: [, lower] }) => known(lower)).map(({ row, ends: [, lower, upper] }) => [lower, row, upper]), true),
          ];
        }),
      };
    },
  };
}

/** Maps each choice of the switch to the parts of a difference by cause, and to their format. */
const ways = {
  "efficiency, points": {
    parts: (at) => at.why.map(({ cause, points }) => ({ cause, value: points })),
    text: (value) => `${fixed(value, 1)} points`,
    axis: (value) => fixed(value, 0),
  },
  "step time": {
    parts: (at) => (at.step.against > 0 ? at.step.why.map(({ cause, seconds }) => ({ cause, value: seconds / at.step.against })) : []),
    text: (value) => `${signedPercent(value)} of the step`,
    axis: (value) => percent(value, 0),
  },
};

// The difference between traced and untraced steps is not a cause, so it comes last.
const shownAs = (cause) => (cause === tracing ? "traced steps differ" : cause);
const place = (cause) => (cause === tracing ? 2 : cause === "other causes" ? 1 : 0);

/**
 * Returns the colour of a cause, which is that of its part of the step, as in reports. Causes in
 * the same part differ in strength.
 */
function causeColour(colours, causes, cause) {
  if (cause === "other causes") return colours.parts.gap;
  if (cause === tracing) return colours.parts.other;
  const part = partOfCause(cause);
  const alike = causes.filter((at) => partOfCause(at) === part);
  const strength = 1 - (0.6 * alike.indexOf(cause)) / Math.max(2, alike.length - 1);
  return `${colours.parts[part]}${Math.round(255 * strength).toString(16)}`;
}

const whyRows = (at) => [
  ...at.why.map(({ cause, points }) => ({ ...at, of: "efficiency", cause: shownAs(cause), points })),
  ...at.step.why.map(({ cause, seconds }) => ({ ...at, of: "step time", cause: shownAs(cause), seconds })),
  ...(at.why_missing ? [{ ...at, of: "efficiency", cause: at.why_missing }] : []),
];

function whyChart(compare, names) {
  const shownBy = Object.fromEntries(Object.entries(ways)
    .map(([name, { parts }]) => [name, compare.differences.filter((at) => parts(at).length > 0)]).filter(([, shown]) => shown.length > 0));
  const present = Object.keys(shownBy);
  if (present.length === 0) return null;
  const first = compare.sides[0].name;
  const causes = [...new Set(compare.differences.flatMap((at) => present.flatMap((name) => ways[name].parts(at).map(({ cause }) => cause))))]
    .sort((a, b) => place(a) - place(b));
  return {
    id: "compare-why",
    title: "Why",
    note: `efficiency: what each cause takes (left) or gives (right) in points, bars add up to the difference; step time: what it adds to ${first}'s step; causes are uncertain where no difference is established, and where traced steps differ by more than the difference`,
    switches: [{ name: "of", label: "of", choices: present }],
    height: (state) => heightOf(shownBy[state.of].length),
    table: {
      columns: [...identity(names), words("of"), words("cause"), decimal("points"), time("seconds")],
      items: compare.differences.flatMap(whyRows),
    },
    option: (colours, state) => {
      const way = ways[state.of];
      const shown = shownBy[state.of];
      return {
        grid: { top: 12 },
        xAxis: { name: state.of === "step time" ? `of ${first}'s step` : "points of efficiency", format: way.axis },
        yAxis: rowAxis(compare, names, shown),
        tip: ({ seriesName, dataIndex, value }) => {
          const { curve, side, ranks } = shown[dataIndex];
          return `${curve}\n${side} against ${first}, ${ranks} ranks\n${seriesName}: ${known(value) ? way.text(value) : missing}`;
        },
        series: causes
          .map((cause) => ({
            type: "bar",
            name: shownAs(cause),
            stack: "why",
            barMaxWidth: 18,
            itemStyle: { color: causeColour(colours, causes, cause), borderColor: colours.background, borderWidth: 1 },
            data: shown.map((at) => way.parts(at).find((part) => part.cause === cause)?.value ?? null),
          }))
          .filter(({ data }) => data.some(known)),
      };
    },
  };
}

/** @returns {(import("../chart.js").ChartSpec|null)[]} */
export const differenceCharts = (compare, names) => [differenceChart(compare, names), whyChart(compare, names)];
