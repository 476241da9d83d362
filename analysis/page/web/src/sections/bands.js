// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/**
 * Intervals of a line as one area behind it, as far as the picture reaches. Items: [x, lower, upper],
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
      if (of.dataIndex > 0) return null; // the first item draws all: pieces would show their seams
      const edge = (at) => items.map((item) => api.coord([item[0], item[at]]));
      // Of a logarithmic axis what is not above 0 has no place.
      const floor = of.coordSys.y + of.coordSys.height;
      const points = [...edge(2), ...edge(1).reverse()].map(([x, y]) => [x, Number.isFinite(y) ? y : floor]);
      return { type: "polygon", shape: { points }, style: { fill: colour, opacity: 0.16 } };
    },
  };
}
