// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The page of a comparison: the verdict first, then curves, differences, causes, and differences in
// setup.
import { chart } from "../chart.js";
import { shortTitles } from "../data.js";
import { el } from "../dom.js";
import { missing, percent, ranksText, seconds, si } from "../format.js";
import { distinctOf, periodText } from "../machine.js";
import { changingChart, oneOf } from "../select.js";
import { table } from "../table.js";
import { ranksAxis } from "./curves.js";
import { differenceCharts } from "./differences.js";
import { endOf, whiskers } from "./intervals.js";

const dashes = ["solid", "dashed", "dotted", "dashed"];
const known = (value) => typeof value === "number";
const signed = (value, places = 1) => (known(value) ? `${value > 0 ? "+" : ""}${value.toFixed(places)}` : missing);
const change = (ratio) => (known(ratio) ? `${signed(100 * (ratio - 1))}%` : missing);

/**
 * Returns the names of a comparison's curves, in order, without the words that all of them share.
 */
export function curveNames(compare) {
  return shortTitles(compare.curves.map((curve) => curve.title));
}

const gateClass = { failed: "bad", passed: "good" };

function gateElement(gate) {
  return gate
    ? el("p", { class: `verdict ${gateClass[gate.verdict] ?? "warn"}` }, gate.sentence)
    : el("p", { class: "note" }, "No gate was given: --gate 5% says whether a loss is a regression.");
}

/** Lists the sides: machine, ranks, date, launches and version of each. */
function sidesList({ sides }) {
  const most = 4;
  return el("dl", { class: "facts sides" }, sides.map((side, i) => {
    const { launches } = side;
    const of = (key) => distinctOf(launches.map((launch) => launch[key]));
    const dates = launches.map((launch) => launch.created).sort();
    const files = launches.map((launch) => launch.file);
    const ranks = of("ranks");
    return el("div", { class: "fact" },
      el("dt", {}, `${side.name}${i === 0 ? ": the others are compared with it" : ""}`),
      el("dd", {}, el("b", {}, side.machines.join("; ") || missing)),
      el("dd", { class: "note" }, [
        launches.length === 1 ? "1 launch" : `${launches.length} launches`,
        ranksText(ranks),
        periodText(dates[0], dates.at(-1)),
        `Isoscale ${of("isoscale_version").join(", ") || missing}${of("git_hash").length > 0 ? `, git ${of("git_hash").join(", ")}` : ""}`,
      ].filter(Boolean).join(" \u00b7 ")),
      el("dd", { class: "note" }, `${files.slice(0, most).join(", ")}${files.length > most ? ` and ${files.length - most} more` : ""}`));
  }));
}

const plain = new Set(["passed", "no difference shown"]);

/** Lists the findings, the largest losses first. */
function findings({ differences }, names) {
  const told = differences.filter((at) => !plain.has(at.verdict)).sort((a, b) => a.throughput.ratio - b.throughput.ratio);
  const most = 6;
  if (told.length === 0) return el("p", { class: "saying" }, "No point is shown to be slower or faster.");
  return el("ul", { class: "saying" },
    told.slice(0, most).map((at) => el("li", {}, `${names.length > 1 ? `${names[at.curve_index]}: ` : ""}${at.said.throughput} [throughput: ${at.verdict}]`,
      at.said.efficiency ? el("div", { class: "note" }, at.said.efficiency) : null)),
    told.length > most ? el("li", {}, `${told.length - most} more in the table`) : null);
}

/**
 * True if the interval contains the value. The value is from medians over launches and the interval
 * from the launches themselves, so it may not.
 */
function holds({ lower, upper }, value) {
  const rounding = 1e-9 * (1 + Math.abs(value));
  return !known(lower) || !known(value) || (value >= lower - rounding && value <= upper + rounding);
}

function verdictTable(compare, names) {
  const interval = (of, show, value) => (known(of.lower) ? `${show(of.lower)} to ${show(of.upper)}${holds(of, value) ? "" : " !"}` : null);
  const apart = compare.differences.some(({ throughput, efficiency }) => !holds(throughput, throughput.ratio) || !holds(efficiency, efficiency.points));
  const points = (value) => signed(value);
  return table(
    [
      { title: "curve" }, { title: "ranks", number: true }, { title: "side" }, { title: "launches" },
      { title: "throughput", number: true, text: change }, { title: "95%", number: true },
      { title: "efficiency, points", number: true, text: points }, { title: "95% ", number: true },
      { title: "throughput verdict" }, { title: "unlike" },
    ],
    compare.differences.map((at) => [
      names[at.curve_index], at.ranks, `${at.side} against ${at.against}`, `${at.launches.side} and ${at.launches.against}`,
      at.throughput.ratio, interval(at.throughput, change, at.throughput.ratio), at.efficiency.points, interval(at.efficiency, points, at.efficiency.points),
      at.verdict, at.marks.join(", ")]),
    { caption: `each point of each side against the first side${apart ? "; !: the interval, of the launches' own values, does not hold the value, of medians" : ""}`, most: 40 });
}

function verdictSection(compare, names) {
  const refused = compare.refused.length > 0 ?
      [
        el('p', {class: 'verdict bad'}, 'Refused: the sides were run with different settings.'),
        el('ul', {class: 'saying'}, compare.unlike_lines.map((line) => el('li', {}, line)))
      ] :
      [];
  const marks = compare.unlike.length > 0 && refused.length === 0
    ? el("p", { class: "mark" }, `${compare.unlike_lines.length === 1 ? "One thing is" : `${compare.unlike_lines.length} things are`} unlike and compared anyway: see below.`)
    : null;
  return {
    id: "verdict",
    title: "Verdict",
    content: el("div", {}, compare.overall.map((at) => el("p", { class: "saying" }, el("b", {}, at.sentence))),
      sidesList(compare), ...refused, refused.length > 0 ? null : gateElement(compare.gate), marks, refused.length > 0 ? null : findings(compare, names),
      compare.differences.length > 0 ? verdictTable(compare, names) : null),
  };
}

/** For each chart of a curve, its title, and the value and interval that it shows of a point. */
const views = {
  efficiency: {
    title: "Efficiency", text: (value) => percent(value),
    value: (point) => point.efficiency.value,
    interval: (point) => (known(point.efficiency.lower) ? [point.efficiency.lower, point.efficiency.upper] : null),
  },
  throughput: {
    title: "Throughput", text: (value) => si(value),
    value: (point) => point.throughput.value,
    // The time of a number of steps is fixed, so this is the inverse of the step time's interval.
    interval: ({ step_time: time, throughput }) => (known(time.lower) && known(time.upper)
      ? [(throughput.value * time.median) / time.upper, (throughput.value * time.median) / time.lower] : null),
  },
};

function sideLines(curve, compare, colours, view) {
  return curve.sides.flatMap((side) => {
    const s = compare.sides.findIndex((at) => at.name === side.side);
    const colour = colours.series[s % colours.series.length];
    const points = side.points.filter((point) => known(view.value(point)));
    const bars = points.filter((point) => view.interval(point));
    return [
      {
        type: "line",
        name: side.side,
        symbol: "circle",
        symbolSize: 8,
        itemStyle: { color: colour },
        lineStyle: { color: colour, type: dashes[s % dashes.length], width: 2 },
        data: points.map((point) => ({
          value: [point.ranks, view.value(point)],
          point,
          itemStyle: point.labels.length + point.marks.length > 0 ? { color: colours.background, borderColor: colour, borderWidth: 2 } : undefined,
        })),
      },
      ...(bars.length > 0 ? [whiskers(side.side, colour, bars.map((point) => [point.ranks, ...view.interval(point)]))] : []),
    ];
  });
}

function curveNumbers(curve) {
  return {
    columns: [
      { title: "side" }, { title: "ranks", number: true }, { title: "nodes", number: true }, { title: "launches", number: true },
      { title: "step time", csv: "step time / s", number: true, text: seconds }, { title: "lower", number: true, text: seconds }, { title: "upper", number: true, text: seconds },
      { title: "throughput", number: true, text: (value) => si(value) }, { title: "unit" },
      { title: "efficiency", number: true, text: (value) => percent(value) },
      { title: "FLOP/s per rank", number: true, text: (value) => si(value) },
      ...["peak", "link", "watt"].flatMap((name) => [{ title: `per ${name}`, number: true, text: (value) => (name === "peak" ? percent(value) : si(value)) }, { title: `${name} is` }]),
      { title: "labels" }, { title: "unlike" },
    ],
    rows: curve.sides.flatMap((side) => side.points.map((point) => [
      side.side, point.ranks, point.nodes, point.launches.length, point.step_time.median, point.step_time.lower, point.step_time.upper,
      point.throughput.value, point.throughput.unit, point.efficiency.value, point.flops_per_rank,
      ...["peak", "link", "watt"].flatMap((name) => [point.normalised[name].value, point.normalised[name].against ?? point.normalised[name].missing]),
      point.labels.join(" "), point.marks.join(", ")])),
  };
}

/** Returns the curve in the form that curves.js needs for its axis. */
const asCurves = (curve) => curve.sides.map((side) => ({ points: side.points }));

function curveChart(curve, compare, name) {
  const view = views[name];
  const marked = curve.sides.some((side) => side.points.some((point) => point.labels.length + point.marks.length > 0));
  const points = curve.sides.flatMap((side) => side.points).filter((point) => known(view.value(point)));
  const values = points.map(view.value);
  const intervals = points.map(view.interval).filter(Boolean);
  const unit = name === "throughput" ? curve.sides[0]?.points[0]?.throughput.unit : "";
  return changingChart({
    id: `compare-${name}`,
    title: unit ? `${view.title}, ${unit}` : view.title,
    note: ["whiskers: 95% over launches, with an arrow where they leave the chart", marked ? "hollow: labelled or unlike" : null,
      curve.marks.length > 0 ? `unlike: ${curve.marks.join(", ")}` : null, name === "efficiency" ? curve.no_baseline : null].filter(Boolean).join("; "),
    switches: [{ name: "x", label: "ranks", choices: ["log", "linear"] }, { name: "y", label: "values", choices: ["from 0", "close up"] }],
    table: curveNumbers(curve),
    option: (colours, state) => ({
      xAxis: ranksAxis(asCurves(curve), state.x),
      yAxis: { type: "value", min: state.y === "from 0" ? 0 : undefined, max: endOf(values, intervals, "value"), scale: state.y !== "from 0", axisLabel: { formatter: (value) => (name === "efficiency" ? percent(value, 0) : si(value)) } },
      dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
      tooltip: {
        formatter: ({ seriesName, value, data: item }) =>
          `${seriesName}, ${value[0]} ranks: ${view.text(value[1])}\n${item.point.launches.length} launches, step ${seconds(item.point.step_time.median)}` +
          (item.point.labels.length ? `\n${item.point.labels.join(", ")}` : "") +
          (item.point.marks.length ? `\nunlike: ${item.point.marks.join(", ")}` : ""),
      },
      series: sideLines(curve, compare, colours, view),
    }),
  });
}

const normalisedNames = { peak: "FLOP/s of the peak", link: "throughput per byte/s of the link", watt: "throughput per watt" };

/** Shows rates relative to the machine's limits; for an unknown limit it gives the reason. */
function normalisedChart(curve, compare) {
  const points = curve.sides.flatMap((side) => side.points);
  const present = Object.keys(normalisedNames).filter((name) => points.some((point) => known(point.normalised[name].value)));
  if (present.length === 0) return null;
  const against = (name) => [...new Set(points.map((point) => point.normalised[name].against ?? point.normalised[name].missing).filter(Boolean))].join("; ");
  return changingChart({
    id: "compare-normalised",
    title: "Over what the machine has",
    note: present.map((name) => `${name}: ${against(name)}`).join(". "),
    switches: [{ name: "per", label: "per", choices: present }],
    table: curveNumbers(curve),
    option: (colours, state) => {
      const text = state.per === "peak" ? (value) => percent(value) : (value) => si(value);
      return {
        xAxis: ranksAxis(asCurves(curve), "log"),
        yAxis: { type: "value", min: 0, name: normalisedNames[state.per], nameTextStyle: { align: "left" }, axisLabel: { formatter: text } },
        tooltip: { formatter: ({ seriesName, value }) => `${seriesName}, ${value[0]} ranks: ${text(value[1])}` },
        series: sideLines(curve, compare, colours, { value: (point) => point.normalised[state.per].value, interval: () => null }),
      };
    },
  });
}

function curvesSection(compare, names) {
  if (compare.curves.length === 0) return null;
  return {
    id: "compare-curves",
    title: "Curves",
    content: oneOf("curve", names, (c) => [
      el("div", { class: "charts" }, ["efficiency", "throughput"].map((name) => curveChart(compare.curves[c], compare, name)),
        normalisedChart(compare.curves[c], compare))]),
  };
}

function differencesSection(compare, names) {
  if (compare.differences.length === 0) return null;
  const said = compare.differences.filter((at) => at.sentences.length > 0 && !plain.has(at.verdict));
  const most = 30;
  return {
    id: "differences",
    title: "Why",
    content: el("div", {},
      el("div", { class: "charts" }, differenceCharts(compare, names).map((spec) => chart(spec))),
      said.length > 0
        ? el("details", { class: "numbers" }, el("summary", {}, "in words"),
            el("ul", { class: "saying" }, said.slice(0, most).map((at) =>
              el("li", {}, el("span", {}, `${names[at.curve_index]}: ${[...at.sentences, ...at.not_separated].join(" ")}`))),
              said.length > most ? el("li", {}, `${said.length - most} more in the JSON report`) : null))
        : null),
  };
}

function unlikeSection(compare) {
  const sides = compare.sides.map((side) => side.name);
  const list = (title, lines) =>
    lines.length > 0 ? [el("h3", { class: "subtitle" }, title), el("ul", { class: "saying" }, lines.map((line) => el("li", {}, line)))] : [];
  const only = compare.only.map((at) =>
    `only in ${at.side}: ${at.curve}${at.ranks.length > 0 ? `, ${at.ranks.join(", ")} ranks` : ""}${at.reason ? `: ${at.reason}` : ""}`);
  const content = [
    ...(compare.machines.length > 0
      ? [el("h3", {}, "What differs between the machines"),
          table([{ title: "what" }, ...sides.map((title) => ({ title }))],
            compare.machines.map((at) => [at.name, ...sides.map((side) => at.values[side] || null)]))]
      : [el("p", { class: "note" }, "Nothing is known to differ between the machines.")]),
    ...list("Unlike, and compared anyway", compare.refused.length > 0 ? [] : compare.unlike_lines),
    ...list("Only on one side", only),
    ...list("Warnings", compare.warnings),
  ];
  return { id: "unlike", title: "Differences", content: el("div", {}, content) };
}

/**
 * Returns a function for each section of the page; it returns null if the section is empty.
 * @param {object} compare the comparison as compare --format json writes it
 */
export function compareSections(compare) {
  const names = curveNames(compare);
  return [
    () => verdictSection(compare, names),
    () => differencesSection(compare, names),
    () => curvesSection(compare, names),
    () => unlikeSection(compare),
  ];
}
