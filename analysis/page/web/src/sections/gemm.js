// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Matrix multiplications: rate over work, below the measured ceiling and the datasheet's peak.
import { unsound } from "../data.js";
import { el } from "../dom.js";
import { percent, rankCount, seconds, si } from "../format.js";
import { changingChart, oneOf } from "../select.js";
import { symbols } from "../theme.js";

const shapeOf = (row) => `${row.m} x ${row.n} x ${row.k}${row.batch > 1 ? `, batch ${row.batch}` : ""}`;
const isSquare = (row) => row.m === row.n && row.n === row.k;

function linesOf(micro, dtype) {
  const runs = new Set(micro.map(({ run }) => run)).size;
  return micro.flatMap(({ run, point }) => {
    const rows = point.rows.filter((row) => row.op === "gemm" && row.dtype === dtype && row.flop > 0);
    const caches = [...new Set(rows.map((row) => row.cache))];
    return caches.map((cache) => ({
      name: [rankCount(point.ranks), cache && `${cache} cache`, runs > 1 && run.id].filter(Boolean).join(", "),
      rows: rows.filter((row) => row.cache === cache).sort((a, b) => a.flop - b.flop),
      labels: point.labels,
      cache,
      run,
    }));
  });
}

/** Draws horizontal lines at the best measured rate and at the datasheet's peak. */
function limits(lines, dtype) {
  const found = new Map();
  for (const line of lines) {
    const ceiling = line.run.calibration?.ceilings?.find((at) => at.dtype === dtype && at.cache === line.cache);
    if (ceiling?.flops > 0) found.set(`ceiling measured, ${line.cache ?? "all"}`, ceiling.flops);
    const row = line.rows.find((at) => at.of_peak > 0 && at.flops > 0);
    if (row) found.set("datasheet peak", row.flops / row.of_peak);
  }
  return [...found].map(([name, flops]) => ({ name, flops }));
}

function numbersOf(lines) {
  return {
    columns: [
      { title: "line" }, { title: "m", number: true }, { title: "n", number: true }, { title: "k", number: true },
      { title: "batch", number: true }, { title: "time", csv: "time / s", number: true, text: seconds },
      { title: "rate", csv: "rate / FLOP/s", number: true, text: (value) => si(value, "FLOP/s") },
      { title: "of ceiling", number: true, text: (value) => percent(value) },
      { title: "of peak", number: true, text: (value) => percent(value) }, { title: "labels" },
    ],
    rows: lines.flatMap((line) => line.rows.map((row) => [
      line.name, row.m, row.n, row.k, row.batch, row.time.median, row.flops, row.of_ceiling, row.of_peak, line.labels.join(" ")])),
  };
}

function rateChart(lines, dtype) {
  const bounds = limits(lines, dtype);
  const peak = bounds.find(({ name }) => name === "datasheet peak");
  return changingChart({
    id: "gemm-rate",
    title: `Matrix multiplication, ${dtype}: rate per rank`,
    note: `dashed: ${bounds.length > 0 ? bounds.map(({ name, flops }) => `${name} ${si(flops, "FLOP/s")}`).join("; ") : "no ceiling is known"}` +
      `${peak ? "" : "; the device's datasheet peak is not known"}. Hollow: labelled, no scaling result.`,
    switches: [{ name: "y", label: "values", choices: ["linear", "log"] }],
    table: numbersOf(lines),
    option: (colours, state) => ({
      grid: { bottom: 26, right: 24 },
      xAxis: { type: "log", min: ({ min }) => min / 1.5, max: ({ max }) => max * 1.5, name: "work of one call", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: (value) => si(value, "FLOP"), showMinLabel: false, showMaxLabel: false } },
      yAxis: {
        type: state.y === "log" ? "log" : "value",
        min: state.y === "log" ? undefined : 0,
        max: state.y === "log" ? undefined : ({ max }) => Math.max(max, ...bounds.map(({ flops }) => flops)) * 1.05,
        axisLabel: { formatter: (value) => si(value, "FLOP/s"), showMaxLabel: false },
      },
      dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
      tooltip: {
        formatter: ({ seriesName, data: item, name }) => {
          if (!item.row) return name;
          const of = (value, what) => (typeof value === "number" ? `, ${percent(value)} of the ${what}` : "");
          return `${seriesName}\n${shapeOf(item.row)}: ${si(item.row.flops, "FLOP/s")}${of(item.row.of_ceiling, "ceiling")}${of(item.row.of_peak, "peak")}` +
            (item.labels.length ? `\n${item.labels.join(", ")}` : "");
        },
      },
      series: lines.map((line, i) => {
        const colour = colours.series[i % colours.series.length];
        const sound = !line.labels.some((label) => unsound.includes(label));
        return {
          // Square shapes are joined by a line; other shapes do not form a series.
          type: line.rows.every(isSquare) ? "line" : "scatter",
          name: line.name,
          symbol: symbols[i % symbols.length],
          symbolSize: 8,
          itemStyle: { color: colour },
          lineStyle: { color: colour },
          data: line.rows.filter((row) => row.flops > 0).map((row) => ({
            value: [row.flop, row.flops],
            row,
            labels: line.labels,
            itemStyle: sound ? undefined : { color: colours.background, borderColor: colour, borderWidth: 2 },
          })),
          markLine: i === 0 && bounds.length > 0
            ? {
                silent: true,
                precision: 12,
                symbol: "none",
                lineStyle: { color: colours.ideal, type: "dashed" },
                data: bounds.map(({ name, flops }) => ({
                  yAxis: flops,
                  label: { formatter: name, position: name === "datasheet peak" ? "insideStartTop" : "insideStartBottom", color: colours.faint },
                })),
              }
            : undefined,
        };
      }),
    }),
  });
}

/** @param {{run: object, point: object}[]} micro */
export function gemmSection(micro) {
  const dtypes = [...new Set(micro.flatMap(({ point }) => point.rows.filter((row) => row.op === "gemm" && row.flop > 0).map((row) => row.dtype)))];
  if (dtypes.length === 0) return null;
  return {
    id: "gemm",
    title: "GEMM",
    heading: "Matrix multiplication",
    content: oneOf("precision", dtypes.map(String), (index) => [el("div", { class: "charts" }, rateChart(linesOf(micro, dtypes[index]), dtypes[index]))]),
  };
}
