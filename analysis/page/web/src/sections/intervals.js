// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Intervals in a chart: whiskers, areas, and axes that leave room for them.

/**
 * Returns the end of an axis at which `values` can be read well, however wide their `intervals`
 * ([lower, upper]) are; undefined if the intervals fit anyway. `type` is the type of the axis.
 */
export function endOf(values, intervals, type) {
  const most = 1.15 * Math.max(...values);
  const widest = Math.max(...intervals.map(([, upper]) => upper));
  if (!(widest > most) || !(most > 0)) return undefined;
  if (type === "log") return 2 ** Math.ceil(Math.log2(most));
  const step = 10 ** Math.floor(Math.log10(most)) / 5;
  return Math.round((Math.ceil(most / step - 1e-9) * step) / step) * step;
}

/** Returns the lower end of a logarithmic axis, chosen as endOf() chooses the upper one. */
export function beginOf(values, intervals) {
  const least = Math.min(...values.filter((value) => value > 0));
  const lowest = Math.min(...intervals.map(([lower]) => lower));
  return lowest < least / 2 && Number.isFinite(least) ? 2 ** Math.floor(Math.log2(least / 2)) : undefined;
}

/**
 * Draws vertical whiskers, with an arrow where one leaves the picture. Items: [x, lower, upper].
 */
export function whiskers(name, colour, items) {
  return {
    type: "custom",
    name,
    data: items,
    encode: { x: 0, y: [1, 2] },
    silent: true,
    itemStyle: { color: colour },
    z: 1,
    renderItem({ coordSys: area }, api) {
      const [x, low] = api.coord([api.value(0), api.value(1)]);
      const high = api.coord([api.value(0), api.value(2)])[1];
      const floor = area.y + area.height;
      // A logarithmic axis has no place for values that are not above 0.
      const bottom = low <= floor + 1 ? low : floor;
      const top = high >= area.y - 1 ? high : area.y;
      const style = { stroke: colour, lineWidth: 1.5, opacity: 0.8 };
      const bar = (shape) => ({ type: "line", shape, style });
      const cap = (y) => bar({ x1: x - 4, y1: y, x2: x + 4, y2: y });
      const arrow = (y, down) => ({ type: "polygon", shape: { points: [[x, y], [x - 5, y + 8 * down], [x + 5, y + 8 * down]] }, style: { fill: colour } });
      return {
        type: "group",
        children: [
          bar({ x1: x, y1: bottom, x2: x, y2: top }),
          bottom === low ? cap(low) : arrow(floor, -1),
          top === high ? cap(high) : arrow(area.y, 1),
        ],
      };
    },
  };
}

/**
 * Draws horizontal 95% intervals, with an arrow where one leaves the picture. Items: [lower, row,
 * upper].
 */
export function intervals(name, colour, items) {
  return {
    type: "custom",
    name,
    data: items,
    encode: { x: [0, 2], y: 1 },
    silent: true,
    clip: true,
    itemStyle: { color: colour },
    z: 1,
    renderItem({ coordSys: area }, api) {
      const [low, y] = api.coord([api.value(0), api.value(1)]);
      const high = api.coord([api.value(2), api.value(1)])[0];
      const x1 = Math.max(low, area.x);
      const x2 = Math.min(high, area.x + area.width);
      const style = { stroke: colour, lineWidth: 2 };
      const bar = (shape) => ({ type: "line", shape, style });
      const end = (x, goesOn, left) => (goesOn
        ? { type: "polygon", shape: { points: [[x, y], [x + 8 * left, y - 5], [x + 8 * left, y + 5]] }, style: { fill: colour } }
        : bar({ x1: x, y1: y - 4, x2: x, y2: y + 4 }));
      return { type: "group", children: [bar({ x1, y1: y, x2, y2: y }), end(x1, low < x1 - 1, 1), end(x2, high > x2 + 1, -1)] };
    },
  };
}

/**
 * Draws the intervals of a line as one area behind it, within the picture. Items: [x, lower,
 * upper],
 * from left to right. One item alone has no area: whiskers show it.
 */
export function band(name, colour, items) {
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
      // A logarithmic axis has no place for values that are not above 0.
      const floor = of.coordSys.y + of.coordSys.height;
      const points = [...edge(2), ...edge(1).reverse()].map(([x, y]) => [x, Number.isFinite(y) ? y : floor]);
      return { type: "polygon", shape: { points }, style: { fill: colour, opacity: 0.16 } };
    },
  };
}
