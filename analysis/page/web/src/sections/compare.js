// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the page of a comparison of sides, which are one or more launches each: the verdict, the
// differences point by point with their causes, curves, and differences in setup.
import {
  axisNumber, axisPercent, column, columns, distinctOf, dotted, el, ends, fact, fixed, formOf, groupBy, hollow, isNarrow, joined, known, labels,
  lined, listed, markLine, meshTip, metricsOf, missing, note, oneOf, overRanks, partOfCause, percent, periodText, pointTip,
  rankCount, ranksText, rateOf, scales, signedPercent, timeTip, tracing, viewOf, whiskers,
} from "../reexports.js";

const dashes = ["solid", "dashed", "dotted", "dashed"];
const change = (ratio) => signedPercent(known(ratio) ? ratio - 1 : null);
const points = (value) => (known(value) ? `${value > 0 ? "+" : ""}${value.toFixed(1)}` : missing);
const gateLooks = { failed: "bad", passed: "good" };
const gateElement = (gate) => (gate
  ? el("p", { class: `verdict ${gateLooks[gate.verdict] ?? "warn"}` }, gate.sentence)
  : note("No gate was given: --gate 5% says whether a loss is a regression."));

/** Lists the sides: machine, ranks, date, launches and version of each. */
const sidesList = ({ sides }) => el("dl", { class: "facts sides" }, sides.map(({ name, machines, launches }, i) => {
  const of = (key) => distinctOf(launches.map((launch) => launch[key]));
  const dates = launches.map((launch) => launch.created).sort();
  const software = joined([`Isoscale ${joined(of("isoscale_version")) || missing}`, of("git_hash").length > 0 && `git ${joined(of("git_hash"))}`]);
  return fact(`${name}${i === 0 ? ": the others are compared with it" : ""}`, machines.join("; ") || missing,
    dotted(launches.length === 1 ? "1 launch" : `${launches.length} launches`, ranksText(of("ranks")), periodText(dates[0], dates.at(-1)), software),
    listed(launches.map((launch) => launch.file), 4));
}));

const plain = new Set(["passed", "no difference shown"]);

/** Lists the differences, the largest losses first, without those whose verdict is in `plain`. */
function findings({ differences }, names) {
  const told = differences.filter((at) => !plain.has(at.verdict)).sort((a, b) => a.throughput.ratio - b.throughput.ratio);
  if (told.length === 0) return { saying: "No point is shown to be slower or faster." };
  const item = (at) => [`${names.length > 1 ? `${names[at.curve_index]}: ` : ""}${at.said.throughput} [throughput: ${at.verdict}]`,
    at.said.efficiency ? el("div", { class: "note" }, at.said.efficiency) : null];
  return { list: told.map(item), most: 6, rest: "more in the table" };
}

/** True if the interval contains the value, or is not known. The value may lie outside its
 * interval, since it comes from medians over launches and the interval from means over launches. */
function holds({ lower, upper }, value) {
  const rounding = 1e-9 * (1 + Math.abs(value));
  return !known(lower) || !known(value) || (value >= lower - rounding && value <= upper + rounding);
}

function verdictTable({ differences }, names) {
  const interval = (of, show, value) => (known(of.lower) ? `${show(of.lower)} to ${show(of.upper)}${holds(of, value) ? "" : " !"}` : null);
  const apart = differences.some(({ throughput, efficiency }) => !holds(throughput, throughput.ratio) || !holds(efficiency, efficiency.points));
  const count = (title, value, text) => column(title, value, { form: "count", ...(text ? { text } : {}) });
  return {
    columns: columns("point", { curve: (at) => names[at.curve_index] }, "ranks",
      { side: (at) => `${at.side} against ${at.against}`, launches: (at) => `${at.launches.side} and ${at.launches.against}` },
      count("throughput", (at) => at.throughput.ratio, change), count("95%", ({ throughput: at }) => interval(at, change, at.ratio)),
      count("efficiency, points", (at) => at.efficiency.points, points), count("95% ", ({ efficiency: at }) => interval(at, points, at.points)),
      { "throughput verdict": (at) => at.verdict, unlike: (at) => at.marks.join(", ") }),
    items: differences,
    caption: `each point of each side against the first side${apart ? "; !: the interval, of the launches' own values, does not hold the value, of medians" : ""}`,
    most: 40,
  };
}

export function verdictBlocks({ compare, names }) {
  const { refused, unlike, unlike_lines: lines, overall } = compare;
  return [
    ...overall.map((at) => ({ saying: el("b", {}, at.sentence) })),
    sidesList(compare),
    ...compare.warnings.map((mark) => ({ mark })),
    ...(refused.length > 0
      ? [el("p", { class: "verdict bad" }, "Refused: the sides were run with different settings."), { list: lines, most: lines.length }]
      : [gateElement(compare.gate),
        { when: unlike.length > 0, mark: `${lines.length === 1 ? "One thing is" : `${lines.length} things are`} unlike and compared anyway: see below.` },
        findings(compare, names)]),
    { table: verdictTable(compare, names) }];
}

/** The metrics for rates relative to the machine's limits, by key: {heading, form, ...}. */
const normalised = metricsOf("rate");
const limitOf = ({ normalised: at }, name) => at[name].against ?? at[name].missing;

const numbers = columns("point", "side, ranks, nodes, launches:count=launches.length, step_time~, throughput, unit=throughput.unit",
  "efficiency, flops_per_rank, ...",
  Object.entries(normalised).flatMap(([name, { form }]) =>
    columns("", `per ${name}:${form}=normalised.${name}.value`, { [`${name} is`]: (point) => limitOf(point, name) })),
  labels, { unlike: ({ marks }) => marks.join(", ") });

const isMarked = (point) => point.labels.length + point.marks.length > 0;

/** Describes a chart with a line for each side of a curve; its table has all numbers. */
const sidesChart = (curve, compare, spec) => overRanks({
  table: { columns: numbers, items: curve.sides.flatMap(({ side, points: own }) => own.map((point) => ({ side, ...point }))) },
  lines: curve.sides.map(({ side, points: own }) => {
    const i = compare.sides.findIndex((at) => at.name === side);
    return { name: side, i, stroke: { type: dashes[i % dashes.length], width: 2 }, points: own };
  }),
  isHollow: isMarked,
  tipOf: (point) => lined(`${point.launches.length} launches`, pointTip(point), point.marks.length > 0 && `unlike: ${point.marks.join(", ")}`),
  ...spec,
});

function curveChart(curve, compare, name) {
  const unit = name === "throughput" ? curve.sides[0]?.points[0]?.throughput.unit : "";
  return sidesChart(curve, compare, {
    id: `compare-${name}`,
    ...viewOf(name), figure: (point) => (name === "efficiency" ? point.efficiency : rateOf(point.throughput.value, point.step_time)),
    title: joined([viewOf(name).title, unit]),
    note: joined(["whiskers: 95% over launches, with an arrow where they leave the chart",
      curve.sides.some((side) => side.points.some(isMarked)) && "hollow: labelled or unlike",
      curve.marks.length > 0 && `unlike: ${curve.marks.join(", ")}`, name === "efficiency" && curve.no_baseline], "; "),
    switches: [scales("from 0", "close up")],
  });
}

/** Describes the chart of rates relative to the machine's limits; its note tells the limits. */
function normalisedChart(curve, compare) {
  const all = curve.sides.flatMap((side) => side.points);
  const present = Object.keys(normalised).filter((name) => all.some((point) => known(point.normalised[name].value)));
  // Limits that differ only after their last comma have their words once: "GPUs, 655 W, 1.31 kW".
  const wordsOf = (limit) => limit.slice(0, Math.max(0, limit.lastIndexOf(", ")));
  const against = (name) => [...groupBy(distinctOf(all.map((point) => limitOf(point, name))), wordsOf)].flatMap(([words, same]) =>
    (words ? [joined([words, ...same.map((limit) => limit.slice(words.length + 2))])] : same)).join("; ");
  return present.length > 0 && sidesChart(curve, compare, {
    id: "compare-normalised", title: "Over what the machine has",
    note: present.map((name) => `${name}: ${normalised[name].heading} (${against(name)})`).join(". "),
    switches: [{ name: "per", label: "per", choices: present }],
    figure: (point, { per }) => point.normalised[per],
    text: (value, { per }) => formOf(normalised[per]).text(value),
  });
}

export const compareCurvesBlocks = ({ compare, names }) => [oneOf("curve", names, (c) => {
  const curve = compare.curves[c];
  return [{ charts: [...["efficiency", "throughput"].map((name) => curveChart(curve, compare, name)), normalisedChart(curve, compare)] }];
})];

export function differencesBlocks({ compare, names }) {
  const said = compare.differences.filter((at) => at.sentences.length > 0 && !plain.has(at.verdict))
    .map((at) => el("span", {}, `${names[at.curve_index]}: ${[...at.sentences, ...at.not_separated].join(" ")}`));
  return compare.differences.length > 0 && [
    { charts: [differenceChart(compare, names), whyChart(compare, names)] },
    { when: said.length > 0, fold: "in words", look: "numbers", blocks: [{ list: said, most: 30, rest: "more in the JSON report" }] }];
}

export function unlikeBlocks({ compare }) {
  const list = (title, lines) => (lines.length > 0 ? [el("h3", { class: "subtitle" }, title), { list: lines, most: lines.length }] : []);
  const only = compare.only.map((at) =>
    `only in ${at.side}: ${at.curve}${at.ranks.length > 0 ? `, ${at.ranks.join(", ")} ranks` : ""}${at.reason ? `: ${at.reason}` : ""}`);
  const machines = {
    columns: columns("", "what=name", compare.sides.map(({ name }) => column(name, (at) => at.values[name] || null))),
    items: compare.machines,
  };
  return [
    ...(compare.machines.length > 0 ? [el("h3", {}, "What differs between the machines"), { table: machines }]
      : [{ note: "Nothing is known to differ between the machines." }]),
    ...list("Unlike, and compared anyway", compare.refused.length > 0 ? [] : compare.unlike_lines),
    ...list("Only on one side", only)];
}

/** Maps verdicts to a colour (choices.js) and a symbol; others are drawn like "one launch". */
const verdicts = {
  regression: ["bad", "diamond"], slower: ["bad", "diamond"], faster: ["good", "triangle"], passed: ["good", "circle"],
  "too noisy to tell": ["warn", "rect"], "one launch": ["ideal", "circle"],
};

/** Makes the axis of rows, one for each difference. A label has the rank count, the side if several
 * are compared with the first, and in the first row of a curve the curve's name. */
function rowAxis(compare, names, differences) {
  const several = compare.sides.length > 2;
  const most = isNarrow() ? 12 : 30;
  const rows = differences.map((at, i) => {
    const begins = names.length > 1 && differences[i - 1]?.curve_index !== at.curve_index;
    const name = names[at.curve_index];
    const ranks = `${rankCount(at.ranks)}${several ? `, ${at.side}` : ""}${at.marks.length > 0 ? " *" : ""}`;
    return begins ? `${name.length > most ? `${name.slice(0, most - 1)}\u2026` : name}:  ${ranks}` : ranks;
  });
  return {
    type: "category", data: rows.map((_, row) => String(row)), inverse: true, splitLine: { show: false },
    axisLabel: { interval: 0, formatter: (_, row) => rows[row] },
  };
}

const heightOf = (rows) => 100 + rows * (rows <= 24 ? 22 : 14);
const edge = 0.02; // margin at each end of an axis, as a share of the range of values

const sizes = {
  throughput: {
    of: ({ throughput: { ratio, lower, upper } }) => [ratio, lower, upper].map((at) => (at === null ? null : at - 1)),
    text: (value) => signedPercent(value), axis: axisPercent, name: "change of throughput", least: 0.1,
  },
  efficiency: {
    of: ({ efficiency: { points, lower, upper } }) => [points, lower, upper],
    text: (value) => `${value > 0 ? "+" : ""}${fixed(value, 1)} points`, axis: axisNumber,
    name: "difference of efficiency in points", least: 10,
  },
};

/** Draws vertical lines at zero and at the largest loss that the gate (--gate) allows. */
const marks = (colours, gate) => markLine([
  { xAxis: 0, lineStyle: { color: colours.faint, type: "solid" } },
  ...(gate ? [{
    xAxis: -gate.loss, lineStyle: { color: colours.bad, type: "dashed" },
    label: { show: true, formatter: `gate ${percent(gate.loss, 0)}`, position: "start", color: colours.bad },
  }] : []),
]);

const identity = (names) => columns("point", { curve: (at) => names[at.curve_index] }, "ranks, side");

const fine = { form: "ratio", text: (value) => fixed(value, 4) };
const differenceColumns = (names) => columns("", identity(names),
  ends("throughput ratio", ({ throughput: at }) => [at.ratio, at.lower, at.upper], fine),
  ends("efficiency, points", ({ efficiency: at }) => [at.points, at.lower, at.upper], { form: "ratio" }),
  "verdict", column("p of a regression", (at) => at.p_regression, fine), column("p of passing", (at) => at.p_passed, fine),
  { unlike: (at) => at.marks.join(", ") });

/** Returns a tooltip's lines about a difference: the step times of both points and their mesh. */
function stepsTip({ curves }, { curve_index: curve, side, against, ranks }) {
  const pointOf = (name) => curves[curve].sides.find((at) => at.side === name).points.find((at) => at.ranks === ranks);
  return lined(...[against, side].map((name) => timeTip(`${name}: step`, pointOf(name).step_time)), meshTip(pointOf(side).mesh));
}

/** Draws the differences of one verdict with their intervals. `own` lists them as {at, row, ends}:
 * the difference, the index of its row, and [value, lower, upper]. */
function seriesOf(verdict, own, colours, markLines) {
  const [name, symbol] = verdicts[verdict] ?? verdicts["one launch"];
  const colour = colours[name];
  const itemStyle = verdict === "one launch" ? hollow(colours, colour) : undefined;
  const sure = own.filter(({ ends: [, lower] }) => known(lower));
  return [
    {
      type: "scatter", name: verdict, symbol, symbolSize: 11, itemStyle: { color: colour, opacity: 1 },
      data: own.map((of) => ({ value: [of.ends[0], of.row], of, itemStyle })), ...markLines,
    },
    whiskers(verdict, colour, sure.map(({ row, ends: [, lower, upper] }) => [lower, row, upper]), true),
  ];
}

function differenceChart(compare, names) {
  const { differences, gate: asked } = compare;
  const first = compare.sides[0].name;
  const found = [...new Set(differences.map((at) => at.verdict))];
  const marked = differences.some((at) => at.marks.length > 0);
  return {
    id: "compare-differences", title: `Against ${first}`,
    note: `left of the line: slower than ${first}; whiskers (with 3 or more launches per side): 95% over launches, with an arrow where they leave the chart` +
      `${asked ? "; dashed red: the gate" : ""}${marked ? "; *: unlike, compared anyway" : ""}`,
    switches: [{ name: "what", label: "show", choices: differences.some((at) => known(at.efficiency.points)) ? ["throughput", "efficiency"] : ["throughput"] }],
    height: heightOf(differences.length),
    table: { columns: differenceColumns(names), items: differences },
    option: (colours, state) => {
      const size = sizes[state.what];
      const gate = state.what === "throughput" ? asked : null;
      const items = differences.map((at, row) => ({ at, row, ends: size.of(at) })).filter(({ ends: [value] }) => known(value));
      // Very wide intervals are cut, so that the differences themselves stay visible.
      const widest = 5 * Math.max(size.least, ...items.map(({ ends: [value] }) => Math.abs(value)));
      return {
        grid: { top: 26 },
        xAxis: {
          scale: true, name: size.name, format: size.axis,
          // Zero and the gate are inside the axis, and symbols at its ends are not cut.
          min: ({ min, max }) => Math.min(Math.max(-widest, min), gate ? -1.4 * gate.loss : 0) - edge * (max - min),
          max: ({ min, max }) => Math.max(Math.min(widest, max), 0) + edge * (max - min),
        },
        yAxis: rowAxis(compare, names, differences),
        tip: ({ data: { of: { at, ends: [value, lower, upper] } } }) => lined(
          at.curve, `${at.side} against ${at.against}, ${at.ranks} ranks: ${size.text(value)}`,
          known(lower) ? `95%: ${size.text(lower)} to ${size.text(upper)}` : "no interval",
          at.verdict, at.marks.length > 0 && `unlike: ${at.marks.join(", ")}`, stepsTip(compare, at)),
        series: found.flatMap((verdict, i) =>
          seriesOf(verdict, items.filter(({ at }) => at.verdict === verdict), colours, i === 0 ? { markLine: marks(colours, gate) } : {})),
      };
    },
  };
}

/** Maps each choice of the switch to `parts`, which returns a difference's values by cause, and to
 * the formats of these values. */
const ways = {
  "efficiency, points": {
    parts: (at) => at.why.map(({ cause, points }) => ({ cause, value: points })),
    text: (value) => `${fixed(value, 1)} points`,
    axis: axisNumber,
  },
  "step time": {
    parts: (at) => (at.step.against > 0 ? at.step.why.map(({ cause, seconds }) => ({ cause, value: seconds / at.step.against })) : []),
    text: (value) => `${signedPercent(value)} of the step`,
    axis: axisPercent,
  },
};

// "untraced" is not a cause, but the difference between traced and untraced steps. It comes last,
// with another name.
const shownAs = (cause) => (cause === tracing ? "traced steps differ" : cause);
const place = (cause) => (cause === tracing ? 2 : cause === "other causes" ? 1 : 0);

/** Returns the colour of a cause's part of the step; causes of one part differ in opacity. */
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
    id: "compare-why", title: "Why",
    note: `efficiency: what each cause takes (left) or gives (right) in points, bars add up to the difference; step time: what it adds to ${first}'s step; causes are uncertain where no difference is established, and where traced steps differ by more than the difference`,
    switches: [{ name: "of", label: "of", choices: present }],
    height: (state) => heightOf(shownBy[state.of].length),
    table: { columns: columns("", identity(names), "of, cause, points:ratio, seconds:seconds"), items: compare.differences.flatMap(whyRows) },
    option: (colours, state) => {
      const way = ways[state.of];
      const shown = shownBy[state.of];
      const valueOf = (at, cause) => way.parts(at).find((part) => part.cause === cause)?.value ?? null;
      return {
        grid: { top: 12 },
        xAxis: { name: state.of === "step time" ? `of ${first}'s step` : "points of efficiency", format: way.axis },
        yAxis: rowAxis(compare, names, shown),
        tip: ({ seriesName, dataIndex, value }) => {
          const { curve, side, ranks } = shown[dataIndex];
          return lined(curve, `${side} against ${first}, ${ranks} ranks`, `${seriesName}: ${known(value) ? way.text(value) : missing}`,
            stepsTip(compare, shown[dataIndex]));
        },
        series: causes.map((cause) => ({
          type: "bar", name: shownAs(cause), stack: "why", barMaxWidth: 18,
          itemStyle: { color: causeColour(colours, causes, cause), borderColor: colours.background, borderWidth: 1 },
          data: shown.map((at) => valueOf(at, cause)),
        })).filter(({ data }) => data.some(known)),
      };
    },
  };
}
