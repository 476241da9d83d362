// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the page of a comparison: the verdict first, then curves, differences, causes, and
// differences in setup.
import { fact } from "../blocks.js";
import { shortTitles } from "../data.js";
import { el } from "../dom.js";
import { distinctOf, joined, known, listed, meshTip, missing, percent, ranksText, si, signedPercent } from "../format.js";
import { periodText } from "../machine.js";
import { overRanks, stepTip } from "../marks.js";
import { oneOf } from "../select.js";
import { count, ends, rate, share, time, words } from "../table.js";
import { differenceCharts } from "./differences.js";

const dashes = ["solid", "dashed", "dotted", "dashed"];
const change = (ratio) => signedPercent(known(ratio) ? ratio - 1 : null);
const points = (value) => (known(value) ? `${value > 0 ? "+" : ""}${value.toFixed(1)}` : missing);

const gateClass = { failed: "bad", passed: "good" };

const gateElement = (gate) => (gate
  ? el("p", { class: `verdict ${gateClass[gate.verdict] ?? "warn"}` }, gate.sentence)
  : el("p", { class: "note" }, "No gate was given: --gate 5% says whether a loss is a regression."));

/** Lists the sides: machine, ranks, date, launches and version of each. */
const sidesList = ({ sides }) => el("dl", { class: "facts sides" }, sides.map(({ name, machines, launches }, i) => {
  const of = (key) => distinctOf(launches.map((launch) => launch[key]));
  const dates = launches.map((launch) => launch.created).sort();
  const software = joined([`Isoscale ${joined(of("isoscale_version")) || missing}`, of("git_hash").length > 0 && `git ${joined(of("git_hash"))}`]);
  return fact(`${name}${i === 0 ? ": the others are compared with it" : ""}`, machines.join("; ") || missing,
    joined([launches.length === 1 ? "1 launch" : `${launches.length} launches`, ranksText(of("ranks")), periodText(dates[0], dates.at(-1)), software], " \u00b7 "),
    listed(launches.map((launch) => launch.file), 4));
}));

const plain = new Set(["passed", "no difference shown"]);

/** Returns the block that lists the findings, the largest losses first. */
function findings({ differences }, names) {
  const told = differences.filter((at) => !plain.has(at.verdict)).sort((a, b) => a.throughput.ratio - b.throughput.ratio);
  if (told.length === 0) return { saying: "No point is shown to be slower or faster." };
  const item = (at) => [`${names.length > 1 ? `${names[at.curve_index]}: ` : ""}${at.said.throughput} [throughput: ${at.verdict}]`,
    at.said.efficiency ? el("div", { class: "note" }, at.said.efficiency) : null];
  return { list: told.map(item), most: 6, rest: "more in the table" };
}

/**
 * True if the interval contains the value. It may not, since the value comes from medians over
 * launches and the interval from the launches themselves.
 */
function holds({ lower, upper }, value) {
  const rounding = 1e-9 * (1 + Math.abs(value));
  return !known(lower) || !known(value) || (value >= lower - rounding && value <= upper + rounding);
}

function verdictTable({ differences }, names) {
  const interval = (of, show, value) => (known(of.lower) ? `${show(of.lower)} to ${show(of.upper)}${holds(of, value) ? "" : " !"}` : null);
  const apart = differences.some(({ throughput, efficiency }) => !holds(throughput, throughput.ratio) || !holds(efficiency, efficiency.points));
  const shown = (title, value, text) => ({ ...count(title, value), text });
  return {
    columns: [
      words("curve", (at) => names[at.curve_index]), count("ranks"), words("side", (at) => `${at.side} against ${at.against}`),
      words("launches", (at) => `${at.launches.side} and ${at.launches.against}`),
      shown("throughput", (at) => at.throughput.ratio, change),
      count("95%", ({ throughput: at }) => interval(at, change, at.ratio)),
      shown("efficiency, points", (at) => at.efficiency.points, points),
      count("95% ", ({ efficiency: at }) => interval(at, points, at.points)),
      words("throughput verdict", (at) => at.verdict), words("unlike", (at) => at.marks.join(", ")),
    ],
    items: differences,
    caption: `each point of each side against the first side${apart ? "; !: the interval, of the launches' own values, does not hold the value, of medians" : ""}`,
    most: 40,
  };
}

function verdictSection(compare, names) {
  const { refused, unlike, unlike_lines: lines, differences } = compare;
  const isRefused = refused.length > 0;
  return {
    id: "verdict",
    title: "Verdict",
    blocks: [
      ...compare.overall.map((at) => ({ saying: el("b", {}, at.sentence) })),
      sidesList(compare),
      ...(isRefused
        ? [el("p", { class: "verdict bad" }, "Refused: the sides were run with different settings."), { list: lines, most: lines.length }]
        : [gateElement(compare.gate),
          { when: unlike.length > 0, mark: `${lines.length === 1 ? "One thing is" : `${lines.length} things are`} unlike and compared anyway: see below.` },
          findings(compare, names)]),
      { when: differences.length > 0, table: verdictTable(compare, names) }],
  };
}

const normalised = ["peak", "link", "watt"];

const columns = [
  words("side"), count("ranks"), count("nodes"), count("launches", (point) => point.launches.length),
  ...ends(time, "step time", ({ step_time: at }) => [at.median, at.lower, at.upper]),
  rate("throughput", (point) => point.throughput.value), words("unit", (point) => point.throughput.unit),
  share("efficiency", (point) => point.efficiency.value), rate("FLOP/s per rank", (point) => point.flops_per_rank),
  ...normalised.flatMap((name) => [
    (name === "peak" ? share : rate)(`per ${name}`, (point) => point.normalised[name].value),
    words(`${name} is`, (point) => point.normalised[name].against ?? point.normalised[name].missing)]),
  words("labels", ({ labels }) => labels.join(" ")), words("unlike", ({ marks }) => marks.join(", ")),
];

/** Maps each chart of a curve to its title, and to the value and interval of a point in it. */
const views = {
  efficiency: {
    title: "Efficiency", text: (value) => percent(value), axis: (value) => percent(value, 0),
    value: (point) => point.efficiency.value,
    interval: ({ efficiency: { lower, upper } }) => (known(lower) ? [lower, upper] : null),
  },
  throughput: {
    title: "Throughput", text: (value) => si(value), axis: (value) => si(value),
    value: (point) => point.throughput.value,
    // The work of a step is fixed, so this is the inverse of the interval of the step time.
    interval: ({ step_time: { median, lower, upper }, throughput: { value } }) =>
      (known(lower) && known(upper) ? [(value * median) / upper, (value * median) / lower] : null),
  },
};

/** Returns a line for each side of a curve. */
const linesOf = (curve, compare, { value, interval = () => null }) => curve.sides.map((side) => {
  const i = compare.sides.findIndex((at) => at.name === side.side);
  return {
    name: side.side,
    i,
    stroke: { type: dashes[i % dashes.length], width: 2 },
    items: side.points.filter((point) => known(value(point))).map((point) => ({
      x: point.ranks,
      y: value(point),
      interval: interval(point),
      isHollow: point.labels.length + point.marks.length > 0,
      tip: joined([`${point.launches.length} launches, ${stepTip(point.step_time)}`, meshTip(point.mesh), joined(point.labels),
        point.marks.length > 0 && `unlike: ${point.marks.join(", ")}`], "\n"),
    })),
  };
});

const numbersOf = (curve) => ({
  columns,
  items: curve.sides.flatMap(({ side, points: own }) => own.map((point) => ({ side, ...point }))),
});

function curveChart(curve, compare, name) {
  const { title, text, axis, ...view } = views[name];
  const marked = numbersOf(curve).items.some(({ labels, marks }) => labels.length + marks.length > 0);
  const unit = name === "throughput" ? curve.sides[0]?.points[0]?.throughput.unit : "";
  return overRanks({
    id: `compare-${name}`,
    title: unit ? `${title}, ${unit}` : title,
    note: joined(["whiskers: 95% over launches, with an arrow where they leave the chart", marked && "hollow: labelled or unlike",
      curve.marks.length > 0 && `unlike: ${curve.marks.join(", ")}`, name === "efficiency" && curve.no_baseline], "; "),
    switches: [{ name: "y", label: "values", choices: ["from 0", "close up"] }],
    table: numbersOf(curve),
    lines: linesOf(curve, compare, view),
    text,
    axis,
  });
}

const normalisedNames = { peak: "FLOP/s of the peak", link: "throughput per byte/s of the link", watt: "throughput per watt" };

/** Shows rates relative to the machine's limits, or the reason why a limit is unknown. */
function normalisedChart(curve, compare) {
  const all = curve.sides.flatMap((side) => side.points);
  const present = normalised.filter((name) => all.some((point) => known(point.normalised[name].value)));
  if (present.length === 0) return null;
  const against = (name) => distinctOf(all.map(({ normalised: at }) => at[name].against ?? at[name].missing)).join("; ");
  return overRanks({
    id: "compare-normalised",
    title: "Over what the machine has",
    note: present.map((name) => `${name}: ${normalisedNames[name]} (${against(name)})`).join(". "),
    switches: [{ name: "per", label: "per", choices: present }],
    table: numbersOf(curve),
    lines: ({ per }) => linesOf(curve, compare, { value: (point) => point.normalised[per].value }),
    text: (value, { per }) => (per === "peak" ? percent(value) : si(value)),
  });
}

function curvesSection(compare, names) {
  if (compare.curves.length === 0) return null;
  const show = (c) => {
    const curve = compare.curves[c];
    return [{ charts: [...Object.keys(views).map((name) => curveChart(curve, compare, name)), normalisedChart(curve, compare)] }];
  };
  return { id: "compare-curves", title: "Curves", blocks: [oneOf("curve", names, show)] };
}

function differencesSection(compare, names) {
  if (compare.differences.length === 0) return null;
  const said = compare.differences.filter((at) => at.sentences.length > 0 && !plain.has(at.verdict))
    .map((at) => el("span", {}, `${names[at.curve_index]}: ${[...at.sentences, ...at.not_separated].join(" ")}`));
  return {
    id: "differences",
    title: "Why",
    blocks: [
      { charts: differenceCharts(compare, names) },
      { when: said.length > 0, fold: "in words", look: "numbers", blocks: [{ list: said, most: 30, rest: "more in the JSON report" }] }],
  };
}

function unlikeSection(compare) {
  const list = (title, lines) => (lines.length > 0 ? [el("h3", { class: "subtitle" }, title), { list: lines, most: lines.length }] : []);
  const only = compare.only.map((at) =>
    `only in ${at.side}: ${at.curve}${at.ranks.length > 0 ? `, ${at.ranks.join(", ")} ranks` : ""}${at.reason ? `: ${at.reason}` : ""}`);
  const machines = {
    columns: [words("what", (at) => at.name), ...compare.sides.map(({ name }) => words(name, (at) => at.values[name] || null))],
    items: compare.machines,
  };
  return {
    id: "unlike",
    title: "Differences",
    blocks: [
      ...(compare.machines.length > 0 ? [el("h3", {}, "What differs between the machines"), { table: machines }]
        : [{ note: "Nothing is known to differ between the machines." }]),
      ...list("Unlike, and compared anyway", compare.refused.length > 0 ? [] : compare.unlike_lines),
      ...list("Only on one side", only),
      ...list("Warnings", compare.warnings)],
  };
}

/**
 * Returns a function for each section of the page; it returns null if the section is empty.
 * @param {object} compare the comparison as compare --format json writes it
 */
export function compareSections(compare) {
  const names = shortTitles(compare.curves.map((curve) => curve.title));
  const makers = [verdictSection, differencesSection, curvesSection, unlikeSection];
  return makers.map((make) => () => make(compare, names));
}
