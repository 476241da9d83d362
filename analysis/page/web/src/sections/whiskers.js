// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/** Horizontal 95% intervals. Items: [lower, row, upper]. */
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
    renderItem(_, api) {
      const [x1, y] = api.coord([api.value(0), api.value(1)]);
      const x2 = api.coord([api.value(2), api.value(1)])[0];
      const style = { stroke: colour, lineWidth: 2 };
      const bar = (shape) => ({ type: "line", shape, style });
      return {
        type: "group",
        children: [
          bar({ x1, y1: y, x2, y2: y }),
          bar({ x1, y1: y - 4, x2: x1, y2: y + 4 }),
          bar({ x1: x2, y1: y - 4, x2, y2: y + 4 }),
        ],
      };
    },
  };
}

/** Upright 95% intervals: [x, lower, upper]. */
export function upright(name, colour, items) {
  return {
    type: "custom",
    name,
    data: items,
    encode: { x: 0, y: [1, 2] },
    silent: true,
    itemStyle: { color: colour },
    z: 1,
    renderItem(_, api) {
      const [x, y1] = api.coord([api.value(0), api.value(1)]);
      const y2 = api.coord([api.value(0), api.value(2)])[1];
      return { type: "line", shape: { x1: x, y1, x2: x, y2 }, style: { stroke: colour, lineWidth: 3, opacity: 0.45 } };
    },
  };
}
