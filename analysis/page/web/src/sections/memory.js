// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows memory bandwidth, and how much communication is hidden behind computation.
import { ownOf } from "../data.js";
import { bytes, fixed, joined, known, percent, rankCount, si, statusText } from "../format.js";
import { colourOf, lineOf } from "../marks.js";
import { oneOf } from "../select.js";
import { count, rate, share, size, time, words } from "../table.js";
import { sizeAxis } from "./collectives.js";

const bandwidth = (value) => si(value, "B/s");
const pointName = ({ point }) => `${rankCount(point.ranks)}, point ${point.index}`;

/** Returns a function that names the kind of a row, with its NUMA node if there are several. */
function kindNames(rows) {
  const isSplit = new Set(rows.map((row) => row.numa)).size > 1;
  return (row, ...more) => joined([row.kind, ...more, known(row.numa) && isSplit && `NUMA node ${row.numa}`]);
}

/**
 * Describes the bars of a rank's bandwidth alone and with all ranks together, at the largest size
 * of each kind.
 */
function barChart(rows, numbers) {
  const kindOf = kindNames(rows);
  const keyOf = (row) => JSON.stringify([kindOf(row), row.together]);
  const largest = new Map();
  for (const row of rows) {
    if (known(row.bandwidth) && !(largest.get(keyOf(row))?.bytes >= row.bytes)) largest.set(keyOf(row), row);
  }
  const kinds = [...new Set([...largest.values()].map((row) => kindOf(row)))].reverse();
  const together = [...new Set([...largest.values()].map((row) => row.together))];
  const nameOf = (value) => ownOf({ one: "one rank alone", all: "all ranks at once" }, value) ?? value ?? "bandwidth";
  return {
    id: "memory-bandwidth",
    title: "Memory bandwidth of a rank",
    note: "at the largest size of each kind",
    height: 70 + kinds.length * (14 + 18 * together.length),
    table: numbers,
    option: (colours) => ({
      grid: { right: 64 },
      xAxis: { min: 0, format: bandwidth },
      yAxis: { type: "category", data: kinds, axisLabel: { width: 150, overflow: "truncate" } },
      tip: ({ seriesName, name, data: at }) =>
        `${name}, ${seriesName}\n${bandwidth(at.value)} at ${bytes(at.size)}${known(at.of) ? `, ${percent(at.of)} of the datasheet's peak` : ""}`,
      series: together.map((way, i) => ({
        type: "bar",
        name: nameOf(way),
        barMaxWidth: 16,
        itemStyle: { color: colourOf(colours, i) },
        label: { show: true, position: "right", color: colours.faint, fontSize: 11, formatter: ({ value }) => (known(value) ? bandwidth(value) : "") },
        data: kinds.map((kind) => {
          const row = largest.get(JSON.stringify([kind, way]));
          return { value: row?.bandwidth ?? null, size: row?.bytes, of: row?.of_peak };
        }),
      })),
    }),
  };
}

function sizesChart(rows, numbers) {
  const kindOf = kindNames(rows);
  const nameOf = (row) => kindOf(row, row.together === "all" && "all at once");
  const measured = rows.filter((row) => row.bytes > 0 && row.bandwidth > 0).sort((a, b) => a.bytes - b.bytes);
  const names = [...new Set(rows.map(nameOf))];
  const itemsOf = (name) => measured.filter((row) => nameOf(row) === name).map((row) => ({ x: row.bytes, y: row.bandwidth }));
  if (!names.some((name) => itemsOf(name).length > 1)) return null;
  return {
    id: "memory-sizes",
    title: "Memory bandwidth against size",
    switches: [{ name: "y", label: "values", choices: ["log", "linear"] }],
    table: numbers,
    option: (colours, state) => ({
      xAxis: sizeAxis("size"),
      yAxis: { type: state.y === "log" ? "log" : "value", format: bandwidth },
      zoom: true,
      tip: ({ seriesName, value }) => `${seriesName}\n${bytes(value[0])}: ${bandwidth(value[1])}`,
      series: names.map((name, i) => lineOf(name, i, colours, itemsOf(name),
        { symbolSize: 6, stroke: { type: i >= colours.series.length ? "dashed" : "solid" } })),
    }),
  };
}

const memoryColumns = [
  words("kind"), size("size", (row) => row.bytes), words("together"), count("NUMA node", (row) => row.numa),
  rate("bandwidth", null, "B/s"), time("time", (row) => row.time.median), share("of peak", (row) => row.of_peak), words("status", statusText),
];

const slower = (title, value) => ({ ...count(title, value), text: (at) => `${fixed(at)} x` });

const overlapColumns = [
  words("collective"), size("size", (row) => row.bytes), count("m"), count("n"), count("k"), words("precision", (row) => row.dtype),
  time("GEMM alone", (row) => row.gemm_alone), time("collective alone", (row) => row.collective_alone), time("together"),
  share("hidden", null, 0), share("from", (row) => row.hidden_lower, 0), share("to", (row) => row.hidden_upper, 0),
  slower("GEMM slower", (row) => row.gemm_slowdown), slower("collective slower", (row) => row.collective_slowdown),
  words("status", (row) => (row.status === "ok" ? row.why_unknown ?? "ok" : statusText(row))),
];

function memoryBlocks(rows) {
  const numbers = { columns: memoryColumns, items: rows };
  return [{ charts: [barChart(rows, numbers), sizesChart(rows, numbers)] }];
}

function overlapBlocks(rows) {
  const best = Math.max(...rows.filter((row) => row.hidden_known).map((row) => row.hidden));
  return [
    { saying: "hidden: (alone + alone - together) / the shorter of the two; below 0, both at once took longer than one after the other. " +
        `from, to: its 95% interval.${best > -Infinity ? ` At best ${percent(best, 0)} is hidden.` : ""}` },
    { table: { columns: overlapColumns, items: rows, caption: "overlap of multiplications and collectives", most: 40 } }];
}

/** Makes a section for the points that have rows of `op`; the reader chooses one of them. */
function sectionOf(micro, op, title, blocksOf) {
  const all = micro.filter(({ point }) => point.rows.some((row) => row.op === op));
  if (all.length === 0) return null;
  const show = (index) => {
    const { labels, rows } = all[index].point;
    return [{ mark: labels.join(", ") }, ...blocksOf(rows.filter((row) => row.op === op))];
  };
  return { id: op, title, blocks: [oneOf("point", all.map(pointName), show)] };
}

/** @param {{run: object, point: object}[]} micro */
export const memorySection = (micro) => sectionOf(micro, "memory", "Memory", memoryBlocks);

/** @param {{run: object, point: object}[]} micro */
export const overlapSection = (micro) => sectionOf(micro, "overlap", "Overlap", overlapBlocks);
