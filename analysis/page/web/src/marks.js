// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the series of charts: lines with their intervals, and charts over rank counts.
import { joined, seconds } from "./format.js";
import { symbols } from "./theme.js";

/**
 * Returns the upper end of an axis that shows `values` well even if some `intervals` ([lower,
 * upper]) reach beyond it; undefined if all intervals fit.
 */
function endOf(values, intervals, isLog) {
  const most = 1.15 * Math.max(...values);
  const widest = Math.max(...intervals.map(([, upper]) => upper));
  if (!(widest > most) || !(most > 0)) return undefined;
  if (isLog) return 2 ** Math.ceil(Math.log2(most));
  const step = 10 ** Math.floor(Math.log10(most)) / 5;
  return Math.round((Math.ceil(most / step - 1e-9) * step) / step) * step;
}

/** Returns the lower end of a logarithmic axis if an interval reaches below half of the least value; else undefined. */
function beginOf(values, intervals) {
  const least = Math.min(...values.filter((value) => value > 0));
  const lowest = Math.min(...intervals.map(([lower]) => lower));
  return lowest < least / 2 && Number.isFinite(least) ? 2 ** Math.floor(Math.log2(least / 2)) : undefined;
}

/**
 * Draws 95% intervals, with an arrow where one leaves the picture. Items are [x, lower, upper], or,
 * if they lie `across`, [lower, y, upper].
 */
export function whiskers(name, colour, items, across = false) {
  const [low, place, high] = across ? [0, 1, 2] : [1, 0, 2];
  return {
    type: "custom",
    name,
    data: items,
    encode: across ? { x: [low, high], y: place } : { x: place, y: [low, high] },
    silent: true,
    itemStyle: { color: colour },
    z: 1,
    renderItem({ coordSys: area }, api) {
      const coord = (end) => (across ? api.coord([api.value(end), api.value(place)])
        : api.coord([api.value(place), api.value(end)]).reverse());
      const [from, middle] = coord(low);
      const [to] = coord(high);
      const [start, length] = across ? [area.x, area.width] : [area.y, area.height];
      // A logarithmic axis cannot show values that are not above 0.
      const within = (at, otherwise) =>
        (Number.isFinite(at) ? Math.min(Math.max(at, start), start + length) : otherwise);
      const ends = [within(from, start + length), within(to, start)];
      const style = { stroke: colour, lineWidth: 1.5, opacity: 0.8 };
      const point = (along, off) => (across ? [along, middle + off] : [middle + off, along]);
      const line = ([x1, y1], [x2, y2]) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
      const arrow = (at, back) =>
        ({ type: "polygon", shape: { points: [point(at, 0), point(back, -5), point(back, 5)] }, style: { fill: colour } });
      const end = (at, isWhole, inwards) =>
        (isWhole ? line(point(at, -4), point(at, 4)) : arrow(at, at + 8 * inwards));
      const inwards = across ? 1 : -1;
      return {
        type: "group",
        children: [
          line(point(ends[0], 0), point(ends[1], 0)),
          end(ends[0], Math.abs(ends[0] - from) <= 1, inwards),
          end(ends[1], Math.abs(ends[1] - to) <= 1, -inwards),
        ],
      };
    },
  };
}

/**
 * Draws the intervals of a line as one area behind it, within the picture. Items are [x, lower,
 * upper], from left to right.
 */
function band(name, colour, items) {
  return {
    type: "custom",
    name,
    data: items,
    encode: { x: 0, y: [1, 2] },
    silent: true,
    clip: true,
    itemStyle: { color: colour },
    z: 0,
    renderItem(of, api) {
      if (of.dataIndex > 0) return null; // the first item draws all: pieces would show seams
      const edge = (at) => items.map((item) => api.coord([item[0], item[at]]));
      // A logarithmic axis cannot show values that are not above 0.
      const floor = of.coordSys.y + of.coordSys.height;
      const points = [...edge(2), ...edge(1).reverse()].map(([x, y]) => [x, Number.isFinite(y) ? y : floor]);
      return { type: "polygon", shape: { points }, style: { fill: colour, opacity: 0.16 } };
    },
  };
}

/** Returns the colour of the i-th series. */
export const colourOf = (colours, i) => colours.series[i % colours.series.length];

/** Returns the style of a hollow symbol, which marks a point that is doubtful or proves nothing. */
export const hollow = (colours, colour) => ({ color: colours.background, borderColor: colour, borderWidth: 2 });

/**
 * Makes the i-th line of a chart. An item is {x, y, isHollow, ...}; its other properties stay in
 * the data for tooltips.
 */
export function lineOf(name, i, colours, items, { stroke = {}, ...own } = {}) {
  const colour = colourOf(colours, i);
  return {
    type: "line",
    name,
    symbol: symbols[i % symbols.length],
    symbolSize: 8,
    itemStyle: { color: colour },
    lineStyle: { color: colour, ...stroke },
    data: items.map(({ x, y, isHollow, ...item }) =>
      ({ value: [x, y], ...(isHollow ? { itemStyle: hollow(colours, colour) } : {}), ...item })),
    ...own,
  };
}

const mostNamed = 12;

/** Makes the axis of rank counts; all of them have labels if they are few. */
function ranksAxis(ranks, scale) {
  const isLog = scale === "log" && ranks.length > 1;
  const named = isLog && ranks.length <= mostNamed;
  return {
    type: isLog ? "log" : "value",
    logBase: 2,
    name: "ranks",
    min: isLog ? ranks[0] : 0,
    max: ranks.at(-1),
    minorTick: { show: false },
    ...(named ? { axisLabel: { customValues: ranks }, axisTick: { customValues: ranks } } : {}),
  };
}

/**
 * Describes a chart of lines over rank counts with their intervals.
 * @param {object} of a chart's description (chart.js) without `option`, and
 *   lines: [{name, items: [{x, y, interval, isHollow, tip}], stroke, isBare, i}] or a function of the
 *     state that returns them; a line with isBare has no intervals; `tip` follows a value
 *   measured: items of a line without intervals, drawn as diamonds; ideal: (ranks) => value
 *   text: (value, state) => string; axis: the same for the axis; sure: "95%" or "90%"
 *   yAxis: own settings of the axis of values; hasBands: intervals are areas
 */
export function overRanks({ lines, measured = [], ideal, text, axis = text, sure = "95%", yAxis = {}, hasBands = false, switches = [], ...spec }) {
  return {
    ...spec,
    switches: [{ name: "x", label: "ranks", choices: ["log", "linear"] }, ...switches],
    option: (colours, state) => {
      const drawn = typeof lines === "function" ? lines(state) : lines;
      const items = [...drawn.flatMap((line) => line.items), ...measured];
      const ranks = [...new Set(items.map(({ x }) => x))].sort((a, b) => a - b);
      const values = [...items.map(({ y }) => y), ...(ideal ? ranks.map(ideal) : [])];
      const intervals = items.map(({ interval }) => interval).filter(Boolean);
      const isLog = state.y === "log";
      const isClose = state.y === "close up";
      const intervalsOf = ({ name, items: own, isBare }, colour) => {
        const known = own.filter(({ interval }) => interval).map(({ x, interval }) => [x, ...interval]);
        if (known.length === 0 || isBare) return [];
        return [hasBands && known.length > 1 ? band(name, colour, known) : whiskers(name, colour, known)];
      };
      return {
        xAxis: ranksAxis(ranks, state.x),
        yAxis: {
          type: isLog ? "log" : "value",
          logBase: 10,
          scale: isClose,
          min: isLog ? beginOf(values, intervals) : isClose ? undefined : 0,
          max: endOf(values, intervals, isLog),
          format: (value) => axis(value, state),
          ...yAxis,
        },
        zoom: true,
        tip: ({ seriesName, value, data }) => joined([
          seriesName, `${value[0]} ranks: ${text(value[1], state)}`,
          data?.interval && `${sure}: ${text(data.interval[0], state)} to ${text(data.interval[1], state)}`, data?.tip], "\n"),
        series: [
          ...drawn.flatMap((line, k) => {
            const { name, items: own, stroke, i = k } = line;
            return [lineOf(name, i, colours, own, { stroke }), ...intervalsOf(line, colourOf(colours, i))];
          }),
          ...(measured.length === 0 ? [] : [{
            type: "scatter", name: "measured", symbol: "diamond", symbolSize: 12, z: 4,
            itemStyle: { color: colours.text, borderColor: colours.background, borderWidth: 1 },
            data: measured.map(({ x, y, tip }) => ({ value: [x, y], tip })),
          }]),
          ...(ideal ? [{
            type: "line", name: "ideal", data: ranks.map((n) => [n, ideal(n)]), symbol: "none", silent: true,
            itemStyle: { color: colours.ideal }, lineStyle: { type: "dashed", color: colours.ideal, width: 1.5 },
          }] : []),
        ],
      };
    },
  };
}

/** Returns the line of a tooltip about a step: "step 1.23 ms (95%: 1.2 ms to 1.3 ms)". */
export const stepTip = ({ median, lower, upper }, sure = "95%") =>
  `step ${seconds(median)}${lower && upper ? ` (${sure}: ${seconds(lower)} to ${seconds(upper)})` : ""}`;

/** Draws a line at each of these places of an axis: [{yAxis | xAxis, label, lineStyle}]. */
export const markLine = (data, own = {}) => ({ silent: true, precision: 12, symbol: "none", label: { show: false }, data, ...own });
