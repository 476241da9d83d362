// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Draws stacked bars of the parts of a step, and beside them the communication that computation
// hid.
import { joined, known, percent, seconds } from "./format.js";
import { time } from "./table.js";

/** The parts of a step in drawing order. */
const partNames = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];
const hidden = "hidden communication";
const share = "share";

/**
 * @typedef {object} Bar
 * @property {string} name
 * @property {object} parts seconds by the name of a part
 * @property {number|null} hidden seconds of hidden communication
 * @property {number} whole seconds
 * @property {string} [note] below the name
 */

/**
 * Returns black or white, whichever is easier to read on a colour (relative luminance of WCAG 2).
 */
export function ink(hex) {
  const channel = (at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) > 0.179 ? "#10151e" : "#ffffff";
}

// The smallest share of the longest bar that has room for a number.
const leastLabelled = 0.065;
// The smallest share of a bar that is drawn; only the table has smaller parts, which would be
// invisible.
const least = 0.0005;

function seriesOf(bars, colours, { isShare, labels, isNarrow, across }) {
  const room = leastLabelled * (isNarrow && across ? 2.4 : 1);
  const scale = (bar) => (isShare ? bar.whole : 1);
  const value = (bar, of) => (known(of) && bar.whole > 0 ? of / scale(bar) : null);
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
        return bar.parts[name] / scale(bar) >= room * longest ? percent(bar.parts[name] / bar.whole, 0) : "";
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

function tipOf(bar) {
  const line = (name, value) => `${name}: ${seconds(value)}${bar.whole > 0 && known(value) ? `, ${percent(value / bar.whole)}` : ""}`;
  return [`${bar.name}${bar.note ? ` (${bar.note})` : ""}: ${seconds(bar.whole)}`,
    ...partNames.map((name) => line(name, bar.parts?.[name])), line(hidden, bar.hidden)].join("\n");
}

const units = { name: "unit", label: "bars", choices: [share, "seconds"] };

/** The columns of a table for the parts, all in seconds; its items are bars. */
export const partColumns = [
  ...partNames.map((name) => time(name, ({ parts }) => parts?.[name])), time(hidden, (bar) => bar.hidden)];

/**
 * Describes a chart of bars; its table has a row for each of `items`, or else for each bar.
 * @param {object} of a chart's description without `option`, and
 *   bars: Bar[], or a function of the state that returns them; unit: "share" of each bar's whole or
 *   "seconds", which a switch changes unless it `isFixed`; across: bars lie; axis: name of the bars'
 *   axis; labels: (bars, state, isNarrow) => whether parts have numbers
 */
export function partsChart({ bars, columns, items, unit = share, isFixed = false, across = false, axis, switches = [],
  labels = (all, _, isNarrow) => across || all.length <= (isNarrow ? 4 : 10), ...spec }) {
  const shown = (state) => (typeof bars === "function" ? bars(state) : bars);
  return {
    height: across ? (state) => 50 + 42 * shown(state).length : 270,
    ...spec,
    switches: isFixed ? switches : [{ ...units, value: unit }, ...switches],
    table: { columns, items: items ?? bars },
    option: (colours, state, isNarrow) => {
      const all = shown(state);
      const isShare = !isFixed && state.unit === share;
      const mostHidden = Math.max(...all.map((bar) => (bar.hidden ?? 0) / (bar.whole || 1)));
      const values = {
        min: 0,
        max: isShare && mostHidden <= 1 ? 1 : undefined,
        format: (value) => (isShare ? percent(value, 0) : seconds(value)),
      };
      const names = {
        type: "category",
        data: all.map((bar) => joined([bar.name, bar.note], "\n")),
        inverse: across,
        name: axis,
        nameGap: all.some((bar) => bar.note) ? 40 : 26,
        axisLabel: { hideOverlap: !across, interval: across ? "auto" : 0, lineHeight: 14, ...(across && isNarrow ? { width: 96, overflow: "break" } : {}) },
      };
      return {
        xAxis: across ? values : names,
        yAxis: across ? names : values,
        grid: { top: 12 },
        tooltip: { trigger: "axis", axisPointer: { type: "shadow" } },
        tip: (seen) => tipOf(all[seen[0].dataIndex]),
        series: seriesOf(all, colours, { isShare, labels: labels(all, state, isNarrow), isNarrow, across }),
      };
    },
  };
}
