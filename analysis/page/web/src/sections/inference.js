// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the latency of inference against its throughput over batch sizes and meshes, and the
// latencies of replicas that serve requests at given rates.
import { joined, known, meshText, seconds, si, statusText } from "../format.js";
import { lineOf, stepTip } from "../marks.js";
import { oneOf } from "../select.js";
import { count, decimal, memorySize, rate, share, time, words } from "../table.js";

/**
 * True if a row has enough samples for an interval. Other rows are on no frontier, and no line
 * joins them.
 */
const hasInterval = (row) => known(row.tpot.lower);
const onFrontier = (row) => row.on_frontier && hasInterval(row);
const meshOf = ({ point }) => meshText(point.mesh, "one rank");

/**
 * Returns the task of a row as a text. Only rows with the same text are compared, and each text has
 * its own frontier.
 */
const question = ({ run, point, row }) => joined([run.file, point.model, row.dtype, `prompt ${row.prompt}`, `output ${row.output}`,
  point.options.vocabulary === "off" && "without vocabulary"]);

const columns = [
  words("mesh", meshOf), count("ranks", ({ point }) => point.ranks), count("batch", ({ row }) => row.batch),
  time("TTFT", ({ row }) => row.ttft.median), time("TPOT", ({ row }) => row.tpot.median),
  words("95%", ({ row: { tpot } }) => (known(tpot.lower) ? `${seconds(tpot.lower)} to ${seconds(tpot.upper)}` : null)),
  count("n", ({ row }) => row.tpot.plays),
  rate("tokens/s", ({ row }) => row.tokens_per_second), rate("tokens/s/rank", ({ row }) => row.tokens_per_second_per_rank),
  memorySize("cache", ({ row }) => row.cache_bytes), words("frontier", ({ row }) => (onFrontier(row) ? "*" : "")),
  words("status", ({ row }) => statusText(row)),
];

/** Describes a chart with a line for each mesh over batch sizes; frontier points are filled. */
function frontierChart(all) {
  const meshes = [...new Set(all.map(meshOf))];
  const measured = all.filter(({ row }) => known(row.tpot.median) && known(row.tokens_per_second_per_rank))
    .sort((a, b) => a.row.batch - b.row.batch);
  if (measured.length < 2) return null;
  return {
    id: "inference-frontier",
    title: "Throughput against time per output token",
    note: "a line for each mesh over its batch sizes; filled: on the frontier; not joined: too few samples for an interval",
    switches: [{ name: "y", label: "values", choices: ["linear", "log"] }],
    table: { columns, items: all },
    option: (colours, state) => {
      const type = state.y === "log" ? "log" : "value";
      return {
        xAxis: { type, name: "time per output token", format: seconds },
        yAxis: { type, format: (value) => si(value) },
        tip: ({ seriesName, value, data: { row } }) =>
          `${seriesName}, batch ${row.batch}\n${stepTip(row.tpot).replace("step ", "")} a token, ${si(value[1])} tokens/s a rank`,
        series: meshes.flatMap((mesh, i) => {
          const line = (own, passes) => {
            const rows = measured.filter((at) => meshOf(at) === mesh && passes(at.row)).map(({ row }) => ({
              x: row.tpot.median, y: row.tokens_per_second_per_rank, row, symbol: onFrontier(row) ? "circle" : "emptyCircle",
            }));
            return rows.length === 0 ? [] : [lineOf(mesh, i, colours, rows, { symbol: "circle", symbolSize: 9, ...own })];
          };
          const stroke = { type: i >= colours.series.length ? "dashed" : "solid" };
          return [...line({ stroke }, hasInterval), ...line({ type: "scatter" }, (row) => !hasInterval(row))];
        }),
      };
    },
  };
}

const labelsOf = (all) => [...new Set(all.flatMap(({ point }) => point.labels))].join(", ");

const blocksOf = (all) => [
  { mark: labelsOf(all) },
  { saying: "TTFT: time to the first tokens of all samples of a batch. TPOT: time per output token, in the middle of the output. " +
      "On the frontier (*) is what no other batch size or mesh beats in both time per token and tokens per second and rank." },
  { charts: [frontierChart(all)] },
  { table: { columns, items: all, caption: "inference by mesh and batch size", most: 40 } },
];

const rowsOf = (micro, passes) => micro.flatMap(({ run, point }) => point.rows.filter(passes).map((row) => ({ run, point, row })));

/** @param {{run: object, point: object}[]} micro */
export function inferenceSection(micro) {
  const all = rowsOf(micro, (row) => row.op === "infer");
  if (all.length === 0) return null;
  const questions = [...new Set(all.map(question))];
  const show = (index) => blocksOf(all.filter((one) => question(one) === questions[index]));
  return { id: "inference", title: "Inference", blocks: [oneOf("question", questions, show)] };
}

const servingColumns = [
  words("launch", ({ run }) => run.id.slice(0, 8)), count("point", ({ point }) => point.index), count("replicas", ({ row }) => row.replicas),
  words("dispatch", ({ row }) => row.dispatch), words("arrivals", ({ row }) => row.arrivals),
  rate("offered/s", ({ row }) => row.offered), rate("achieved/s", ({ row }) => row.achieved), count("requests", ({ row }) => row.requests),
  time("latency", ({ row }) => row.latency.median), time("p99", ({ row }) => row.latency.p99), time("max", ({ row }) => row.latency.max),
  time("TTFT", ({ row }) => row.ttft.median), time("queueing", ({ row }) => row.queueing.median),
  share("utilisation", ({ row }) => row.utilisation, 0), decimal("imbalance", ({ row }) => row.imbalance),
  count("backlog", ({ row }) => row.backlog), words("saturated", ({ row }) => (row.saturated ? "yes" : "no")),
  words("highest", ({ row }) => (row.highest ? "*" : "")),
];

/** @param {{run: object, point: object}[]} micro */
export function servingSection(micro) {
  const all = rowsOf(micro, (row) => row.op === "serve" && row.part === "rate");
  if (all.length === 0) return null;
  return {
    id: "serving",
    title: "Serving",
    blocks: [
      { mark: labelsOf(all) },
      { saying: "Latency: arrival to last token. TTFT: arrival to first token. Queueing: arrival to the start of the request's batch. " +
          "Saturated: requests pile up, or are later than was asked for. The highest rate (*) of a search was sustained." },
      { table: { columns: servingColumns, items: all, caption: "replicas under a stream of requests", most: 40 } }],
  };
}
