// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the latency of inference against its throughput over batch sizes and meshes, and the latencies of replicas that
// serve requests at given rates.
import {
  columns, groupBy, joined, known, linesChart, meshText, oneOf, seconds, si, statusText, stepTip,
} from "../kit.js";

/** True if a row has enough samples for an interval. Other rows are on no frontier, and no line joins them. */
const hasInterval = (row) => known(row.tpot.lower);
const onFrontier = (row) => row.on_frontier && hasInterval(row);
const meshOf = ({ point }) => meshText(point.mesh, "one rank");

/** Returns the task of a row as a text. Only rows with the same text are compared, and each text has its own frontier. */
const question = ({ run, point, dtype, prompt, output }) => joined([run.file, point.model, dtype, `prompt ${prompt}`, `output ${output}`,
  point.options.vocabulary === "off" && "without vocabulary"]);

const numbers = columns({ mesh: meshOf }, "ranks=point.ranks, batch, TTFT=ttft.median, TPOT=tpot.median",
  { "95%": ({ tpot }) => (known(tpot.lower) ? `${seconds(tpot.lower)} to ${seconds(tpot.upper)}` : null) },
  "n=tpot.plays, tokens/s=tokens_per_second, tokens/s/rank=tokens_per_second_per_rank, cache:memory=cache_bytes",
  { frontier: (row) => (onFrontier(row) ? "*" : ""), status: statusText });

/** Describes a chart with a line for each mesh over batch sizes; frontier points are filled. */
function frontierChart(all) {
  const meshes = [...new Set(all.map(meshOf))];
  const measured = all.filter((row) => known(row.tpot.median) && known(row.tokens_per_second_per_rank)).sort((a, b) => a.batch - b.batch);
  if (measured.length < 2) return null;
  const lineOf = (mesh, i, passes, own) => ({
    name: mesh, i, symbol: "circle", symbolSize: 9, ...own,
    items: measured.filter((row) => meshOf(row) === mesh && passes(row)).map((row) =>
      ({ x: row.tpot.median, y: row.tokens_per_second_per_rank, row, symbol: onFrontier(row) ? "circle" : "emptyCircle" })),
  });
  return linesChart({
    id: "inference-frontier", title: "Throughput against time per output token",
    note: "a line for each mesh over its batch sizes; filled: on the frontier; not joined: too few samples for an interval",
    scales: ["linear", "log"], table: { columns: numbers, items: all }, zoom: false,
    x: ({ y }) => ({ type: y === "log" ? "log" : "value", name: "time per output token", format: seconds }),
    y: { format: (value) => si(value) },
    tip: ({ seriesName, value, data: { row } }) =>
      `${seriesName}, batch ${row.batch}\n${stepTip(row.tpot).replace("step ", "")} a token, ${si(value[1])} tokens/s a rank`,
    lines: (colours) => meshes.flatMap((mesh, i) => [
      lineOf(mesh, i, hasInterval, { stroke: { type: i >= colours.series.length ? "dashed" : "solid" } }),
      lineOf(mesh, i, (row) => !hasInterval(row), { type: "scatter" })]).filter(({ items }) => items.length > 0),
  });
}

const labelsOf = (all) => ({ mark: [...new Set(all.flatMap(({ point }) => point.labels))].join(", ") });

const blocksOf = (all) => [
  labelsOf(all),
  { saying: "TTFT: time to the first tokens of all samples of a batch. TPOT: time per output token, in the middle of the output. " +
      "On the frontier (*) is what no other batch size or mesh beats in both time per token and tokens per second and rank." },
  { charts: [frontierChart(all)] },
  { table: { columns: numbers, items: all, caption: "inference by mesh and batch size", most: 40 } },
];

const rowsOf = (micro, passes) => micro.flatMap(({ run, point }) => point.rows.filter(passes).map((row) => ({ ...row, run, point })));

export function inferenceBlocks({ micro }) {
  const questions = [...groupBy(rowsOf(micro, (row) => row.op === "infer"), question)];
  return [oneOf("question", questions.map(([text]) => text), (i) => blocksOf(questions[i][1]))];
}

const servingNumbers = columns({ launch: ({ run }) => run.id.slice(0, 8) }, "point=point.index, replicas, dispatch, arrivals",
  "offered/s=offered, achieved/s=achieved, requests, latency=latency.median, p99=latency.p99, max=latency.max, TTFT=ttft.median",
  "queueing=queueing.median, utilisation, imbalance, backlog",
  { saturated: (row) => (row.saturated ? "yes" : "no"), highest: (row) => (row.highest ? "*" : "") });

export function servingBlocks({ micro }) {
  const all = rowsOf(micro, (row) => row.op === "serve" && row.part === "rate");
  return all.length > 0 && [
    labelsOf(all),
    { saying: "Latency: arrival to last token. TTFT: arrival to first token. Queueing: arrival to the start of the request's batch. " +
        "Saturated: requests pile up, or are later than was asked for. The highest rate (*) of a search was sustained." },
    { table: { columns: servingNumbers, items: all, caption: "replicas under a stream of requests", most: 40 } }];
}
