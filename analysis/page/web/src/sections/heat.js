// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the parts that heat maps share: cells, blocks of hosts, the colour scale.
import { known } from "../format.js";

/**
 * Makes the cells of a heat map from items [x, y, value]; a visual map colours them by value. The
 * series is custom, since ECharts 6 paints series of type heatmap on separate layers in several
 * passes, and printing does not wait for these passes.
 * @param {number[][]} items
 * @param {{border?: string|null, label?: (item: number[]) => {text: string, fill: string}|null}}
 *   [how]
 */
export function heatCells(name, items, { border = null, label = () => null } = {}) {
  return {
    type: "custom",
    name,
    data: items,
    dimensions: ["x", "y", "value"],
    encode: { x: 0, y: 1, tooltip: 2 },
    z: 2,
    renderItem(params, api) {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const [width, height] = api.size([1, 1]);
      // Cells are rounded to whole pixels; otherwise the background would be visible between cells
      // without a border.
      const left = Math.round(x - width / 2);
      const top = Math.round(y - height / 2);
      const words = label(items[params.dataIndexInside]);
      return {
        type: "rect",
        shape: { x: left, y: top, width: Math.round(x + width / 2) - left, height: Math.round(y + height / 2) - top },
        style: { fill: api.visual("color"), stroke: border ?? "none", lineWidth: border ? 1 : 0 },
        emphasis: { style: { lineWidth: 1.5, stroke: "#888" } },
        ...(words ? { textContent: { style: { ...words, fontSize: 11 } }, textConfig: { position: "inside" } } : {}),
      };
    },
  };
}

export function median(values) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns blocks of consecutive rows on one host: [{name, first, last}]. */
export function hostBlocks(hosts, hostOfRow) {
  const blocks = [];
  hostOfRow.forEach((host, row) => {
    if (blocks.at(-1)?.host === host) blocks.at(-1).last = row;
    else blocks.push({ host, name: hosts[host], first: row, last: row });
  });
  return blocks;
}

const plainAxis = { type: "category", axisLine: { show: false } };

/** Makes the axis of a heat map's rows or columns. */
export const cellAxis = (data, own) => ({ ...plainAxis, data, ...own });

/** Makes an axis with each host's name in the middle of its rows. */
export function hostAxis(blocks, rows, own) {
  const middles = new Map(blocks.map((block) => [(block.first + block.last) >> 1, block.name]));
  return {
    ...plainAxis,
    data: rows,
    axisLabel: {
      interval: (index) => middles.has(index),
      formatter: (_, index) => middles.get(index) ?? "",
      width: 110,
      overflow: "truncate",
    },
    ...own,
  };
}

/**
 * Draws lines before each of these rows, over the whole width; `along` is "x" for lines before
 * columns.
 */
export function linesBefore(rows, name, style, along = "y", z = 5) {
  return {
    type: "custom",
    name: `\0${name}`,
    silent: true,
    z,
    data: rows.map((row) => [row, row]),
    encode: { x: along === "x" ? 0 : [], y: along === "y" ? 0 : [], tooltip: [] },
    renderItem(params, api) {
      const { x, y, width, height } = params.coordSys;
      const at = api.value(0);
      const middle = api.coord(along === "y" ? [0, at] : [at, 0]);
      const size = api.size([1, 1]);
      const px = middle[0] - size[0] / 2;
      const py = middle[1] - size[1] / 2;
      const shape = along === "y" ? { x1: x, x2: x + width, y1: py, y2: py } : { x1: px, x2: px, y1: y, y2: y + height };
      return { type: "line", shape, style: { lineWidth: 1, ...style } };
    },
  };
}

/** Draws lines between the blocks of a heat map. */
export const hostLines = (blocks, colours, along) =>
  linesBefore(blocks.slice(1).map(({ first }) => first), "hosts", { stroke: colours.text, opacity: 0.55 }, along);

/**
 * Makes the colour scale below a heat map, which extends equally far on both sides of zero. `words`
 * label its upper and its lower end, followed by their values if `own` has a formatter.
 */
export function scale(colours, most, words, own = {}) {
  const ends = own.formatter ? [`${words[0]}: +${own.formatter(most)}`, `${words[1]}: \u2212${own.formatter(most)}`] : words;
  return {
    type: "continuous",
    min: -most,
    max: most,
    calculable: false,
    orient: "horizontal",
    left: "center",
    bottom: 0,
    itemWidth: 12,
    itemHeight: 140,
    text: ends,
    textStyle: { color: colours.faint },
    inRange: { color: colours.diverging },
    seriesIndex: 0,
    dimension: 2,
    ...own,
  };
}

/**
 * Returns a range that contains most values, so that a single outlier does not stretch the scale.
 */
export function reach(values, least) {
  const sizes = values.filter(known).map(Math.abs).sort((a, b) => a - b);
  return Math.max(least, sizes[Math.floor(0.995 * (sizes.length - 1))] ?? 0);
}

/** Returns a function that is true for the rows to label: all, or every second, fourth, ... */
export function everyNth(height) {
  const nth = 2 ** Math.max(0, Math.ceil(Math.log2(13 / height)));
  return (row) => row % nth === 0;
}
