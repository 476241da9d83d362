// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows a point's step times, as a series and as a distribution, and its devices while steps were
// measured: clocks, power, temperature, and the times in which clocks were limited.
import {
  column, columns, fixed, groupBy, joined, lined, linesChart, markLine, meshTip, ownOf, percent, pointContent, pointTip, rankCount,
  seconds, si, timeTip,
} from "../reexports.js";

/** The names, symbols and colours of the kinds of steps; the index is `kind` in details.steps. */
const kinds = [
  { name: "measured", symbol: "circle", size: 5, colour: (colours) => colours.series[0] },
  { name: "traced", symbol: "triangle", size: 6, colour: (colours) => colours.series[1] },
  { name: "dropped: first of a block", symbol: "diamond", size: 8, isHollow: true, colour: (colours) => colours.series[3] },
  { name: "warm-up", symbol: "circle", size: 6, isHollow: true, colour: (colours) => colours.ideal },
];
const measured = 0, warmUp = 3;

/** Draws the median as a line and its interval as a band, behind the measured steps. */
function medianMarks({ median, lower, upper }, colours) {
  if (typeof median !== "number") return {};
  const band = { silent: true, itemStyle: { color: colours.series[0], opacity: 0.15 }, data: [[{ yAxis: lower }, { yAxis: upper }]] };
  return {
    markLine: markLine([{ yAxis: median }], { lineStyle: { color: colours.text, type: "dashed", width: 1 } }),
    ...(lower && upper ? { markArea: band } : {}),
  };
}

function seriesChart(point) {
  const { first, time, kind, every } = point.details.steps;
  // The step time shown is that of the launch whose steps are shown.
  const whole = point.full.step_time ?? point.step_time;
  const { median, lower, upper } = whole;
  const items = first.map((step, i) => ({ step, time: time[i], kind: kind[i] }));
  const byKind = kinds.map((_, of) => items.filter((at) => at.kind === of));
  const longest = (all) => Math.max(0, ...all.map((at) => at.time));
  // Warm-up steps may be so long that the differences between the others could not be seen.
  const isSlowStart = longest(byKind[warmUp]) > 1.3 * longest(items.filter((at) => at.kind !== warmUp));
  const hasStart = items.findIndex((at) => at.kind !== warmUp) > 0;
  const lineOfKind = ({ name, symbol, size, colour, isHollow }, of, colours) => ({
    name, type: "scatter", symbol, symbolSize: byKind[of].length > 400 ? size - 2 : size, itemStyle: { color: colour(colours) },
    items: byKind[of].map((at) => ({
      x: at.step, y: at.time, itemStyle: isHollow ? { color: colours.background, borderColor: colour(colours), borderWidth: 1.5 } : undefined,
    })),
    ...(of === measured ? medianMarks({ median, lower, upper }, colours) : {}),
  });
  return linesChart({
    id: "steps-series", title: "Step times",
    note: `the slowest rank's${every > 1 ? `, the longest of ${every} steps each` : ""}; only measured steps count; dashed: their median, ` +
      `${seconds(median)}${lower && upper ? ` (band: 95%, ${seconds(lower)} to ${seconds(upper)})` : ""}`,
    switches: [{ name: "show", label: "show", choices: hasStart ? ["all", "without warm-up"] : ["all"], value: isSlowStart ? "without warm-up" : "all" }],
    table: { columns: columns("", "step:count, time:seconds", { kind: (at) => kinds[at.kind].name }), items },
    x: { min: "dataMin", max: "dataMax", name: "step", splitLine: { show: false } },
    y: { scale: true, name: "step time", format: seconds },
    tip: ({ seriesName, value }) => lined(`step ${value[0]}: ${seconds(value[1])}`, seriesName, timeTip("median", whole), meshTip(point.mesh)),
    lines: (colours, { show }) => kinds.map((look, of) => lineOfKind(look, of, colours))
      .filter(({ items: drawn }, of) => drawn.length > 0 && (show === "all" || of !== warmUp)),
  });
}

// With fewer than six measured steps, no distribution is shown.
const hasDistribution = ({ details: { steps } }) =>
  Boolean(steps?.quantiles) && steps.kind.filter((kind) => kind === measured).length >= 6;
const quantileNumbers = columns("point", "ranks",
  [0, 5, 25, 50, 75, 95, 99, 100].map((share) =>
    column({ 0: "min", 100: "max" }[share] ?? `${share}%`, ({ details }) => details.steps.quantiles[share], { form: "seconds" })),
  column("99% / median", ({ details: { steps: { quantiles } } }) => quantiles[99] / quantiles[50], { form: "ratio" }));

/** Describes the distributions at all rank counts of a curve, so that a reader sees whether their
 * tails grow with ranks. */
function distributionChart(point, group) {
  const points = group.points.filter(hasDistribution);
  if (!points.includes(point)) return null;
  const isAlone = ({ of }) => of === "this point";
  return linesChart({
    id: "steps-distribution", title: "Distribution of step times",
    note: "share of measured steps that are no longer; over the curve's counts, each against its own median",
    switches: [{ name: "of", label: "of", choices: points.length > 1 ? ["the curve", "this point"] : ["this point"] }],
    table: { columns: quantileNumbers, items: points },
    x: (state) => ({ scale: true, ...(isAlone(state) ? { name: "step time", format: seconds } : { name: "step time / median", format: (value) => fixed(value) }) }),
    y: { min: 0, max: 1, name: "steps", format: (value) => percent(value, 0) },
    tip: ({ seriesName, value }, state) => lined(
      `${seriesName}: ${percent(value[1], 0)} of steps take at most ${isAlone(state) ? seconds(value[0]) : `${fixed(value[0], 3)} of the median`}`,
      pointTip(points.find((at) => rankCount(at.ranks) === seriesName))),
    lines: (_, state) => points.map((at, i) => ({
      name: rankCount(at.ranks), i, symbol: "none", triggerLineEvent: true, stroke: { width: at === point ? 3 : 1.5 }, z: at === point ? 4 : 2,
      items: at.details.steps.quantiles.map((value, share, all) => [isAlone(state) ? value : value / all[50], share / 100]),
    })).filter((_, i) => !isAlone(state) || points[i] === point),
  });
}

export const stepsBlocks = ({ curves }) => [pointContent(curves, ({ steps }) => steps, (point, group) => {
  const { steps } = point.details;
  if (!steps || steps.first.length === 0) return [{ note: "This point has no step times." }];
  return [{ charts: [seriesChart(point), distributionChart(point, group)] }];
})];

const titles = {
  sm_clock: "SM clock", clock: "CPU clock", power: "Power", temperature: "Temperature", utilisation: "Utilisation",
  memory_clock: "Memory clock", clock_min: "Lowest CPU clock",
};

/** Returns {of, text}: `of` converts a value to the unit for people, which `text` formats. */
function unitOf(unit) {
  if (unit === "K") return { of: (value) => value - 273.15, text: (value) => `${fixed(value, 0)} \u00b0C` };
  return { of: (value) => value, text: (value) => (unit === "1" ? percent(value, 0) : si(value, unit)) };
}

const shortName = (at) => `rank ${at.world_rank}, ${at.device}`;
const deviceName = (at) => `${shortName(at)}${at.host ? ` on ${at.host}` : ""}`;

/** Returns when a device's clock was limited: [{from, to, why}]; a sample holds until the next. */
function heldDown(throttle) {
  const spans = [];
  throttle?.time.forEach((time, i) => {
    const why = throttle.value[i];
    if (!why) return;
    const to = throttle.time[i + 1] ?? time;
    if (spans.at(-1)?.to === time && spans.at(-1).why === why) spans.at(-1).to = to;
    else spans.push({ from: time, to, why });
  });
  return spans;
}

/** Draws thick lines over those parts of a line in which the device's clock was limited. */
const heldLine = (series, held, of, colours) => ({
  name: "held down", symbol: "circle", symbolSize: 4, showSymbol: true, connectNulls: false, z: 4,
  stroke: { color: colours.bad, width: 3 }, itemStyle: { color: colours.bad },
  items: series.time.map((x, i) => {
    const why = held.find(({ from, to }) => x >= from && x <= to)?.why;
    return { x, y: why ? of(series.value[i]) : null, why, device: deviceName(series) };
  }),
});

function quantityChart(quantity, all, throttles, point) {
  const { unit, devices } = all[0];
  const { of, text } = unitOf(unit);
  const averaged = Math.max(...all.map((at) => at.averaged));
  const title = ownOf(titles, quantity) ?? quantity.replaceAll("_", " ");
  const nameOf = new Set(all.map((at) => at.host)).size > 1 ? deviceName : shortName;
  const held = all.map((series) => heldDown(throttles.find((at) => at.rank === series.rank && at.device === series.device)));
  const count = (name, key) => column(name, ({ series, i }) => series[key]?.[i], { form: "count" });
  return linesChart({
    id: `device-${quantity}`, title,
    note: joined([
      all.length < devices && `${all.length} of ${devices} devices: those that differ most`,
      averaged > 1 && `each value is the mean of ${averaged} samples`,
      held.some((spans) => spans.length > 0) && "red: clocks were held down"], "; "),
    height: 260,
    table: {
      columns: columns("", { device: ({ series }) => deviceName(series) }, { ...count("time", "time"), text: (at) => fixed(at), csv: "time / s" },
        count(`${title} / ${unit}`, "value"), count("lowest", "low"), count("highest", "high")),
      items: all.flatMap((series) => series.time.map((_, i) => ({ series, i }))),
    },
    x: { name: "time in the loop", min: ({ min }) => Math.min(0, min), max: "dataMax", splitLine: { show: false }, format: seconds },
    y: { ...(unit === "1" ? { min: 0, max: 1 } : { scale: true }), format: text },
    tip: ({ seriesName, value, data: item }) => lined(item?.why ? `${item.device}\nheld down by ${item.why}` : seriesName,
      !item?.why && value && `${seconds(value[0])}: ${text(value[1])}`, pointTip(point)),
    lines: (colours) => [
      ...all.map((series) => ({
        name: nameOf(series), symbol: "none", triggerLineEvent: true, stroke: { width: 1.3 },
        items: series.time.map((time, at) => [time, of(series.value[at])]),
      })),
      ...all.map((series, i) => heldLine(series, held[i], of, colours)).filter((_, i) => held[i].length > 0)],
  });
}

/** Returns sentences that tell how long each device's clock was limited, and why. */
const heldTexts = (throttles, length) => throttles.flatMap((throttle) =>
  [...groupBy(heldDown(throttle), ({ why }) => why)].map(([why, spans]) => {
    const time = spans.reduce((sum, { from, to }) => sum + to - from, 0);
    return `${deviceName(throttle)}: held down by ${why} for ${percent(time / length, 0)} of the loop`;
  }));

/** The reasons for lowered clocks get no line: they are marks on the device's other lines. */
const isDrawn = ({ quantity }) => quantity !== "throttle_reasons";

/** True if the values of the quantity differ; a constant quantity gets no chart. */
const changes = (all) => all.some(({ value }) => value.some((at) => at !== all[0].value[0]));

function blocksOf(point) {
  const devices = point.details.devices.filter((at) => at.time.length > 0);
  const throttles = devices.filter((at) => at.quantity === "throttle_reasons");
  const quantities = [...groupBy(devices.filter(isDrawn), ({ quantity }) => quantity)].filter(([, all]) => changes(all));
  if (quantities.length === 0) return [{ note: "No device was sampled at this point, or none changed." }];
  const length = Math.max(...devices.map((at) => at.time.at(-1) - Math.min(0, at.time[0])));
  return [
    { list: heldTexts(throttles, length), look: "saying mark-list" },
    { charts: quantities.map(([quantity, all]) => quantityChart(quantity, all, throttles, point)) }];
}

export const devicesBlocks = ({ curves }) => [pointContent(curves, ({ devices }) => devices.some(isDrawn), blocksOf)];
