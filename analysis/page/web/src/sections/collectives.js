// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Collectives: bandwidth and time over size, beside the curves that the calibration fitted.
import { unsound } from "../data.js";
import { el } from "../dom.js";
import { bytes, seconds, si } from "../format.js";
import { changingChart, oneOf } from "../select.js";
import { symbols } from "../theme.js";

const others = new Set(["gemm", "memory", "p2p", "overlap", "infer", "serve"]);
const isCollective = (row) => row.members !== undefined && !others.has(row.op);
const known = (value) => typeof value === "number";

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
      const words = wordsOf(at, row, runs);
      const key = JSON.stringify([words, at.point.index]);
      if (!lines.has(key)) lines.set(key, { words, rows: [], labels: at.point.labels, run: at.run });
      lines.get(key).rows.push(row);
    }
  }
  const all = [...lines.values()];
  const differs = (word) => new Set(all.map(({ words }) => words[word])).size > 1;
  const named = Object.keys(all[0].words).filter((word) => word === "members" || differs(word));
  const seen = new Map();
  for (const line of all) {
    const name = named.map((word) => line.words[word]).filter(Boolean).join(", ");
    seen.set(name, (seen.get(name) ?? 0) + 1);
    line.name = seen.get(name) > 1 ? `${name} (${seen.get(name)})` : name;
    line.rows.sort((a, b) => a.bytes - b.bytes);
  }
  return all;
}

/** Returns busbw over algbw from any row that has both, since it does not depend on the size. */
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

const isSound = (line) => !line.labels.some((label) => unsound.includes(label));

// Lines that coincide stay visible: those drawn first are wider, and later ones are dashed.
const dashes = ["solid", [9, 4], [9, 3, 2, 3]];
const strokeOf = (i, count) => ({ type: dashes[i % dashes.length], width: 1.5 + Math.min(2, count - 1 - i) });

function measured(line, i, { value, colours, count }) {
  const colour = colours.series[i % colours.series.length];
  const hollow = isSound(line) ? {} : { itemStyle: { color: colours.background, borderColor: colour, borderWidth: 2 } };
  return {
    type: "line",
    name: line.name,
    symbol: symbols[i % symbols.length],
    // Lines drawn first have larger symbols, to stay visible
    symbolSize: 6 + 3 * Math.min(2, count - 1 - i),
    itemStyle: { color: colour },
    lineStyle: { color: colour, ...strokeOf(i, count) },
    data: line.rows.filter((row) => row.bytes > 0 && value(row) > 0).map((row) => ({
      value: [row.bytes, value(row)],
      row,
      labels: line.labels,
      ...(row.wrong > 0 ? { itemStyle: { color: colours.bad }, symbol: "pin", symbolSize: 16 } : hollow),
    })),
  };
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
    lineStyle: { color: colours.series[i % colours.series.length], type: "dotted", width: 1, opacity: 0.9 },
    data: fit.samples.filter((at) => at.bytes > 0 && at.fitted > 0).map((at) => [at.bytes, value(at.bytes, at.fitted)]),
  }];
}

const sizeAxis = { type: "log", logBase: 2, min: ({ min }) => min, max: ({ max }) => max, name: "message size", nameLocation: "middle", nameGap: 26, minorTick: { show: false }, axisLabel: { formatter: (value) => bytes(value) } };

function tooltip(show) {
  return {
    formatter: ({ seriesName, value, data: item }) => {
      const time = item?.row?.time;
      const interval = time && known(time.lower) ? ` (95%: ${seconds(time.lower)} to ${seconds(time.upper)})` : "";
      return `${seriesName}\n${bytes(value[0])}: ${show(value[1])}` +
        (time ? `\ntime ${seconds(time.median)}${interval}` : "") +
        (item?.row?.wrong > 0 ? `\n${item.row.wrong} WRONG elements` : "") +
        (item?.labels?.length ? `\n${item.labels.join(", ")}` : "");
    },
  };
}

const zoom = [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }];
const scales = [{ name: "y", label: "values", choices: ["log", "linear"] }];

function pictureOf({ id, title, note, lines, op, numbers, value, fit, text }) {
  return changingChart({
    id,
    title,
    note,
    switches: scales,
    table: numbers,
    option: (colours, state) => ({
      grid: { bottom: 26 },
      xAxis: sizeAxis,
      yAxis: { type: state.y === "log" ? "log" : "value", min: state.y === "log" ? undefined : 0, axisLabel: { formatter: text } },
      dataZoom: zoom,
      tooltip: tooltip(text),
      series: [
        ...lines.map((line, i) => measured(line, i, { value, colours, count: lines.length })),
        ...lines.flatMap((line, i) => fitted(line, op, i, fit(line), colours)),
      ],
    }),
  });
}

function numbersOf(lines) {
  return {
    columns: [
      { title: "line" }, { title: "size", number: true, text: bytes }, { title: "time", csv: "time / s", number: true, text: seconds },
      { title: "lower", number: true, text: seconds }, { title: "upper", number: true, text: seconds },
      { title: "99% of calls", number: true, text: seconds },
      { title: "algbw", csv: "algbw / B/s", number: true, text: (value) => si(value, "B/s") }, { title: "busbw", csv: "busbw / B/s", number: true, text: (value) => si(value, "B/s") },
      { title: "wrong", number: true }, { title: "class" }, { title: "labels" }, { title: "status" },
    ],
    rows: lines.flatMap((line) => line.rows.map((row) => [
      line.name, row.bytes, row.time.median, row.time.lower, row.time.upper, row.time.p99, row.algbw, row.busbw, row.wrong,
      row.class, line.labels.join(" "), row.status === "ok" ? "ok" : `${row.status}: ${row.reason ?? ""}`])),
  };
}

/** Returns the best bandwidth and the least time of each line, in words. */
function bestText(op, lines) {
  return lines.map((line) => {
    const best = line.rows.reduce((top, row) => (row.busbw > (top?.busbw ?? 0) ? row : top), null);
    const least = line.rows.reduce((top, row) => (known(row.time.median) && row.time.median < (top?.time.median ?? Infinity) ? row : top), null);
    if (!best || !least) return null;
    return `${line.name}: at most ${si(best.busbw, "B/s")} busbw at ${bytes(best.bytes)}, shortest call ${seconds(least.time.median)}`;
  }).filter(Boolean);
}

function content(micro, op) {
  const lines = linesOf(micro, op);
  const numbers = numbersOf(lines);
  const sized = lines.filter((line) => line.rows.some((row) => row.bytes > 0 && row.time.median > 0));
  const wrong = lines.reduce((all, line) => all + line.rows.filter((row) => row.wrong > 0).length, 0);
  const fits = sized.some((line) => fitOf(line, op));
  const note = `${fits ? "dotted: the calibration's fit; " : ""}hollow: labelled, no scaling result`;
  const best = bestText(op, lines);
  const most = 8;
  const words = el("ul", { class: "saying" }, best.slice(0, most).map((text) => el("li", {}, text)),
    best.length > most ? el("li", {}, `${best.length - most} more in the table`) : null,
    wrong > 0 ? el("li", { class: "mark" }, `${wrong} sizes gave wrong results`) : null);
  const shared = { lines: sized, op, numbers };
  return [
    words,
    el("div", { class: "charts" },
      sized.some((line) => line.rows.some((row) => row.busbw > 0))
        ? pictureOf({
            ...shared, id: "collective-busbw", title: `${op}: bus bandwidth`, note, value: (row) => row.busbw,
            fit: (line) => (size, time) => (factorOf(line) * size) / time, text: (value) => si(value, "B/s"),
          })
        : null,
      sized.length > 0
        ? pictureOf({
            ...shared, id: "collective-time", title: `${op}: time of a call`, note, value: (row) => row.time.median,
            fit: () => (_, time) => time, text: seconds,
          })
        : changingChart({
            id: "collective-time", title: `${op}: time of a call`, table: numbers, legend: false,
            option: (colours) => ({
              xAxis: { type: "category", data: lines.map(({ name }) => name) },
              yAxis: { type: "value", min: 0, axisLabel: { formatter: seconds } },
              series: [{ type: "bar", name: op, barMaxWidth: 48, itemStyle: { color: colours.series[0] }, data: lines.map((line) => line.rows[0].time.median) }],
            }),
          })),
  ];
}

/** @param {{run: object, point: object}[]} micro points of micro-benchmarks */
export function collectivesSection(micro) {
  const ops = [...new Set(micro.flatMap(({ point }) => point.rows.filter(isCollective).map((row) => row.op)))];
  if (ops.length === 0) return null;
  return {
    id: "collectives",
    title: "Collectives",
    content: oneOf("operation", ops, (index) => content(micro, ops[index])),
  };
}
