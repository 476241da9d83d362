// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Inference: latency against throughput over batch sizes and meshes, and replicas that serve
// requests at a rate.
import { el } from "../dom.js";
import { fixed, memory, percent, seconds, si } from "../format.js";
import { changingChart, oneOf } from "../select.js";
import { table } from "../table.js";

const isInference = (row) => row.op === "infer";
const known = (value) => typeof value === "number";
/**
 * True if a row has enough samples for an interval. Other rows are on no frontier, and no line
 * joins them.
 */
const hasInterval = (row) => known(row.tpot.lower);
const onFrontier = (row) => row.on_frontier && hasInterval(row);

/** Returns "tp=2, dp=2", without axes of one rank. */
function meshText(mesh) {
  const axes = Object.entries(mesh).filter(([, extent]) => extent > 1);
  return axes.length === 0 ? "one rank" : axes.map(([axis, extent]) => `${axis}=${extent}`).join(", ");
}

/**
 * Returns what rows must have in common to be compared, as a text; each text has its own frontier.
 */
const question = ({ run, point, row }) =>
  [run.file, point.model, row.dtype, `prompt ${row.prompt}`, `output ${row.output}`, point.options.vocabulary === "off" ? "without vocabulary" : null].filter((part) => part !== null).join(", ");

function numbersOf(all) {
  return {
    columns: [
      { title: "mesh" }, { title: "ranks", number: true }, { title: "batch", number: true },
      { title: "TTFT", csv: "TTFT / s", number: true, text: seconds }, { title: "TPOT", csv: "TPOT / s", number: true, text: seconds }, { title: "95%" }, { title: "n", number: true },
      { title: "tokens/s", number: true, text: (value) => si(value) }, { title: "tokens/s/rank", number: true, text: (value) => si(value) },
      { title: "cache", csv: "cache / B", number: true, text: memory }, { title: "frontier" }, { title: "status" },
    ],
    rows: all.map(({ point, row }) => [
      meshText(point.mesh), point.ranks, row.batch, row.ttft.median, row.tpot.median, known(row.tpot.lower) ? `${seconds(row.tpot.lower)} to ${seconds(row.tpot.upper)}` : null, row.tpot.plays, row.tokens_per_second, row.tokens_per_second_per_rank,
      row.cache_bytes, onFrontier(row) ? "*" : "", row.status === "ok" ? "ok" : `${row.status}: ${row.reason ?? ""}`]),
  };
}

/** Draws a line for each mesh over its batch sizes; rows on the frontier are filled. */
function frontierChart(all) {
  const meshes = [...new Set(all.map(({ point }) => meshText(point.mesh)))];
  const measured = all.filter(({ row }) => known(row.tpot.median) && known(row.tokens_per_second_per_rank));
  if (measured.length < 2) return null;
  return changingChart({
    id: "inference-frontier",
    title: "Throughput against time per output token",
    note: "a line for each mesh over its batch sizes; filled: on the frontier; not joined: too few samples for an interval",
    switches: [{ name: "y", label: "values", choices: ["linear", "log"] }],
    table: numbersOf(all),
    option: (colours, state) => ({
      grid: { bottom: 26 },
      xAxis: { type: state.y === "log" ? "log" : "value", name: "time per output token", nameLocation: "middle", nameGap: 26, axisLabel: { formatter: seconds } },
      yAxis: { type: state.y === "log" ? "log" : "value", axisLabel: { formatter: (value) => si(value) } },
      tooltip: { formatter: ({ seriesName, value, data: item }) => `${seriesName}, batch ${item.batch}\n${seconds(value[0])} a token, ${si(value[1])} tokens/s a rank` },
      series: meshes.flatMap((mesh, i) => {
        const rows = measured.filter(({ point }) => meshText(point.mesh) === mesh).map(({ row }) => row).sort((a, b) => a.batch - b.batch);
        const drawn = (passes) => rows.filter(passes).map((row) => ({
          value: [row.tpot.median, row.tokens_per_second_per_rank], batch: row.batch, symbol: onFrontier(row) ? "circle" : "emptyCircle",
        }));
        const common = { name: mesh, symbolSize: 9, itemStyle: { color: colours.series[i % colours.series.length] } };
        return [
          { ...common, type: "line", lineStyle: { type: i >= colours.series.length ? "dashed" : "solid" }, data: drawn(hasInterval) },
          { ...common, type: "scatter", data: drawn((row) => !hasInterval(row)) },
        ].filter(({ data }) => data.length > 0);
      }),
    }),
  });
}

function content(all) {
  const labels = [...new Set(all.flatMap(({ point }) => point.labels))];
  const numbers = numbersOf(all);
  return [
    labels.length > 0 ? el("p", { class: "mark" }, labels.join(", ")) : null,
    el("p", { class: "saying" }, "TTFT: time to the first tokens of all samples of a batch. TPOT: time per output token, in the middle of the output. " +
      "On the frontier (*) is what no other batch size or mesh beats in both time per token and tokens per second and rank."),
    el("div", { class: "charts" }, frontierChart(all)),
    table(numbers.columns, numbers.rows, { caption: "inference by mesh and batch size", most: 40 }),
  ];
}

/** @param {{run: object, point: object}[]} micro */
export function inferenceSection(micro) {
  const all = micro.flatMap(({ run, point }) => point.rows.filter(isInference).map((row) => ({ run, point, row })));
  if (all.length === 0) return null;
  const questions = [...new Set(all.map(question))];
  return { id: "inference", title: "Inference", content: oneOf("question", questions, (index) => content(all.filter((one) => question(one) === questions[index]))) };
}

const isRate = (row) => row.op === "serve" && row.part === "rate";
const time = (title) => ({ title, csv: `${title} / s`, number: true, text: seconds });
const rate = (title) => ({ title, number: true, text: (value) => si(value) });

const columns = [
  { title: "launch" }, { title: "point", number: true }, { title: "replicas", number: true }, { title: "dispatch" }, { title: "arrivals" },
  rate("offered/s"), rate("achieved/s"), { title: "requests", number: true }, time("latency"), time("p99"), time("max"), time("TTFT"), time("queueing"),
  { title: "utilisation", number: true, text: (value) => percent(value, 0) }, { title: "imbalance", number: true, text: (value) => fixed(value) },
  { title: "backlog", number: true }, { title: "saturated" }, { title: "highest" },
];

function cells({ run, point, row }) {
  return [
    run.id.slice(0, 8), point.index, row.replicas, row.dispatch, row.arrivals, row.offered, row.achieved, row.requests, row.latency.median, row.latency.p99,
    row.latency.max, row.ttft.median, row.queueing.median, row.utilisation, row.imbalance, row.backlog, row.saturated ? "yes" : "no", row.highest ? "*" : "",
  ];
}

/** @param {{run: object, point: object}[]} micro */
export function servingSection(micro) {
  const all = micro.flatMap(({ run, point }) => point.rows.filter(isRate).map((row) => ({ run, point, row })));
  if (all.length === 0) return null;
  const labels = [...new Set(all.flatMap(({ point }) => point.labels))];
  return {
    id: "serving",
    title: "Serving",
    content: el("div", {},
      labels.length > 0 ? el("p", { class: "mark" }, labels.join(", ")) : null,
      el("p", { class: "saying" }, "Latency: arrival to last token. TTFT: arrival to first token. Queueing: arrival to the start of the request's batch. " +
        "Saturated: requests pile up, or are later than was asked for. The highest rate (*) of a search was sustained."),
      table(columns, all.map(cells), { caption: "replicas under a stream of requests", most: 40 })),
  };
}
