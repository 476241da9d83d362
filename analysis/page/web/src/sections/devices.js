// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows devices during the loop: clocks, power, temperature, and the times when clocks were
// limited.
import { ownOf } from "../data.js";
import { el } from "../dom.js";
import { fixed, percent, si } from "../format.js";
import { changingChart, pointContent } from "../select.js";

/**
 * NVML's reasons for lower clocks (nvmlClocksEventReasons), without the first two bits, which limit
 * nothing.
 */
const reasons = [
  [0x4, "software power cap"], [0x8, "hardware slowdown"], [0x10, "sync boost"], [0x20, "software thermal slowdown"],
  [0x40, "hardware thermal slowdown"], [0x80, "power brake"], [0x100, "display clocks"],
];

const reasonNames = (bits) => reasons.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name);

/** The titles of quantities; the others are shown by their names. */
const titles = {
  sm_clock: "SM clock", memory_clock: "Memory clock", clock: "CPU clock", clock_min: "Lowest CPU clock", power: "Power",
  temperature: "Temperature", utilisation: "Utilisation", energy: "Energy",
};

/** Converts values to the unit that people read. */
function shown(series) {
  if (series.unit === "K") return { of: (value) => value - 273.15, text: (value) => `${fixed(value, 0)} \u00b0C` };
  if (series.unit === "1") return { of: (value) => value, text: (value) => percent(value, 0) };
  return { of: (value) => value, text: (value) => si(value, series.unit) };
}

const deviceName = (at) => `rank ${at.world_rank}, ${at.device}${at.host ? ` on ${at.host}` : ""}`;

/** Returns names for a legend, with hosts only if there are several. */
function shortNames(all) {
  const hosts = new Set(all.map((at) => at.host)).size;
  return all.map((at) => (hosts > 1 ? deviceName(at) : `rank ${at.world_rank}, ${at.device}`));
}
const sameDevice = (a, b) => a.rank === b.rank && a.device === b.device;

/** Returns when a device's clock was limited: [{from, to, why}]; a sample holds until the next. */
function heldDown(throttle) {
  const spans = [];
  throttle.time.forEach((time, i) => {
    const why = reasonNames(throttle.value[i]).join(", ");
    if (!why) return;
    const to = throttle.time[i + 1] ?? time;
    if (spans.at(-1)?.to === time && spans.at(-1).why === why) spans.at(-1).to = to;
    else spans.push({ from: time, to, why });
  });
  return spans;
}

function lineOf(series, i, name, colours) {
  const { of } = shown(series);
  return {
    type: "line",
    name,
    symbol: "none",
    triggerLineEvent: true,
    lineStyle: { width: 1.3 },
    itemStyle: { color: colours.series[i % colours.series.length] },
    data: series.time.map((time, at) => [time, of(series.value[at])]),
  };
}

/** Draws the parts of a line during which the device's clock was limited as thick lines. */
function heldLine(series, held, colours) {
  const { of } = shown(series);
  const inside = (time) => held.find(({ from, to }) => time >= from && time <= to);
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
    data: series.time.map((time, at) => {
      const why = inside(time)?.why;
      return { value: [time, why ? of(series.value[at]) : null], why, device: deviceName(series) };
    }),
  };
}

function quantityChart(quantity, all, throttles) {
  const { text } = shown(all[0]);
  const title = ownOf(titles, quantity) ?? quantity.replaceAll("_", " ");
  const names = shortNames(all);
  const heldOf = (series) => {
    const throttle = throttles.find((at) => sameDevice(at, series));
    return throttle ? heldDown(throttle) : [];
  };
  const anyHeld = all.some((series) => heldOf(series).length > 0);
  return changingChart({
    id: `device-${quantity}`,
    title,
    note: anyHeld ? "red: clocks were held down" : undefined,
    height: 260,
    table: {
      columns: [
        { title: "device" }, { title: "time / s", number: true, text: (value) => fixed(value, 2) },
        { title: `${title} / ${all[0].unit}`, number: true }, { title: "lowest", number: true }, { title: "highest", number: true },
      ],
      rows: all.flatMap((series) =>
        series.time.map((time, i) => [deviceName(series), time, series.value[i], series.low?.[i] ?? null, series.high?.[i] ?? null])),
    },
    option: (colours) => ({
      grid: { bottom: 26 },
      xAxis: { type: "value", name: "time in the loop", min: ({ min }) => Math.min(0, min), max: "dataMax", nameLocation: "middle", nameGap: 26, splitLine: { show: false }, axisLabel: { formatter: (value) => si(value, "s") } },
      yAxis: { type: "value", scale: all[0].unit !== "1", min: all[0].unit === "1" ? 0 : undefined, max: all[0].unit === "1" ? 1 : undefined, axisLabel: { formatter: text } },
      dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
      tooltip: {
        formatter: ({ seriesName, value, data: item }) =>
          item?.why ? `${item.device}\nheld down by ${item.why}` : value ? `${seriesName}\n${si(value[0], "s")}: ${text(value[1])}` : seriesName,
      },
      series: [
        ...all.map((series, i) => lineOf(series, i, names[i], colours)),
        ...all.flatMap((series) => {
          const held = heldOf(series);
          return held.length > 0 ? [heldLine(series, held, colours)] : [];
        }),
      ],
    }),
  });
}

/** Returns how long each device's clock was limited, and by what. */
function heldText(throttles, length) {
  return throttles.flatMap((throttle) => {
    const by = new Map();
    for (const { from, to, why } of heldDown(throttle)) by.set(why, (by.get(why) ?? 0) + to - from);
    return [...by].map(([why, time]) => `${deviceName(throttle)}: held down by ${why} for ${percent(time / length, 0)} of the loop`);
  });
}

const order = ["sm_clock", "clock", "power", "temperature", "utilisation", "memory_clock", "clock_min"];
const rank = (quantity) => (order.includes(quantity) ? order.indexOf(quantity) : order.length);

/** Quantities without a line: counters only grow, and throttle reasons mark the lines of clocks. */
const counters = new Set(["energy", "busy_time", "throttle_count", "throttle_reasons", "sample_time"]);
const isDrawn = ({ quantity }) => !counters.has(quantity) && !/_(bytes|errors|downed|corrected|uncorrected)$/.test(quantity);

/** A quantity that changes on no device needs no chart. */
const changes = (all) => all.some(({ value }) => value.some((at) => at !== all[0].value[0]));

function content(point) {
  const devices = (point.details.devices ?? []).filter((at) => at.time.length > 0);
  const throttles = devices.filter((at) => at.quantity === "throttle_reasons");
  const drawn = devices.filter(isDrawn);
  const quantities = [...new Set(drawn.map((at) => at.quantity))]
    .filter((quantity) => changes(drawn.filter((at) => at.quantity === quantity))).sort((a, b) => rank(a) - rank(b));
  if (quantities.length === 0) return [el("p", { class: "note" }, "No device was sampled at this point, or none changed.")];
  const length = Math.max(...devices.map((at) => at.time.at(-1) - Math.min(0, at.time[0])));
  const said = [...heldText(throttles, length)];
  const most = 8;
  return [
    said.length > 0
      ? el("ul", { class: "saying mark-list" }, said.slice(0, most).map((text) => el("li", {}, text)),
          said.length > most ? el("li", {}, `${said.length - most} more`) : null)
      : null,
    el("div", { class: "charts" }, quantities.map((quantity) => quantityChart(quantity, drawn.filter((at) => at.quantity === quantity), throttles))),
  ];
}

/** @param {object[]} groups of detailed() */
export function devicesSection(groups) {
  if (!groups.some((group) => group.points.some((point) => point.details.devices?.some(isDrawn)))) return null;
  return { id: "devices", title: "Devices", content: pointContent(groups, content) };
}
