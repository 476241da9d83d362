// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Memory bandwidth, and how much communication hides behind computation.
import { ownOf } from "../data.js";
import { el } from "../dom.js";
import { bytes, fixed, percent, rankCount, seconds, si } from "../format.js";
import { changingChart, oneOf } from "../select.js";
import { table } from "../table.js";

const isMemory = (row) => row.op === "memory";
const isOverlap = (row) => row.op === "overlap";
const known = (value) => typeof value === "number";
const pointNames = (points) => points.map(({ point }) => `${rankCount(point.ranks)}, point ${point.index}`);

/** Shows a rank's bandwidth alone and with all ranks together, at the largest size of each kind. */
function memoryChart(rows, numbers) {
  const severalNodes = new Set(rows.map((row) => row.numa)).size > 1;
  const kindOf = (row) => [row.kind, known(row.numa) && severalNodes ? `NUMA node ${row.numa}` : null].filter(Boolean).join(", ");
  const largest = new Map();
  for (const row of rows) {
    const key = JSON.stringify([kindOf(row), row.together]);
    if (known(row.bandwidth) && !(largest.get(key)?.bytes >= row.bytes)) largest.set(key, row);
  }
  const kinds = [...new Set([...largest.values()].map(kindOf))].reverse();
  const together = [...new Set([...largest.values()].map((row) => row.together))];
  const nameOf = (value) => ownOf({ one: "one rank alone", all: "all ranks at once" }, value) ?? value ?? "bandwidth";
  return changingChart({
    id: "memory-bandwidth",
    title: "Memory bandwidth of a rank",
    note: "at the largest size of each kind",
    height: 70 + kinds.length * (14 + 18 * together.length),
    table: numbers,
    option: (colours) => ({
      grid: { right: 64 },
      xAxis: { type: "value", min: 0, axisLabel: { formatter: (value) => si(value, "B/s") } },
      yAxis: { type: "category", data: kinds, axisTick: { show: false }, axisLabel: { width: 150, overflow: "truncate" } },
      tooltip: { formatter: ({ seriesName, name, data: item }) => `${name}, ${seriesName}\n${si(item.value, "B/s")} at ${bytes(item.size)}${known(item.of) ? `, ${percent(item.of)} of the datasheet's peak` : ""}` },
      series: together.map((way, i) => ({
        type: "bar",
        name: nameOf(way),
        barMaxWidth: 16,
        itemStyle: { color: colours.series[i % colours.series.length] },
        label: { show: true, position: "right", color: colours.faint, fontSize: 11, formatter: ({ value }) => (known(value) ? si(value, "B/s") : "") },
        data: kinds.map((kind) => {
          const row = largest.get(JSON.stringify([kind, way]));
          return { value: row?.bandwidth ?? null, size: row?.bytes, of: row?.of_peak };
        }),
      })),
    }),
  });
}

function sizesChart(rows, numbers) {
  const severalNodes = new Set(rows.map((row) => row.numa)).size > 1;
  const nameOf = (row) => [row.kind, row.together === "all" ? "all at once" : null, known(row.numa) && severalNodes ? `NUMA node ${row.numa}` : null].filter(Boolean).join(", ");
  const names = [...new Set(rows.map(nameOf))];
  const lines = names.map((name) => ({ name, rows: rows.filter((row) => nameOf(row) === name && row.bytes > 0 && row.bandwidth > 0).sort((a, b) => a.bytes - b.bytes) }));
  if (!lines.some((line) => line.rows.length > 1)) return null;
  return changingChart({
    id: "memory-sizes",
    title: "Memory bandwidth against size",
    switches: [{ name: "y", label: "values", choices: ["log", "linear"] }],
    table: numbers,
    option: (colours, state) => ({
      grid: { bottom: 26 },
      xAxis: { type: "log", logBase: 2, min: ({ min }) => min, max: ({ max }) => max, name: "size", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: bytes } },
      yAxis: { type: state.y === "log" ? "log" : "value", axisLabel: { formatter: (value) => si(value, "B/s") } },
      dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }],
      tooltip: { formatter: ({ seriesName, value }) => `${seriesName}\n${bytes(value[0])}: ${si(value[1], "B/s")}` },
      series: lines.map((line, i) => ({
        type: "line",
        name: line.name,
        symbolSize: 6,
        itemStyle: { color: colours.series[i % colours.series.length] },
        lineStyle: { type: i >= colours.series.length ? "dashed" : "solid" },
        data: line.rows.map((row) => [row.bytes, row.bandwidth]),
      })),
    }),
  });
}

function memoryContent({ point }) {
  const rows = point.rows.filter(isMemory);
  const numbers = {
    columns: [
      { title: "kind" }, { title: "size", number: true, text: bytes }, { title: "together" }, { title: "NUMA node", number: true },
      { title: "bandwidth", csv: "bandwidth / B/s", number: true, text: (value) => si(value, "B/s") }, { title: "time", csv: "time / s", number: true, text: seconds },
      { title: "of peak", number: true, text: (value) => percent(value) }, { title: "status" },
    ],
    rows: rows.map((row) => [
      row.kind, row.bytes, row.together, row.numa, row.bandwidth, row.time.median, row.of_peak,
      row.status === "ok" ? "ok" : `${row.status}: ${row.reason ?? ""}`]),
  };
  return [
    point.labels.length > 0 ? el("p", { class: "mark" }, point.labels.join(", ")) : null,
    el("div", { class: "charts" }, memoryChart(rows, numbers), sizesChart(rows, numbers)),
  ];
}

/** @param {{run: object, point: object}[]} micro */
export function memorySection(micro) {
  const all = micro.filter(({ point }) => point.rows.some(isMemory));
  if (all.length === 0) return null;
  return { id: "memory", title: "Memory", content: oneOf("point", pointNames(all), (index) => memoryContent(all[index])) };
}

function overlapContent({ point }) {
  const rows = point.rows.filter(isOverlap);
  const best = rows.filter((row) => row.hidden_known)
                   .reduce((top, row) => (top && top.hidden >= row.hidden ? top : row), null);
  return [
    point.labels.length > 0 ? el('p', {class: 'mark'}, point.labels.join(', ')) : null,
    el('p', {class: 'saying'},
       'hidden: (alone + alone - together) / the shorter of the two; below 0, both at once took longer than one after the other. from, to: its 95% interval.' +
           (best ? ` At best ${percent(best.hidden, 0)} is hidden.` : '')),
    table(
        [
          {title: 'collective'},
          {title: 'size', number: true, text: bytes},
          {title: 'm', number: true},
          {title: 'n', number: true},
          {title: 'k', number: true},
          {title: 'precision'},
          {title: 'GEMM alone', csv: 'GEMM alone / s', number: true, text: seconds},
          {title: 'collective alone', csv: 'collective alone / s', number: true, text: seconds},
          {title: 'together', csv: 'together / s', number: true, text: seconds},
          {title: 'hidden', number: true, text: (value) => percent(value, 0)},
          {title: 'from', number: true, text: (value) => percent(value, 0)},
          {title: 'to', number: true, text: (value) => percent(value, 0)},
          {title: 'GEMM slower', number: true, text: (value) => `${fixed(value)} x`},
          {title: 'collective slower', number: true, text: (value) => `${fixed(value)} x`},
          {title: 'status'},
        ],
        rows.map(
            (row) =>
                [row.collective, row.bytes, row.m, row.n, row.k, row.dtype, row.gemm_alone,
                 row.collective_alone, row.together, row.hidden, row.hidden_lower, row.hidden_upper,
                 row.gemm_slowdown, row.collective_slowdown,
                 row.status === 'ok' ? row.why_unknown ?? 'ok' :
                                       `${row.status}: ${row.reason ?? ''}`]),
        {caption: 'overlap of multiplications and collectives', most: 40}),
  ];
}

/** @param {{run: object, point: object}[]} micro */
export function overlapSection(micro) {
  const all = micro.filter(({ point }) => point.rows.some(isOverlap));
  if (all.length === 0) return null;
  return { id: "overlap", title: "Overlap", content: oneOf("point", pointNames(all), (index) => overlapContent(all[index])) };
}
