// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the rate of matrix multiplications over their work, below the measured ceiling and the peak
// of the datasheet.
import { unsound } from "../data.js";
import { joined, known, percent, rankCount, seconds, si } from "../format.js";
import { lineOf, markLine } from "../marks.js";
import { oneOf } from "../select.js";
import { count, rate, share, time, words } from "../table.js";

const shapeOf = (row) => `${row.m} x ${row.n} x ${row.k}${row.batch > 1 ? `, batch ${row.batch}` : ""}`;
const isSquare = (row) => row.m === row.n && row.n === row.k;
const flops = (value) => si(value, "FLOP/s");

function linesOf(micro, dtype) {
  const runs = new Set(micro.map(({ run }) => run)).size;
  return micro.flatMap(({ run, point }) => {
    const rows = point.rows.filter((row) => row.op === "gemm" && row.dtype === dtype && row.flop > 0);
    const caches = [...new Set(rows.map((row) => row.cache))];
    return caches.map((cache) => ({
      name: joined([rankCount(point.ranks), cache && `${cache} cache`, runs > 1 && run.id]),
      rows: rows.filter((row) => row.cache === cache).sort((a, b) => a.flop - b.flop),
      labels: point.labels,
      cache,
      run,
    }));
  });
}

/** Returns the best measured rate and the datasheet's peak: [name, FLOP/s]. */
function limitsOf(lines, dtype) {
  const found = new Map();
  for (const line of lines) {
    const ceiling = line.run.calibration?.ceilings?.find((at) => at.dtype === dtype && at.cache === line.cache);
    if (ceiling?.flops > 0) found.set(`ceiling measured, ${line.cache ?? "all"}`, ceiling.flops);
    const row = line.rows.find((at) => at.of_peak > 0 && at.flops > 0);
    if (row) found.set("datasheet peak", row.flops / row.of_peak);
  }
  return [...found];
}

const columns = [
  words("line"), count("m"), count("n"), count("k"), count("batch"), time("time", (row) => row.time.median),
  rate("rate", (row) => row.flops, "FLOP/s"), share("of ceiling", (row) => row.of_ceiling), share("of peak", (row) => row.of_peak),
  words("labels", ({ labels }) => labels.join(" ")),
];

function tipOf({ seriesName, name, data: { row, labels } }) {
  if (!row) return name;
  const of = (value, what) => (known(value) ? `, ${percent(value)} of the ${what}` : "");
  return joined([seriesName, `${shapeOf(row)}: ${flops(row.flops)}${of(row.of_ceiling, "ceiling")}${of(row.of_peak, "peak")}`,
    `time ${seconds(row.time.median)}`, joined(labels)], "\n");
}

function rateChart(lines, dtype) {
  const bounds = limitsOf(lines, dtype);
  const hasPeak = bounds.some(([name]) => name === "datasheet peak");
  const limits = (colours) => markLine(bounds.map(([name, yAxis]) => ({
    yAxis, label: { show: true, formatter: name, position: name === "datasheet peak" ? "insideStartTop" : "insideStartBottom", color: colours.faint },
  })), { lineStyle: { color: colours.ideal, type: "dashed" } });
  return {
    id: "gemm-rate",
    title: `Matrix multiplication, ${dtype}: rate per rank`,
    note: `dashed: ${bounds.length > 0 ? bounds.map(([name, value]) => `${name} ${flops(value)}`).join("; ") : "no ceiling is known"}` +
      `${hasPeak ? "" : "; the device's datasheet peak is not known"}. Hollow: labelled, no scaling result.`,
    switches: [{ name: "y", label: "values", choices: ["linear", "log"] }],
    table: { columns, items: lines.flatMap((line) => line.rows.map((row) => ({ line: line.name, labels: line.labels, ...row }))) },
    option: (colours, state) => ({
      xAxis: {
        type: "log", min: ({ min }) => min / 1.5, max: ({ max }) => max * 1.5, name: "work of one call",
        format: (value) => si(value, "FLOP"), axisLabel: { showMinLabel: false, showMaxLabel: false },
      },
      yAxis: {
        ...(state.y === "log" ? { type: "log" } : { min: 0, max: ({ max }) => Math.max(max, ...bounds.map(([, value]) => value)) * 1.05 }),
        format: flops,
        axisLabel: { showMaxLabel: false },
      },
      zoom: true,
      tip: tipOf,
      series: lines.map(({ name, rows, labels }, i) => {
        const isHollow = labels.some((label) => unsound.includes(label));
        const items = rows.filter((row) => row.flops > 0).map((row) => ({ x: row.flop, y: row.flops, isHollow, row, labels }));
        return lineOf(name, i, colours, items, {
          // A line joins square shapes; other shapes do not form a series.
          type: rows.every(isSquare) ? "line" : "scatter",
          ...(i === 0 && bounds.length > 0 ? { markLine: limits(colours) } : {}),
        });
      }),
    }),
  };
}

/** @param {{run: object, point: object}[]} micro */
export function gemmSection(micro) {
  const dtypes = [...new Set(micro.flatMap(({ point }) => point.rows.filter((row) => row.op === "gemm" && row.flop > 0).map((row) => row.dtype)))];
  if (dtypes.length === 0) return null;
  return {
    id: "gemm",
    title: "GEMM",
    heading: "Matrix multiplication",
    blocks: [oneOf("precision", dtypes.map(String), (index) => [{ charts: [rateChart(linesOf(micro, dtypes[index]), dtypes[index])] }])],
  };
}
