// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the data series of a chart (lines with their intervals), and the objects that describe a
// whole line chart (see chart.js), such as one with lines over rank counts.
import { endsOf, formOf, joined, known, lined, meshText, seconds } from "./format.js";
import { metricsOf } from "./table.js";

/** The symbols of series, all filled, since hollow symbols have a meaning (see hollow()). */
const symbols = [
  "circle", "rect", "triangle", "diamond",
  "path://M0,0L10,0L5,10Z", // a triangle on its tip
  "path://M3,0H7V3H10V7H7V10H3V7H0V3H3Z", // a plus
  "path://M2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5L0,2Z", // a cross
  "path://M5,0L6.5,3.4L10,3.8L7.4,6.3L8.1,10L5,8.1L1.9,10L2.6,6.3L0,3.8L3.5,3.4Z", // a star
];

/** Returns black or white, whichever is easier to read on `hex` (relative luminance of WCAG 2). */
export function ink(hex) {
  const channel = (at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) > 0.179 ? "#10151e" : "#ffffff";
}

/** Returns the colour of the i-th series. */
export const colourOf = (colours, i) => colours.series[i % colours.series.length];
/** Returns the style of hollow symbols, for doubtful or extrapolated points or a single launch. */
export const hollow = (colours, colour) => ({ color: colours.background, borderColor: colour, borderWidth: 2 });
/** Draws lines across a chart at values of an axis: `data` is [{yAxis or xAxis, label, ...}]. */
export const markLine = (data, own = {}) => ({ silent: true, precision: 12, symbol: "none", label: { show: false }, data, ...own });
/** The settings for one tooltip about all series at one x position. */
export const tipOfAll = { trigger: "axis", axisPointer: { type: "shadow" } };
/** Makes the switch for the scale of the value axis, such as "log"; the first is the default. */
export const scales = (...choices) => ({ name: "y", label: "values", choices });
/** These functions format a number and a share as labels of an axis, with at most two decimals. */
export const axisNumber = (value) => String(Number(value.toFixed(2)));
export const axisPercent = (value) => `${axisNumber(100 * value)}%`;
/** Returns the title of a chart of the point metric `key`, and the formats of its values. */
export function viewOf(key) {
  const metric = metricsOf("point")[key];
  const { heading: [first, ...rest], form } = metric;
  return { title: first.toUpperCase() + rest.join(""), text: formOf(metric).text, ...(form === "share" ? { axis: axisPercent } : {}) };
}
/** Returns a tooltip's line about a time: "step 1.23 ms (95%: 1.20 ms to 1.26 ms)". */
export const timeTip = (what, { median, value = median, lower, upper }, sure = "95%") =>
  `${what} ${seconds(value)}${lower && upper ? ` (${sure}: ${seconds(lower)} to ${seconds(upper)})` : ""}`;
/** Returns a tooltip's line about a mesh: "mesh dp=4,tp=2"; "" for a single rank. */
export const meshTip = (mesh) => (meshText(mesh, "") === "" ? "" : `mesh ${meshText(mesh)}`);
/** Returns tooltip lines about a point: step time, interval (probability `sure`), mesh, labels. */
export const pointTip = ({ step_time: time, mesh, labels = [] }, sure) =>
  lined(known(time?.median ?? time?.value) && timeTip("step", time, sure), meshTip(mesh), joined(labels));

/** Draws intervals as lines, with an arrow where an interval leaves the picture. An item is [x,
 * lower, upper]. If the intervals lie `across` (along the x axis), it is [lower, y, upper]. */
export function whiskers(name, colour, items, across = false) {
  const [low, place, high] = across ? [0, 1, 2] : [1, 0, 2];
  const style = { stroke: colour, lineWidth: 1.5, opacity: 0.8 };
  return {
    type: "custom", name, data: items, silent: true, itemStyle: { color: colour }, z: 1,
    encode: across ? { x: [low, high], y: place } : { x: place, y: [low, high] },
    renderItem({ coordSys: area }, api) {
      const coord = (end) => (across ? api.coord([api.value(end), api.value(place)])
        : api.coord([api.value(place), api.value(end)]).reverse());
      const [from, middle] = coord(low);
      const [to] = coord(high);
      const [first, last] = across ? [area.x, area.x + area.width] : [area.y + area.height, area.y];
      // A bound of 0 or less has no place on a logarithmic axis; its line then ends at the edge.
      const within = (at, otherwise) =>
        (Number.isFinite(at) ? Math.min(Math.max(at, Math.min(first, last)), Math.max(first, last)) : otherwise);
      const point = (along, off) => (across ? [along, middle + off] : [middle + off, along]);
      const line = ([x1, y1], [x2, y2]) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
      const end = (at, wanted, inwards) => (Math.abs(at - wanted) <= 1 ? line(point(at, -4), point(at, 4))
        : { type: "polygon", shape: { points: [point(at, 0), point(at + inwards, -5), point(at + inwards, 5)] }, style: { fill: colour } });
      const [begin, finish] = [within(from, first), within(to, last)];
      const inwards = across ? 8 : -8;
      return { type: "group", children: [line(point(begin, 0), point(finish, 0)), end(begin, from, inwards), end(finish, to, -inwards)] };
    },
  };
}

/** Draws intervals [x, lower, upper], in the order of x, as one area behind a line. */
function band(name, colour, items) {
  return {
    type: "custom", name, data: items, encode: { x: 0, y: [1, 2] }, silent: true, clip: true, itemStyle: { color: colour }, z: 0,
    renderItem(of, api) {
      // The first item draws the whole area, so that it has no seams.
      if (of.dataIndex > 0) return null;
      const edge = (at) => items.map((item) => api.coord([item[0], item[at]]));
      // A bound of 0 or less has no place on a logarithmic axis: the lower edge stands for it.
      const floor = of.coordSys.y + of.coordSys.height;
      const points = [...edge(2), ...edge(1).reverse()].map(([x, y]) => [x, Number.isFinite(y) ? y : floor]);
      return { type: "polygon", shape: { points }, style: { fill: colour, opacity: 0.16 } };
    },
  };
}

/** Makes the i-th line of a chart. An item is [x, y] or {x, y, isHollow, ...for tooltips}. */
export function lineOf(name, i, colours, items, { stroke = {}, ...own } = {}) {
  const colour = colourOf(colours, i);
  return {
    type: "line", name, symbol: symbols[i % symbols.length], symbolSize: 8,
    itemStyle: { color: colour }, lineStyle: { color: colour, ...stroke },
    data: items.map((item) => {
      if (Array.isArray(item)) return item;
      const { x, y, isHollow, ...more } = item;
      return { value: [x, y], ...(isHollow ? { itemStyle: hollow(colours, colour) } : {}), ...more };
    }),
    ...own,
  };
}

/** Draws the intervals of a line's items; returns [] if no item has one. */
function intervalsOf({ name, items, isBare }, colour, { across, hasBands }) {
  const sure = isBare ? [] : items.filter((item) => item.interval);
  if (sure.length === 0) return [];
  const drawn = sure.map(({ x, y, interval: [lower, upper] }) => (across ? [lower, y, upper] : [x, lower, upper]));
  return [hasBands && drawn.length > 1 ? band(name, colour, drawn) : whiskers(name, colour, drawn, across)];
}

/** Describes a chart of lines. It takes a chart's description (chart.js) without `option`, and
 * these keys:
 * - lines: [{name, items, i, isBare, ...settings for lineOf()}], or a function of the colours and
 *   the state that returns them. `i` selects the colour and the symbol of a line; by default it is
 *   the line's place in the list. `interval` of an item is [lower, upper], which is drawn unless
 *   the line `isBare`.
 * - x and y: axes, or functions of the state that return them
 * - tip(item, state): returns the text of a tooltip
 * - scales: the choices "log" and "linear" for the axis of values, the default first
 * - across: true if intervals lie along the x axis
 * - hasBands: true if intervals are drawn as areas */
export function linesChart({ lines, x, y, tip, scales: choices, switches = [], zoom = true, grid, across = false, hasBands = false, ...spec }) {
  const of = (given, ...how) => (typeof given === "function" ? given(...how) : given);
  return {
    ...spec,
    switches: choices ? [scales(...choices), ...switches] : switches,
    option: (colours, state) => ({
      grid,
      xAxis: of(x, state),
      yAxis: { type: state.y === "log" ? "log" : "value", ...of(y, state) },
      zoom,
      tip: (item) => tip(item, state),
      series: of(lines, colours, state).flatMap(({ isBare, i: given, ...line }, k) => {
        const { name, items, ...own } = line;
        const i = given ?? k;
        return [lineOf(name, i, colours, items, own), ...intervalsOf({ ...line, isBare }, colourOf(colours, i), { across, hasBands })];
      }),
    }),
  };
}

/** Returns an axis end above all `values` that cuts very wide intervals; undefined if all fit. */
function endOf(values, intervals, isLog) {
  const most = 1.15 * Math.max(...values);
  const widest = Math.max(...intervals.map(([, upper]) => upper));
  if (!(widest > most) || !(most > 0)) return undefined;
  if (isLog) return 2 ** Math.ceil(Math.log2(most));
  const step = 10 ** Math.floor(Math.log10(most)) / 5;
  return Math.round((Math.ceil(most / step - 1e-9) * step) / step) * step;
}

/** Returns the lower end of a log axis if an interval ends below half of the least value > 0. */
function beginOf(values, intervals) {
  const least = Math.min(...values.filter((value) => value > 0));
  const lowest = Math.min(...intervals.map(([lower]) => lower));
  return lowest < least / 2 && Number.isFinite(least) ? 2 ** Math.floor(Math.log2(least / 2)) : undefined;
}

/** Makes the axis of rank counts; a logarithmic one labels each of them if they are few. */
function ranksAxis(ranks, scale) {
  const isLog = scale === "log" && ranks.length > 1;
  const named = isLog && ranks.length <= 12;
  return {
    type: isLog ? "log" : "value", logBase: 2, name: "ranks", min: isLog ? ranks[0] : 0, max: ranks.at(-1), minorTick: { show: false },
    ...(named ? { axisLabel: { customValues: ranks }, axisTick: { customValues: ranks } } : {}),
  };
}

/** Describes a chart of lines over rank counts, with their intervals. It takes the keys of
 * linesChart(), except x, y and tip, with these changes and additions:
 * - lines: [{name, points, stroke, i}], with `i` as in linesChart(), or a function of the state
 *   that returns them
 * - figure(point, state): returns {value, lower, upper}; points without a value are left out
 * - isHollow(point): true for a hollow symbol
 * - tipOf(point): returns the text after the value in a tooltip; the default is pointTip()
 * - measured: points {x, y, tip} that are drawn as diamonds, without a line
 * - ideal(ranks): returns the value of the ideal line
 * - text(value, state): formats values; `axis` formats those of the axis and is the same by default
 * - sure: the probability of the intervals, "95%" or "90%"
 * - yAxis: settings of the axis of values */
export function overRanks({
  lines, figure, isHollow, tipOf = (point) => pointTip(point), measured = [], ideal, text, axis = text, sure = "95%", yAxis = {},
  switches = [], ...spec
}) {
  const linesIn = (state) => (typeof lines === "function" ? lines(state) : lines).map(({ points, ...line }) => ({
    ...line,
    items: points.map((point) => ({ point, at: figure(point, state) })).filter(({ at }) => known(at.value)).map(({ point, at }) =>
      ({ x: point.ranks, y: at.value, interval: endsOf(at), isHollow: isHollow(point), tip: tipOf(point) })),
  }));
  const itemsIn = (state) => [...linesIn(state).flatMap((line) => line.items), ...measured];
  const ranksIn = (state) => [...new Set(itemsIn(state).map(({ x }) => x))].sort((a, b) => a - b);
  const idealIn = (state) => (ideal ? ranksIn(state).map((n) => [n, ideal(n)]) : []);
  return linesChart({
    ...spec, switches: [{ name: "x", label: "ranks", choices: ["log", "linear"] }, ...switches],
    x: (state) => ranksAxis(ranksIn(state), state.x),
    y: (state) => {
      const values = [...itemsIn(state).map(({ y }) => y), ...idealIn(state).map(([, y]) => y)];
      const intervals = itemsIn(state).map((item) => item.interval).filter(Boolean);
      const isLog = state.y === "log";
      const isClose = state.y === "close up";
      return {
        logBase: 10, scale: isClose, min: isLog ? beginOf(values, intervals) : isClose ? undefined : 0,
        max: endOf(values, intervals, isLog), format: (at) => axis(at, state), ...yAxis,
      };
    },
    tip: ({ seriesName, value: [ranks, at], data }, state) => lined(seriesName, `${ranks} ranks: ${text(at, state)}`,
      data?.interval && `${sure}: ${data.interval.map((end) => text(end, state)).join(" to ")}`, data?.tip),
    lines: (colours, state) => [
      ...linesIn(state),
      {
        name: "measured", items: measured, type: "scatter", symbol: "diamond", symbolSize: 12, z: 4,
        itemStyle: { color: colours.text, borderColor: colours.background, borderWidth: 1 },
      },
      {
        name: "ideal", items: idealIn(state), symbol: "none", silent: true, itemStyle: { color: colours.ideal },
        stroke: { type: "dashed", color: colours.ideal, width: 1.5 },
      }].filter(({ name, items }) => items.length > 0 || !(name === "measured" || name === "ideal")),
  });
}
