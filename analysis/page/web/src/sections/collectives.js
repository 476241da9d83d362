// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows bandwidth and time of collectives over size, with the curves that the calibration fitted.
import { unsound } from "../data.js";
import { el } from "../dom.js";
import { bytes, joined, known, seconds, si, statusText } from "../format.js";
import { colourOf, lineOf, stepTip } from "../marks.js";
import { oneOf } from "../select.js";
import { count, ends, rate, size, time, words } from "../table.js";

const others = new Set(["gemm", "memory", "p2p", "overlap", "infer", "serve"]);
const isCollective = (row) => row.members !== undefined && !others.has(row.op);
const bandwidth = (value) => si(value, "B/s");

/**
 * Returns the words that identify a line; words that all lines share are left out of their names.
 */
function wordsOf({ run, point }, row, runs) {
  return {
    members: known(row.members) ? `${row.members} ranks` : `${point.ranks} ranks`,
    of: row.members !== point.ranks ? `of ${point.ranks}` : null,
    axis: row.axis && row.axis !== "world" ? `on ${row.axis}` : null,
    groups: row.groups === "one" ? "one group alone" : null,
    implementation: row.implementation,
    algorithm: row.algorithm,
    protocol: row.protocol,
    registration: row.registration ? `registration ${row.registration}` : null,
    dtype: row.dtype,
    place: row.in_place ? "in place" : "out of place",
    root: row.root >= 0 ? `root ${row.root}` : null,
    run: runs > 1 ? run.id : null,
  };
}

/** Returns the lines of one op: [{name, words, rows, labels}]. */
function linesOf(micro, op) {
  const runs = new Set(micro.map(({ run }) => run)).size;
  const lines = new Map();
  for (const at of micro) {
    for (const row of at.point.rows) {
      if (row.op !== op || !isCollective(row)) continue;
      const identity = wordsOf(at, row, runs);
      const key = JSON.stringify([identity, at.point.index]);
      if (!lines.has(key)) lines.set(key, { words: identity, rows: [], labels: at.point.labels, run: at.run });
      lines.get(key).rows.push(row);
    }
  }
  const all = [...lines.values()];
  const differs = (word) => new Set(all.map((line) => line.words[word])).size > 1;
  const named = Object.keys(all[0].words).filter((word) => word === "members" || differs(word));
  const seen = new Map();
  for (const line of all) {
    const name = joined(named.map((word) => line.words[word]));
    seen.set(name, (seen.get(name) ?? 0) + 1);
    line.name = seen.get(name) > 1 ? `${name} (${seen.get(name)})` : name;
    line.rows.sort((a, b) => a.bytes - b.bytes);
  }
  return all;
}

/** Returns busbw / algbw from any row that has both, since the ratio is the same for all sizes. */
function factorOf(line) {
  const row = line.rows.find((at) => at.busbw > 0 && at.algbw > 0);
  return row ? row.busbw / row.algbw : null;
}

function fitOf(line, op) {
  const row = line.rows[0];
  return line.run.calibration?.curves?.find((at) =>
    at.op === op && at.members === row.members && at.class === row.class && at.dtype === row.dtype &&
    at.implementation === row.implementation && !row.in_place);
}

// The first lines are wider and later ones are dashed, so that lines that coincide stay visible.
const dashes = ["solid", [9, 4], [9, 3, 2, 3]];

/** Draws a line of measured rows; wrong results are marked. */
function measured(line, i, { value, colours, count: lines }) {
  const isHollow = line.labels.some((label) => unsound.includes(label));
  const wider = Math.min(2, lines - 1 - i);
  const items = line.rows.filter((row) => row.bytes > 0 && value(row) > 0).map((row) => ({
    x: row.bytes, y: value(row), isHollow, row, labels: line.labels,
    ...(row.wrong > 0 ? { itemStyle: { color: colours.bad }, symbol: "pin", symbolSize: 16 } : {}),
  }));
  return lineOf(line.name, i, colours, items, { symbolSize: 6 + 3 * wider, stroke: { type: dashes[i % dashes.length], width: 1.5 + wider } });
}

function fitted(line, op, i, value, colours) {
  const fit = fitOf(line, op);
  if (!fit || fit.samples.length < 2) return [];
  return [{
    type: "line",
    name: "calibration's fit",
    symbol: "none",
    silent: true,
    z: 1,
    itemStyle: { color: colours.ideal },
    lineStyle: { color: colourOf(colours, i), type: "dotted", width: 1, opacity: 0.9 },
    data: fit.samples.filter((at) => at.bytes > 0 && at.fitted > 0).map((at) => [at.bytes, value(at.bytes, at.fitted)]),
  }];
}

/** Makes an axis of sizes that begins and ends with the data. */
export const sizeAxis = (name) =>
  ({ type: "log", logBase: 2, min: ({ min }) => min, max: ({ max }) => max, name, minorTick: { show: false }, format: bytes });

function lineChart({ lines, op, value, fit, text, ...spec }) {
  return {
    switches: [{ name: "y", label: "values", choices: ["log", "linear"] }],
    ...spec,
    option: (colours, state) => ({
      xAxis: sizeAxis("message size"),
      yAxis: { type: state.y === "log" ? "log" : "value", min: state.y === "log" ? undefined : 0, format: text },
      zoom: true,
      tip: ({ seriesName, value: [x, y], data: { row, labels } }) => joined([
        seriesName, `${bytes(x)}: ${text(y)}`, row && stepTip(row.time).replace("step", "time"),
        row?.wrong > 0 && `${row.wrong} WRONG elements`, labels && joined(labels)], "\n"),
      series: [
        ...lines.map((line, i) => measured(line, i, { value, colours, count: lines.length })),
        ...lines.flatMap((line, i) => fitted(line, op, i, fit(line), colours)),
      ],
    }),
  };
}

/** Describes the bars of an op without sizes, such as a barrier. */
const barChart = (lines, op, spec) => ({
  ...spec,
  legend: false,
  option: (colours) => ({
    xAxis: { type: "category", data: lines.map(({ name }) => name), nameGap: 0 },
    yAxis: { min: 0, format: seconds },
    tip: ({ name, value }) => `${name}: ${seconds(value)}`,
    series: [{ type: "bar", name: op, barMaxWidth: 48, itemStyle: { color: colours.series[0] }, data: lines.map((line) => line.rows[0].time.median) }],
  }),
});

const columns = [
  words("line", ({ line }) => line.name), size("size", ({ bytes: at }) => at),
  ...ends(time, "time", ({ time: at }) => [at.median, at.lower, at.upper]), time("99% of calls", (row) => row.time.p99),
  rate("algbw", null, "B/s"), rate("busbw", null, "B/s"), count("wrong"), words("class"),
  words("labels", ({ line }) => line.labels.join(" ")), words("status", statusText),
];

/** Returns the best bandwidth and the least time of each line, in words. */
function bestTexts(lines) {
  return lines.map((line) => {
    const best = line.rows.reduce((top, row) => (row.busbw > (top?.busbw ?? 0) ? row : top), null);
    const least = Math.min(...line.rows.map((row) => row.time.median).filter(known));
    if (!best || least === Infinity) return null;
    return `${line.name}: at most ${bandwidth(best.busbw)} busbw at ${bytes(best.bytes)}, shortest call ${seconds(least)}`;
  }).filter(Boolean);
}

function blocksOf(micro, op) {
  const lines = linesOf(micro, op);
  const sized = lines.filter((line) => line.rows.some((row) => row.bytes > 0 && row.time.median > 0));
  const items = lines.flatMap((line) => line.rows.map((row) => ({ line, ...row })));
  const wrong = items.filter((row) => row.wrong > 0).length;
  const hasFit = sized.some((line) => fitOf(line, op));
  const shared = {
    lines: sized, op, table: { columns, items },
    note: `${hasFit ? "dotted: the calibration's fit; " : ""}hollow: labelled, no scaling result`,
  };
  const callTime = { id: "collective-time", title: `${op}: time of a call` };
  return [
    { list: bestTexts(lines), rest: "more in the table" },
    { when: wrong > 0, list: [el("span", { class: "mark" }, `${wrong} sizes gave wrong results`)] },
    { charts: [
      sized.some((line) => line.rows.some((row) => row.busbw > 0)) && lineChart({
        ...shared, id: "collective-busbw", title: `${op}: bus bandwidth`, value: (row) => row.busbw,
        fit: (line) => (bytesSent, taken) => (factorOf(line) * bytesSent) / taken, text: bandwidth,
      }),
      sized.length > 0
        ? lineChart({ ...shared, ...callTime, value: (row) => row.time.median, fit: () => (_, taken) => taken, text: seconds })
        : barChart(lines, op, { ...callTime, table: shared.table })] }];
}

/** @param {{run: object, point: object}[]} micro points of micro-benchmarks */
export function collectivesSection(micro) {
  const ops = [...new Set(micro.flatMap(({ point }) => point.rows.filter(isCollective).map((row) => row.op)))];
  if (ops.length === 0) return null;
  return { id: "collectives", title: "Collectives", blocks: [oneOf("operation", ops, (index) => blocksOf(micro, ops[index]))] };
}
