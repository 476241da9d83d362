// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/**
 * Cells of a heat map: [x, y, value] on two category axes; a visual map colours them by value. It
 * is no series of type heatmap: ECharts 6 paints those on layers of their own bit by bit, which
 * paper does not wait for.
 * @param {number[][]} items
 * @param {{border?: string|null, label?: (item: number[]) => {text: string, fill: string}|null}} [how]
 */
export function heatCells(name, items, { border = null, label = () => null } = {}) {
  return {
    type: "custom",
    name,
    data: items,
    dimensions: ["x", "y", "value"],
    encode: { x: 0, y: 1, tooltip: 2 },
    progressive: 0,
    z: 2,
    renderItem(params, api) {
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const [width, height] = api.size([1, 1]);
      // Whole pixels: else the background shines through between cells without a border.
      const left = Math.round(x - width / 2);
      const top = Math.round(y - height / 2);
      const shape = { x: left, y: top, width: Math.round(x + width / 2) - left, height: Math.round(y + height / 2) - top };
      const words = label(items[params.dataIndexInside]);
      return {
        type: "rect",
        shape,
        style: { fill: api.visual("color"), stroke: border ?? "none", lineWidth: border ? 1 : 0 },
        emphasis: { style: { lineWidth: 1.5, stroke: "#888" } },
        ...(words ? { textContent: { style: { ...words, fontSize: 11 } }, textConfig: { position: "inside" } } : {}),
      };
    },
  };
}
