// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows how far sides differ, point by point, and which causes make up the difference.
import { partOfCause } from "../causes.js";
import { fixed, missing, percent, rankCount, seconds } from "../format.js";
import { intervals } from "./intervals.js";

const known = (value) => typeof value === "number";

const verdicts = {
  regression: "bad", slower: "bad", faster: "good", passed: "good", "too noisy to tell": "warn", "one launch": "ideal",
  "no difference shown": "ideal",
};

export const verdictColour = (colours, verdict) => colours[verdicts[verdict] ?? "ideal"];

const symbolsOf = { regression: "diamond", slower: "diamond", faster: "triangle", passed: "circle", "too noisy to tell": "rect", "one launch": "circle" };

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

/**
 * Names the rows, from above. Each row is a difference: its ranks, its side if there are several,
 * and in the first row of a curve the curve's name.
 */
function rowNames(compare, names, differences) {
  const several = compare.sides.length > 2;
  const most = window.innerWidth < 520 ? 12 : 30;
  return differences.map((at, i) => {
    const begins = names.length > 1 && differences[i - 1]?.curve_index !== at.curve_index;
    const ranks = `${rankCount(at.ranks)}${several ? `, ${at.side}` : ""}${at.marks.length > 0 ? " *" : ""}`;
    return `${begins ? `${shortened(names[at.curve_index], most)}:  ` : ""}${ranks}`;
  });
}

const heightOf = (rows) => 100 + rows * (rows <= 24 ? 22 : 14);

function rowAxis(rows) {
  return {
    type: "category",
    data: rows.map((_, row) => String(row)),
    inverse: true,
    axisTick: { show: false },
    splitLine: { show: false },
    axisLabel: { interval: 0, formatter: (_, row) => rows[row] },
  };
}

const edge = 0.02; // margin on each side of an axis, as a share of the values' range

const sizes = {
  throughput: {
    of: (at) => ({ value: at.throughput.ratio - 1, lower: at.throughput.lower === null ? null : at.throughput.lower - 1, upper: at.throughput.upper === null ? null : at.throughput.upper - 1 }),
    text: (value) => `${value > 0 ? "+" : ""}${percent(value)}`,
    axis: (value) => percent(value, 0),
    name: "change of throughput",
    least: 0.1,
  },
  efficiency: {
    of: (at) => ({ value: at.efficiency.points, lower: at.efficiency.lower, upper: at.efficiency.upper }),
    text: (value) => `${value > 0 ? "+" : ""}${fixed(value, 1)} points`,
    axis: (value) => fixed(value, 0),
    name: "difference of efficiency in points",
    least: 10,
  },
};

/** Draws vertical lines at no difference, and at the loss that the gate allows. */
function marks(colours, gate, what) {
  const lines = [{ xAxis: 0, label: { show: false }, lineStyle: { color: colours.faint, type: "solid" } }];
  if (gate && what === "throughput") {
    lines.push({ xAxis: -gate.loss, label: { formatter: `gate ${percent(gate.loss, 0)}`, position: "start", color: colours.bad }, lineStyle: { color: colours.bad, type: "dashed" } });
  }
  return { silent: true, precision: 12, symbol: "none", data: lines };
}

function differenceChart(compare, names) {
  const { differences, gate } = compare;
  const rows = rowNames(compare, names, differences);
  const found = [...new Set(differences.map((at) => at.verdict))];
  const marked = differences.some((at) => at.marks.length > 0);
  return {
    id: "compare-differences",
    title: `Against ${compare.sides[0].name}`,
    note: `left of the line: slower than ${compare.sides[0].name}; whiskers: 95% over launches, with an arrow where they leave the chart, none below 3 launches a side` +
      `${gate ? "; dashed red: the gate" : ""}${marked ? "; *: unlike, compared anyway" : ""}`,
    switches: [{ name: "what", label: "show", choices: differences.some((at) => known(at.efficiency.points)) ? ["throughput", "efficiency"] : ["throughput"] }],
    height: heightOf(rows.length),
    table: {
      columns: [
        { title: "curve" }, { title: "ranks", number: true }, { title: "side" },
        { title: "throughput ratio", number: true, text: (value) => fixed(value, 4) }, { title: "lower", number: true, text: (value) => fixed(value, 4) }, { title: "upper", number: true, text: (value) => fixed(value, 4) },
        { title: "efficiency, points", number: true, text: (value) => fixed(value) }, { title: "lower ", number: true, text: (value) => fixed(value) }, { title: "upper ", number: true, text: (value) => fixed(value) },
        { title: "verdict" }, { title: "p of a regression", number: true, text: (value) => fixed(value, 4) }, { title: "p of passing", number: true, text: (value) => fixed(value, 4) }, { title: "unlike" },
      ],
      rows: differences.map((at) => [
        names[at.curve_index], at.ranks, at.side, at.throughput.ratio, at.throughput.lower, at.throughput.upper,
        at.efficiency.points, at.efficiency.lower, at.efficiency.upper, at.verdict, at.p_regression, at.p_passed, at.marks.join(", ")]),
    },
    option: (colours, state) => {
      const size = sizes[state.what];
      // The differences themselves must be visible, however wide their intervals are.
      const widest = (items) => 5 * Math.max(size.least, ...items.map(({ value }) => Math.abs(value)));
      const items = differences.map((at, row) => ({ at, row, ...size.of(at) })).filter(({ value }) => known(value));
      return {
        grid: { top: 26 },
        xAxis: { type: "value", scale: true, name: size.name, nameLocation: "middle", nameGap: 26, axisLabel: { formatter: size.axis },
          // The line of no difference and the gate are always visible, and there is room for whole
          // symbols at the ends.
          min: ({ min, max }) => Math.max(-widest(items), Math.min(min, state.what === "throughput" && gate ? -1.4 * gate.loss : 0)) - edge * (max - min),
          max: ({ min, max }) => Math.min(widest(items), Math.max(max, 0)) + edge * (max - min) },
        yAxis: rowAxis(rows),
        tooltip: {
          formatter: ({ data: item }) => {
            const { at, value, lower, upper } = item.of;
            return `${at.curve}\n${at.side} against ${at.against}, ${at.ranks} ranks: ${size.text(value)}` +
              (known(lower) ? `\n95%: ${size.text(lower)} to ${size.text(upper)}` : "\nno interval") +
              `\n${at.verdict}${at.marks.length ? `\nunlike: ${at.marks.join(", ")}` : ""}`;
          },
        },
        series: found.flatMap((verdict, i) => {
          const own = items.filter(({ at }) => at.verdict === verdict);
          const colour = verdictColour(colours, verdict);
          return [
            {
              type: "scatter",
              name: verdict,
              symbol: symbolsOf[verdict] ?? "circle",
              symbolSize: 11,
              itemStyle: { color: colour, opacity: 1 },
              data: own.map((item) => ({
                value: [item.value, item.row],
                of: item,
                // The symbol is hollow if the comparison makes no claim.
                itemStyle: verdict === "one launch" ? { color: colours.background, borderColor: colour, borderWidth: 2 } : undefined,
              })),
              ...(i === 0 ? { markLine: marks(colours, gate, state.what) } : {}),
            },
            intervals(verdict, colour, own.filter(({ lower }) => known(lower)).map(({ row, lower, upper }) => [lower, row, upper])),
          ];
        }),
      };
    },
  };
}

/** For each choice of the switch, the parts of a difference by cause, and how they are written. */
const ways = {
  "efficiency, points": { parts: (at) => at.why.map(({ cause, points }) => ({ cause, value: points })), text: (value) => `${fixed(value, 1)} points`, axis: (value) => fixed(value, 0) },
  "step time": {
    parts: (at) => (at.step.against > 0 ? at.step.why.map(({ cause, seconds: value }) => ({ cause, value: value / at.step.against })) : []),
    text: (value) => `${value > 0 ? "+" : ""}${percent(value)} of the step`,
    axis: (value) => percent(value, 0),
  },
};

/** The difference between traced and untraced steps, which is not a cause, so it comes last. */
const untraced = "untraced";
const shownAs = (cause) => (cause === untraced ? "traced steps differ" : cause);
const place = (cause) => (cause === untraced ? 2 : cause === "other causes" ? 1 : 0);

/** Causes in one part of a step have its colour, as in reports; here they differ in strength. */
function causeColour(colours, causes, cause) {
  if (cause === "other causes") return colours.parts.gap;
  if (cause === untraced) return colours.parts.other;
  const part = partOfCause(cause);
  const alike = causes.filter((at) => partOfCause(at) === part);
  const strength = 1 - (0.6 * alike.indexOf(cause)) / Math.max(2, alike.length - 1);
  return `${colours.parts[part]}${Math.round(255 * strength).toString(16)}`;
}

function whyChart(compare, names) {
  const present = Object.keys(ways).filter((name) => compare.differences.some((at) => ways[name].parts(at).length > 0));
  if (present.length === 0) return null;
  const first = compare.sides[0].name;
  const shownBy = Object.fromEntries(present.map((name) => [name, compare.differences.filter((at) => ways[name].parts(at).length > 0)]));
  const causes = [...new Set(compare.differences.flatMap((at) => present.flatMap((name) => ways[name].parts(at).map(({ cause }) => cause))))]
    .sort((a, b) => place(a) - place(b));
  return {
    id: "compare-why",
    title: "Why",
    note: `efficiency: what each cause takes (left) or gives (right) in points, bars add up to the difference; step time: what it adds to ${first}'s step; causes are uncertain where no difference is established, and where traced steps differ by more than the difference`,
    switches: [{ name: "of", label: "of", choices: present }],
    height: (state) => heightOf(shownBy[state.of].length),
    table: {
      columns: [
        { title: "curve" }, { title: "ranks", number: true }, { title: "side" }, { title: "of" }, { title: "cause" },
        { title: "points", number: true, text: (value) => fixed(value) }, { title: "seconds", number: true, text: seconds },
      ],
      rows: compare.differences.flatMap((at) => [
        ...at.why.map(({ cause, points }) => [names[at.curve_index], at.ranks, at.side, "efficiency", shownAs(cause), points, null]),
        ...at.step.why.map(({ cause, seconds: value }) => [names[at.curve_index], at.ranks, at.side, "step time", shownAs(cause), null, value]),
        ...(at.why_missing ? [[names[at.curve_index], at.ranks, at.side, "efficiency", at.why_missing, null, null]] : []),
      ]),
    },
    option: (colours, state) => {
      const way = ways[state.of];
      const shown = shownBy[state.of];
      return {
        grid: { top: 12 },
        xAxis: { type: "value", name: state.of === "step time" ? `of ${first}'s step` : "points of efficiency", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: way.axis } },
        yAxis: rowAxis(rowNames(compare, names, shown)),
        tooltip: { formatter: ({ seriesName, dataIndex, value }) => `${shown[dataIndex].curve}\n${shown[dataIndex].side} against ${first}, ${shown[dataIndex].ranks} ranks\n${seriesName}: ${known(value) ? way.text(value) : missing}` },
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

/** @returns {import("../chart.js").ChartSpec[]} */
export function differenceCharts(compare, names) {
  return [differenceChart(compare, names), whyChart(compare, names)].filter((spec) => spec !== null);
}
