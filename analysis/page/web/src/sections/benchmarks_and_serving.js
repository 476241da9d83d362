// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows what micro-benchmarks measured: collectives over size, with the calibration's fits; GEMM
// rates over their work, below ceiling and peak; memory bandwidth; how much communication is hidden
// behind computation; inference over batch sizes and meshes; and the latencies of serving replicas.
import {
  bandwidth, bytes, colourOf, columns, distinct, distinctOf, el, flops, groupBy, isUnsound, joined, known, labels, largestBy, legendOf, lined,
  linesChart, markLine, meshText, oneOf, ownOf, percent, pointTip, rankCount, seconds, si, statusText, timeTip,
} from "../reexports.js";

const others = new Set(["gemm", "memory", "p2p", "overlap", "infer", "serve"]);
const isCollective = (row) => row.members !== undefined && !others.has(row.op);
/** Returns words that describe a line of a chart. The line's name consists of its ranks and those
 * words in which the chart's lines differ. */
const wordsOf = ({ run, point, row }, runs) => ({
  members: known(row.members) ? `${row.members} ranks` : `${point.ranks} ranks`,
  of: row.members !== point.ranks ? `of ${point.ranks}` : null,
  axis: row.axis && row.axis !== "world" ? `on ${row.axis}` : null,
  groups: row.groups === "one" ? "one group alone" : null, implementation: row.implementation,
  algorithm: row.algorithm, protocol: row.protocol,
  registration: row.registration ? `registration ${row.registration}` : null,
  dtype: row.dtype, place: row.in_place ? "in place" : "out of place",
  root: row.root >= 0 ? `root ${row.root}` : null,
  run: runs > 1 ? run.id : null,
});

/** Returns the lines of the chart of one op: [{name, rows, point, run}]. */
function linesOf(micro, op) {
  const runs = new Set(micro.map(({ run }) => run)).size;
  const all = micro.flatMap(({ run, point }) => point.rows.filter((row) => row.op === op && isCollective(row)).map((row) => ({ run, point, row })))
    .map((at) => ({ ...at, words: wordsOf(at, runs) }));
  const lines = [...groupBy(all, ({ words, point }) => JSON.stringify([words, point.index])).values()];
  const differs = (word) => new Set(lines.map(([{ words }]) => words[word])).size > 1;
  const named = Object.keys(all[0].words).filter((word) => word === "members" || differs(word));
  const names = distinct(lines.map(([{ words }]) => joined(named.map((word) => words[word]))));
  return lines.map((line, i) => ({
    name: names[i], point: line[0].point, run: line[0].run, rows: line.map(({ row }) => row).sort((a, b) => a.bytes - b.bytes),
  }));
}

/** Returns the ratio busbw / algbw, which is the same for all sizes; null if no row has both. */
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

// Earlier lines are wider and later ones are dashed, so that lines that coincide stay visible.
const dashes = ["solid", [9, 4], [9, 3, 2, 3]];

function measured(line, i, lines, value, colours) {
  const wider = Math.min(2, lines - 1 - i);
  return {
    name: line.name, symbolSize: 6 + 3 * wider, stroke: { type: dashes[i % dashes.length], width: 1.5 + wider },
    items: line.rows.filter((row) => row.bytes > 0 && value(row) > 0).map((row) => ({
      x: row.bytes, y: value(row), isHollow: isUnsound(line.point), row, point: line.point,
      ...(row.wrong > 0 ? { itemStyle: { color: colours.bad }, symbol: "pin", symbolSize: 16 } : {}),
    })),
  };
}

function fitted(line, op, i, value, colours) {
  const fit = fitOf(line, op);
  if (!fit || fit.samples.length < 2) return [];
  return [{
    name: "calibration's fit", i, symbol: "none", silent: true, z: 1, itemStyle: { color: colours.ideal },
    stroke: { type: "dotted", width: 1, opacity: 0.9 },
    items: fit.samples.filter((at) => at.bytes > 0 && at.fitted > 0).map((at) => [at.bytes, value(at.bytes, at.fitted)]),
  }];
}

/** Makes an axis of sizes that begins and ends at the smallest and the largest size. */
const sizeAxis = (name) =>
  ({ type: "log", logBase: 2, min: ({ min }) => min, max: ({ max }) => max, name, minorTick: { show: false }, format: bytes });

const lineChart = ({ lines, op, value, fit, text, ...spec }) => linesChart({
  ...spec, scales: ["log", "linear"],
  x: sizeAxis("message size"),
  y: ({ y }) => ({ min: y === "log" ? undefined : 0, format: text }),
  tip: ({ seriesName, value: [x, y], data: { row, point } }) => lined(
    seriesName, `${bytes(x)}: ${text(y)}`, row && timeTip("time", row.time), row?.wrong > 0 && `${row.wrong} WRONG elements`, point && pointTip(point)),
  lines: (colours) => [
    ...lines.map((line, i) => measured(line, i, lines.length, value, colours)),
    ...lines.flatMap((line, i) => fitted(line, op, i, fit(line), colours))],
});

/** Describes a bar chart for an op whose rows have no sizes, such as a barrier. */
const barChart = (lines, op, spec) => ({
  ...spec, legend: false,
  option: (colours) => ({
    xAxis: { type: "category", data: lines.map(({ name }) => name), nameGap: 0 },
    yAxis: { min: 0, format: seconds },
    tip: ({ name, dataIndex: i }) => lined(name, timeTip("time", lines[i].rows[0].time), pointTip(lines[i].point)),
    series: [{ type: "bar", name: op, barMaxWidth: 48, itemStyle: { color: colours.series[0] }, data: lines.map((line) => line.rows[0].time.median) }],
  }),
});

const numbers = columns("row", "line=line.name, bytes, time~, p99=time.p99, algbw, busbw, wrong, class",
  { labels: ({ line }) => line.point.labels.join(" "), status: statusText });

/** Returns a sentence for each line that names its highest bandwidth and its shortest call. */
const bestTexts = (lines) => lines.map((line) => {
  const best = largestBy(line.rows.filter((row) => row.busbw > 0), (row) => row.busbw);
  const least = Math.min(...line.rows.map((row) => row.time.median).filter(known));
  return best && least < Infinity && `${line.name}: at most ${bandwidth(best.busbw)} busbw at ${bytes(best.bytes)}, shortest call ${seconds(least)}`;
}).filter(Boolean);

function blocksOf(micro, op) {
  const lines = linesOf(micro, op);
  const sized = lines.filter((line) => line.rows.some((row) => row.bytes > 0 && row.time.median > 0));
  const items = lines.flatMap((line) => line.rows.map((row) => ({ line, ...row })));
  const wrong = items.filter((row) => row.wrong > 0).length;
  const table = { columns: numbers, items };
  const shared = {
    lines: sized, op, table, note: `${sized.some((line) => fitOf(line, op)) ? "dotted: the calibration's fit; " : ""}hollow: labelled, no scaling result`,
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
        : barChart(lines, op, { ...callTime, table })] }];
}

export function collectivesBlocks({ micro }) {
  const ops = distinctOf(rowsOf(micro, isCollective).map(({ op }) => op));
  return [oneOf("operation", ops, (index) => blocksOf(micro, ops[index]))];
}

const shapeOf = (row) => `${row.m} x ${row.n} x ${row.k}${row.batch > 1 ? `, batch ${row.batch}` : ""}`;
const isGemm = (row) => row.op === "gemm" && row.flop > 0;
const peak = "datasheet peak";

function gemmLines(micro, dtype) {
  const runs = new Set(micro.map(({ run }) => run)).size;
  return micro.flatMap(({ run, point }) => [...groupBy(point.rows.filter((row) => isGemm(row) && row.dtype === dtype), (row) => row.cache)]
    .map(([cache, rows]) => ({
      name: joined([rankCount(point.ranks), cache && `${cache} cache`, runs > 1 && run.id]),
      rows: rows.sort((a, b) => a.flop - b.flop), point, cache, run,
    })));
}

/** Returns [[name, FLOP/s], ...]: measured ceilings by state of caches, and the datasheet peak. */
function limitsOf(lines, dtype) {
  const found = new Map();
  for (const { run, cache, rows } of lines) {
    const ceiling = run.calibration?.ceilings?.find((at) => at.dtype === dtype && at.cache === cache);
    if (ceiling?.flops > 0) found.set(`ceiling measured, ${cache ?? "all"}`, ceiling.flops);
    const row = rows.find((at) => at.of_peak > 0 && at.flops > 0);
    if (row) found.set(peak, row.flops / row.of_peak);
  }
  return [...found];
}

const gemmNumbers = columns("row", "line, m, n, k, batch, time, flops, of_ceiling, of_peak", labels);

function gemmTip({ seriesName, name, data: { row, point } }) {
  if (!row) return name;
  const of = (value, what) => (known(value) ? `, ${percent(value)} of the ${what}` : "");
  return lined(seriesName, `${shapeOf(row)}: ${flops(row.flops)}${of(row.of_ceiling, "ceiling")}${of(row.of_peak, "peak")}`,
    timeTip("time", row.time), pointTip(point));
}

function rateChart(lines, dtype) {
  const bounds = limitsOf(lines, dtype);
  const limits = (colours) => markLine(bounds.map(([name, yAxis]) => ({
    yAxis, label: { show: true, formatter: name, position: name === peak ? "insideStartTop" : "insideStartBottom", color: colours.faint },
  })), { lineStyle: { color: colours.ideal, type: "dashed" } });
  return linesChart({
    id: "gemm-rate", title: `Matrix multiplication, ${dtype}: rate per rank`,
    note: `dashed: ${bounds.length > 0 ? bounds.map(([name, value]) => `${name} ${flops(value)}`).join("; ") : "no ceiling is known"}` +
      `${bounds.some(([name]) => name === peak) ? "" : "; the device's datasheet peak is not known"}. Hollow: labelled, no scaling result.`,
    scales: ["linear", "log"],
    table: { columns: gemmNumbers, items: lines.flatMap(({ name, point, rows }) => rows.map((row) => ({ line: name, labels: point.labels, ...row }))) },
    x: {
      type: "log", min: ({ min }) => min / 1.5, max: ({ max }) => max * 1.5, name: "work of one call",
      format: (value) => si(value, "FLOP"), axisLabel: { showMinLabel: false, showMaxLabel: false },
    },
    y: ({ y }) => ({
      ...(y === "log" ? {} : { min: 0, max: ({ max }) => Math.max(max, ...bounds.map(([, value]) => value)) * 1.05 }),
      format: flops, axisLabel: { showMaxLabel: false },
    }),
    tip: gemmTip,
    lines: (colours) => lines.map(({ name, rows, point }, i) => ({
      name,
      // The points are joined by a line only if all their shapes are square.
      type: rows.every(({ m, n, k }) => m === n && n === k) ? "line" : "scatter",
      items: rows.filter((row) => row.flops > 0).map((row) =>
        ({ x: row.flop, y: row.flops, isHollow: isUnsound(point), row, point })),
      ...(i === 0 && bounds.length > 0 ? { markLine: limits(colours) } : {}),
    })),
  });
}

export function gemmBlocks({ micro }) {
  const dtypes = [...new Set(micro.flatMap(({ point }) => point.rows.filter(isGemm).map((row) => row.dtype)))];
  return [oneOf("precision", dtypes.map(String), (index) => [{ charts: [rateChart(gemmLines(micro, dtypes[index]), dtypes[index])] }])];
}

/** Returns a function that names the kind of a row, with its NUMA node if there are several. */
function kindNames(rows) {
  const isSplit = new Set(rows.map((row) => row.numa)).size > 1;
  return (row, ...more) => joined([row.kind, ...more, known(row.numa) && isSplit && `NUMA node ${row.numa}`]);
}

/** Describes bars of the bandwidth of one rank and of all at once, at each kind's largest size. */
function memoryBars(rows, table) {
  const kindOf = kindNames(rows);
  const measured = rows.filter((row) => known(row.bandwidth));
  const kinds = [...groupBy(measured, kindOf).keys()].reverse();
  const together = [...new Set(measured.map((row) => row.together))];
  const nameOf = (value) => ownOf({ one: "one rank alone", all: "all ranks at once" }, value) ?? value ?? "bandwidth";
  const largest = (kind, way) => largestBy(measured.filter((row) => kindOf(row) === kind && row.together === way), (row) => row.bytes ?? 0);
  return {
    id: "memory-bandwidth", title: "Memory bandwidth of a rank",
    note: "at the largest size of each kind",
    height: 70 + kinds.length * (14 + 18 * together.length),
    table,
    option: (colours) => ({
      grid: { right: 64 }, xAxis: { min: 0, format: bandwidth },
      yAxis: { type: "category", data: kinds, axisLabel: { width: 150, overflow: "truncate" } },
      tip: ({ seriesName, name, data: { row } }) => lined(`${name}, ${seriesName}`,
        row && `${bandwidth(row.bandwidth)} at ${bytes(row.bytes)}${known(row.of_peak) ? `, ${percent(row.of_peak)} of the datasheet's peak` : ""}`,
        row && timeTip("time", row.time)),
      series: together.map((way, i) => ({
        type: "bar", name: nameOf(way), barMaxWidth: 16, itemStyle: { color: colourOf(colours, i) },
        label: { show: true, position: "right", color: colours.faint, fontSize: 11, formatter: ({ value }) => (known(value) ? bandwidth(value) : "") },
        data: kinds.map((kind) => largest(kind, way)).map((row) => ({ value: row?.bandwidth ?? null, row })),
      })),
    }),
  };
}

function sizesChart(rows, table) {
  const kindOf = kindNames(rows);
  const nameOf = (row) => kindOf(row, row.together === "all" && "all at once");
  const measured = groupBy(rows.filter((row) => row.bytes > 0 && row.bandwidth > 0).sort((a, b) => a.bytes - b.bytes), nameOf);
  const names = [...groupBy(rows, nameOf).keys()];
  if (![...measured.values()].some((own) => own.length > 1)) return null;
  return linesChart({
    id: "memory-sizes", title: "Memory bandwidth against size", scales: ["log", "linear"], table,
    x: sizeAxis("size"),
    y: { format: bandwidth },
    tip: ({ seriesName, value, data: { row } }) => lined(seriesName, `${bytes(value[0])}: ${bandwidth(value[1])}`, timeTip("time", row.time)),
    lines: (colours) => names.map((name, i) => ({
      name, symbolSize: 6, stroke: { type: i >= colours.series.length ? "dashed" : "solid" },
      items: (measured.get(name) ?? []).map((row) => ({ x: row.bytes, y: row.bandwidth, row })),
    })),
  });
}

const memoryNumbers = columns("row", "kind, bytes, together, numa, bandwidth, time, of_peak", { status: statusText });
const overlapNumbers = columns("overlap", "collective, bytes, m, n, k, dtype, gemm_alone, collective_alone, together, hidden, hidden_lower, hidden_upper",
  "gemm_slowdown, collective_slowdown",
  { status: (row) => (row.status === "ok" ? row.why_unknown ?? "ok" : statusText(row)) });

function ofOverlap(rows) {
  const best = Math.max(...rows.filter((row) => row.hidden_known).map((row) => row.hidden));
  return [
    { saying: "hidden: (alone + alone - together) / the shorter of the two; below 0, both at once took longer than one after the other. " +
        `from, to: its 95% interval.${best > -Infinity ? ` At best ${percent(best, 0)} is hidden.` : ""}` },
    { table: { columns: overlapNumbers, items: rows, caption: "overlap of multiplications and collectives", most: 40 } }];
}

/** Makes a section with a choice of points that have rows of `op`; show(rows) makes its blocks. */
const ofPoints = (op, show) => ({ micro }) => {
  const all = micro.map(({ point }) => ({ point, rows: point.rows.filter((row) => row.op === op) })).filter(({ rows }) => rows.length > 0);
  const names = all.map(({ point }) => `${rankCount(point.ranks)}, point ${point.index}`);
  return [oneOf("point", names, (i) => [{ mark: all[i].point.labels.join(", ") }, ...show(all[i].rows)])];
};
export const memoryBlocks = ofPoints("memory", (rows) => {
  const table = { columns: memoryNumbers, items: rows };
  return [{ charts: [memoryBars(rows, table), sizesChart(rows, table)] }];
});
export const overlapBlocks = ofPoints("overlap", ofOverlap);
/** True if a row has enough samples for an interval; others are on no frontier and on no line. */
const hasInterval = (row) => known(row.tpot.lower);
const onFrontier = (row) => row.on_frontier && hasInterval(row);
const meshOf = ({ point }) => meshText(point.mesh, "one rank");

/** Returns the task of a row as text. Rows are compared within a task, which has one frontier. */
const question = ({ run, point, dtype, prompt, output }) => joined([run.file, point.model, dtype, `prompt ${prompt}`, `output ${output}`,
  point.options.vocabulary === "off" && "without vocabulary"]);

const inferenceNumbers = columns("inference", { mesh: meshOf }, "ranks=point.ranks, batch, ttft, tpot",
  { "95%": ({ tpot }) => (known(tpot.lower) ? `${seconds(tpot.lower)} to ${seconds(tpot.upper)}` : null) },
  "n:count=tpot.plays, tokens_per_second, tokens_per_second_per_rank, cache_bytes",
  { frontier: (row) => (onFrontier(row) ? "*" : ""), status: statusText });

/** Describes a line for each mesh over batch sizes; points on the Pareto frontier are filled. */
function frontierChart(all) {
  const meshes = [...new Set(all.map(meshOf))];
  const measured = all.filter((row) => known(row.tpot.median) && known(row.tokens_per_second_per_rank)).sort((a, b) => a.batch - b.batch);
  if (measured.length < 2) return null;
  const lineOfMesh = (mesh, i, passes, own) => ({
    name: mesh, i, symbol: "circle", symbolSize: 9, ...own,
    items: measured.filter((row) => meshOf(row) === mesh && passes(row)).map((row) =>
      ({ x: row.tpot.median, y: row.tokens_per_second_per_rank, row, symbol: onFrontier(row) ? "circle" : "emptyCircle" })),
  });
  return linesChart({
    id: "inference-frontier", title: "Throughput against time per output token",
    note: "a line for each mesh over its batch sizes; filled: on the frontier; not joined: too few samples for an interval",
    scales: ["linear", "log"], table: { columns: inferenceNumbers, items: all }, zoom: false,
    x: ({ y }) => ({ type: y === "log" ? "log" : "value", name: "time per output token", format: seconds }),
    y: { format: (value) => si(value) },
    tip: ({ seriesName, value, data: { row } }) =>
      `${seriesName}, batch ${row.batch}\n${timeTip("TPOT", row.tpot)}, ${si(value[1])} tokens/s a rank`,
    lines: (colours) => meshes.flatMap((mesh, i) => [
      lineOfMesh(mesh, i, hasInterval, { stroke: { type: i >= colours.series.length ? "dashed" : "solid" } }),
      lineOfMesh(mesh, i, (row) => !hasInterval(row), { type: "scatter" })]).filter(({ items }) => items.length > 0),
  });
}

const labelsOf = (all) => ({ mark: [...new Set(all.flatMap(({ point }) => point.labels))].join(", ") });

const inferenceOf = (all) => [
  labelsOf(all),
  { saying: `${legendOf("inference", "ttft", "tpot")} ` +
      "On the frontier (*) is what no other batch size or mesh beats in both time per token and tokens per second and rank." },
  { charts: [frontierChart(all)] },
  { table: { columns: inferenceNumbers, items: all, caption: "inference by mesh and batch size", most: 40 } },
];

const rowsOf = (micro, passes) => micro.flatMap(({ run, point }) => point.rows.filter(passes).map((row) => ({ ...row, run, point })));

export function inferenceBlocks({ micro }) {
  const questions = [...groupBy(rowsOf(micro, (row) => row.op === "infer"), question)];
  return [oneOf("question", questions.map(([text]) => text), (i) => inferenceOf(questions[i][1]))];
}

const servingNumbers = columns("row", { launch: ({ run }) => run.id.slice(0, 8) }, "point:count=point.index, replicas:count, dispatch, arrivals",
  "offered, achieved, requests, latency_median_seconds=latency.median, latency_p99_seconds=latency.p99, latency_max_seconds=latency.max",
  "ttft_median_seconds=ttft.median, queueing_median_seconds=queueing.median, utilisation, imbalance, backlog",
  { saturated: (row) => (row.saturated ? "yes" : "no"), highest: (row) => (row.highest ? "*" : "") });

export function servingBlocks({ micro }) {
  const all = rowsOf(micro, (row) => row.op === "serve" && row.part === "rate");
  return all.length > 0 && [
    labelsOf(all),
    { saying: `${legendOf("row", "latency_median_seconds", "ttft_median_seconds", "queueing_median_seconds", "saturated")} ` +
        "The highest rate (*) of a search was sustained." },
    { table: { columns: servingNumbers, items: all, caption: "replicas under a stream of requests", most: 40 } }];
}
