// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows devices during the measured loop: clocks, power, temperature, and the times when clocks
// were limited.
import { ownOf } from "../data.js";
import { fixed, percent, si } from "../format.js";
import { colourOf } from "../marks.js";
import { pointContent } from "../select.js";
import { count, decimal, words } from "../table.js";

/** NVML's reasons for lower clocks (nvmlClocksEventReasons), without an idle GPU and clocks set by an administrator. */
const reasons = [
  [0x4, "software power cap"], [0x8, "hardware slowdown"], [0x10, "sync boost"], [0x20, "software thermal slowdown"],
  [0x40, "hardware thermal slowdown"], [0x80, "power brake"], [0x100, "display clocks"],
];

/** The titles of quantities, in the order of their charts; others are shown by their names. */
const titles = {
  sm_clock: "SM clock", clock: "CPU clock", power: "Power", temperature: "Temperature", utilisation: "Utilisation",
  memory_clock: "Memory clock", clock_min: "Lowest CPU clock",
};

/**
 * Returns `of`, which converts a value to the unit that people read, and `text`, which formats it.
 */
function shown(unit) {
  if (unit === "K") return { of: (value) => value - 273.15, text: (value) => `${fixed(value, 0)} \u00b0C` };
  if (unit === "1") return { of: (value) => value, text: (value) => percent(value, 0) };
  return { of: (value) => value, text: (value) => si(value, unit) };
}

const shortName = (at) => `rank ${at.world_rank}, ${at.device}`;
const deviceName = (at) => `${shortName(at)}${at.host ? ` on ${at.host}` : ""}`;

/**
 * Returns when a device's clock was limited: [{from, to, why}]; a sample is valid until the next.
 */
function heldDown(throttle) {
  const spans = [];
  throttle?.time.forEach((time, i) => {
    const why = reasons.filter(([bit]) => (throttle.value[i] & bit) !== 0).map(([, name]) => name).join(", ");
    if (!why) return;
    const to = throttle.time[i + 1] ?? time;
    if (spans.at(-1)?.to === time && spans.at(-1).why === why) spans.at(-1).to = to;
    else spans.push({ from: time, to, why });
  });
  return spans;
}

/** Draws the parts of a line during which the device's clock was limited as thick lines. */
function heldLine(series, held, of, colours) {
  return {
    type: "line",
    name: "held down",
    symbol: "circle",
    symbolSize: 4,
    showSymbol: true,
    connectNulls: false,
    lineStyle: { color: colours.bad, width: 3 },
    itemStyle: { color: colours.bad },
    z: 4,
    data: series.time.map((time, i) => {
      const why = held.find(({ from, to }) => time >= from && time <= to)?.why;
      return { value: [time, why ? of(series.value[i]) : null], why, device: deviceName(series) };
    }),
  };
}

function quantityChart(quantity, all, throttles) {
  const { unit } = all[0];
  const { of, text } = shown(unit);
  const title = ownOf(titles, quantity) ?? quantity.replaceAll("_", " ");
  const hosts = new Set(all.map((at) => at.host)).size;
  const held = all.map((series) => heldDown(throttles.find((at) => at.rank === series.rank && at.device === series.device)));
  return {
    id: `device-${quantity}`,
    title,
    note: held.some((spans) => spans.length > 0) ? "red: clocks were held down" : undefined,
    height: 260,
    table: {
      columns: [
        words("device", ({ series }) => deviceName(series)), { ...decimal("time", ({ series, i }) => series.time[i]), csv: "time / s" },
        count(`${title} / ${unit}`, ({ series, i }) => series.value[i]),
        count("lowest", ({ series, i }) => series.low?.[i]), count("highest", ({ series, i }) => series.high?.[i])],
      items: all.flatMap((series) => series.time.map((_, i) => ({ series, i }))),
    },
    option: (colours) => ({
      xAxis: { name: "time in the loop", min: ({ min }) => Math.min(0, min), max: "dataMax", splitLine: { show: false }, format: (value) => si(value, "s") },
      yAxis: { ...(unit === "1" ? { min: 0, max: 1 } : { scale: true }), format: text },
      zoom: true,
      tip: ({ seriesName, value, data: item }) =>
        (item?.why ? `${item.device}\nheld down by ${item.why}` : value ? `${seriesName}\n${si(value[0], "s")}: ${text(value[1])}` : seriesName),
      series: [
        ...all.map((series, i) => ({
          type: "line",
          name: hosts > 1 ? deviceName(series) : shortName(series),
          symbol: "none",
          triggerLineEvent: true,
          lineStyle: { width: 1.3 },
          itemStyle: { color: colourOf(colours, i) },
          data: series.time.map((time, at) => [time, of(series.value[at])]),
        })),
        ...all.flatMap((series, i) => (held[i].length > 0 ? [heldLine(series, held[i], of, colours)] : [])),
      ],
    }),
  };
}

/** Returns sentences on how long each device's clock was limited, and for which reason. */
function heldTexts(throttles, length) {
  return throttles.flatMap((throttle) => {
    const by = new Map();
    for (const { from, to, why } of heldDown(throttle)) by.set(why, (by.get(why) ?? 0) + to - from);
    return [...by].map(([why, time]) => `${deviceName(throttle)}: held down by ${why} for ${percent(time / length, 0)} of the loop`);
  });
}

const order = Object.keys(titles);
const rank = (quantity) => (order.includes(quantity) ? order.indexOf(quantity) : order.length);

/** These quantities have no line: counters only grow, throttle reasons mark the lines of clocks. */
const counters = new Set(["energy", "busy_time", "throttle_count", "throttle_reasons", "sample_time"]);
const isDrawn = ({ quantity }) => !counters.has(quantity) && !/_(bytes|errors|downed|corrected|uncorrected)$/.test(quantity);

/** True if the quantity has different values; a constant quantity needs no chart. */
const changes = (all) => all.some(({ value }) => value.some((at) => at !== all[0].value[0]));

function blocksOf(point) {
  const devices = (point.details.devices ?? []).filter((at) => at.time.length > 0);
  const throttles = devices.filter((at) => at.quantity === "throttle_reasons");
  const linesOf = (quantity) => devices.filter((at) => at.quantity === quantity);
  const quantities = [...new Set(devices.filter(isDrawn).map((at) => at.quantity))]
    .filter((quantity) => changes(linesOf(quantity))).sort((a, b) => rank(a) - rank(b));
  if (quantities.length === 0) return [{ note: "No device was sampled at this point, or none changed." }];
  const length = Math.max(...devices.map((at) => at.time.at(-1) - Math.min(0, at.time[0])));
  return [
    { list: heldTexts(throttles, length), look: "saying mark-list" },
    { charts: quantities.map((quantity) => quantityChart(quantity, linesOf(quantity), throttles)) }];
}

/** @param {object[]} groups of detailed() */
export function devicesSection(groups) {
  if (!groups.some((group) => group.points.some((point) => point.details.devices?.some(isDrawn)))) return null;
  return { id: "devices", title: "Devices", blocks: [pointContent(groups, blocksOf)] };
}
