// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Stacked bars of the parts of a step, and beside them the communication that computation hid.
import { missing, percent, seconds } from "./format.js";

/** The parts of a step in drawing order. */
export const partNames = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];
export const hidden = "hidden communication";

const share = "share";

/** @typedef {{name: string, parts: object, hidden: number|null, whole: number, note: string}} Bar */

/**
 * Returns black or white, whichever is easier to read on a colour (relative luminance as in WCAG
 * 2).
 */
export function ink(hex) {
  const channel = (at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) > 0.179 ? "#10151e" : "#ffffff";
}

// A share of the longest bar: there is no room for the number of a smaller part.
const leastLabelled = 0.065;
// A share of the bar: a smaller part would be invisible and is only in the table.
const least = 0.0005;

function series(bars, colours, { unit, labels, isNarrow, across }) {
  const room = leastLabelled * (isNarrow && across ? 2.4 : 1);
  const scale = (bar) => (unit === share ? bar.whole : 1);
  const value = (bar, seconds) => (typeof seconds === "number" && bar.whole > 0 ? seconds / scale(bar) : null);
  const used = partNames.filter((name) => bars.some((bar) => bar.parts?.[name] > least * bar.whole));
  const longest = Math.max(...bars.map((bar) => bar.whole / scale(bar)));
  const stacked = used.map((name) => ({
    type: "bar",
    name,
    stack: "step",
    barMaxWidth: 64,
    itemStyle: { color: colours.parts[name] },
    data: bars.map((bar) => value(bar, bar.parts?.[name])),
    label: {
      show: labels,
      color: ink(colours.parts[name]),
      fontSize: 11,
      formatter: ({ dataIndex }) => {
        const bar = bars[dataIndex];
        const of = bar.parts[name] / bar.whole;
        return bar.parts[name] / scale(bar) >= room * longest ? percent(of, 0) : "";
      },
    },
  }));
  if (!bars.some((bar) => bar.hidden > 0)) return stacked;
  return [...stacked, {
    type: "bar",
    name: hidden,
    stack: "hidden",
    barMaxWidth: 12,
    barGap: "12%",
    itemStyle: { color: `${colours.parts.transfer}55`, borderColor: colours.parts.transfer, borderType: "dashed", borderWidth: 1 },
    data: bars.map((bar) => value(bar, bar.hidden)),
  }];
}

function tooltip(bars) {
  return {
    trigger: "axis",
    axisPointer: { type: "shadow" },
    formatter: (items) => {
      const bar = bars[items[0].dataIndex];
      const line = (name, value) => `${name}: ${seconds(value)}${bar.whole > 0 && typeof value === "number" ? `, ${percent(value / bar.whole)}` : ""}`;
      return [`${bar.name}${bar.note ? ` (${bar.note})` : ""}: ${seconds(bar.whole)}`,
        ...partNames.map((name) => line(name, bar.parts?.[name])), line(hidden, bar.hidden)].join("\n");
    },
  };
}

/**
 * @param {Bar[]} bars
 * @param {{unit: string, labels: boolean, across?: boolean, isNarrow?: boolean, axis?: string, most?: number}} how unit:
 *   "share" of each bar's whole, or seconds; across: bars lie; most: end of the axis of values
 */
export function partsOption(bars, colours, { unit, labels, across = false, isNarrow = false, axis = "", most }) {
  const isShare = unit === share;
  const largest = Math.max(1, ...bars.map((bar) => (bar.hidden ?? 0) / (bar.whole || 1)));
  const values = {
    type: "value",
    min: 0,
    max: isShare && largest <= 1 ? 1 : most,
    axisLabel: { formatter: (value) => (isShare ? percent(value, 0) : seconds(value)) },
  };
  const names = {
    type: "category",
    data: bars.map((bar) => (bar.note ? `${bar.name}\n${bar.note}` : bar.name)),
    inverse: across,
    axisTick: { show: false },
    axisLabel: { hideOverlap: !across, interval: across ? "auto" : 0, lineHeight: 14, ...(across && isNarrow ? { width: 96, overflow: "break" } : {}) },
    ...(axis ? { name: axis, nameLocation: "middle", nameGap: bars.some((bar) => bar.note) ? 40 : 26 } : {}),
  };
  return {
    xAxis: across ? values : names,
    yAxis: across ? names : values,
    tooltip: tooltip(bars),
    grid: { top: 12 },
    series: series(bars, colours, { unit, labels, isNarrow, across }),
  };
}

export const unitSwitch = { name: "unit", label: "bars", choices: [share, "seconds"] };

/** Table columns of the parts, all in seconds. */
export const partColumns = [...partNames, hidden].map((title) => ({ title, csv: `${title} / s`, number: true, text: (value) => (value === null ? missing : seconds(value)) }));

export const partCells = (parts, hiddenSeconds) => [...partNames.map((name) => parts?.[name] ?? null), hiddenSeconds ?? null];
