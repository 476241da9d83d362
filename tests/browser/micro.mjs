// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What the charts of micro-benchmarks must show: the rows of the JSON report.
import assert from "node:assert/strict";
import { known, median, near, pairs, samePairs, valueOf } from "./expected.mjs";

const others = ["gemm", "memory", "p2p", "overlap", "infer"];

/** Rows of all points that pass, each with its point. */
function rowsOf(report, passes) {
  return report.runs.flatMap((run) => run.points.flatMap((point) =>
    point.rows.filter(passes).map((row) => ({ ...row, run, point }))));
}

const inOrder = (items) => [...items].sort((a, b) => a[0] - b[0] || a[1] - b[1]);

/** The same pairs, whatever line they are on. */
function sameSet(actual, wanted, what) {
  samePairs(inOrder(actual), inOrder(wanted), what);
}

/** busbw over algbw of nccl-tests. */
function busFactor(op, members) {
  if (op === "all_reduce") return (2 * (members - 1)) / members;
  if (["broadcast", "reduce", "sendrecv"].includes(op)) return 1;
  return (members - 1) / members;
}

function collective({ series, title }, { report }, value, ofFit) {
  const op = title.split(":")[0];
  const rows = rowsOf(report, (row) => row.op === op && row.members !== undefined && !others.includes(row.op));
  assert.ok(rows.length > 0, `no rows of ${op}`);
  const bars = series.filter(({ type }) => type === "bar");
  if (bars.length > 0) {
    assert.ok(rows.every((row) => !(row.bytes > 0)), `${op} has sizes`);
    const times = rows.map((row) => row.time.median);
    for (const at of pairs(bars[0].data)) assert.ok(at === null || times.includes(at), `${op}: ${at}`);
    return;
  }
  const drawn = series.filter(({ name }) => name !== "calibration's fit");
  sameSet(drawn.flatMap(({ data }) => pairs(data)),
    rows.filter((row) => row.bytes > 0 && value(row) > 0).map((row) => [row.bytes, value(row)]), op);
  for (const line of drawn) {
    const sizes = pairs(line.data).map(([size]) => size);
    assert.deepEqual(sizes, [...sizes].sort((a, b) => a - b), `${op}: order of ${line.name}`);
    line.data.forEach((item) => assert.equal(Boolean(item.row.wrong > 0), item.symbol === "pin", `${op}: wrong results are marked`));
  }
  const curves = report.runs.flatMap((run) => run.calibration?.curves ?? []).filter((curve) => curve.op === op);
  for (const fit of series.filter(({ name }) => name === "calibration's fit")) {
    const found = curves.find((curve) => {
      try {
        samePairs(pairs(fit.data), curve.samples.filter(({ bytes, fitted }) => bytes > 0 && fitted > 0)
          .map((sample) => [sample.bytes, ofFit(op, curve, sample)]), "fit");
        return true;
      } catch {
        return false;
      }
    });
    assert.ok(found, `${op}: a fit that is none of the calibration's`);
  }
}

export function collectiveBusbw(option, from) {
  collective(option, from, (row) => row.busbw, (op, { members }, { bytes, fitted }) => (busFactor(op, members) * bytes) / fitted);
}

export function collectiveTime(option, from) {
  collective(option, from, (row) => row.time.median, (op, curve, { fitted }) => fitted);
}

export function gemmRate({ series, title, marks }, { report }) {
  const dtype = title.match(/multiplication, (.*): rate/)[1];
  const rows = rowsOf(report, (row) => row.op === "gemm" && String(row.dtype) === dtype && row.flop > 0);
  sameSet(series.flatMap(({ data }) => pairs(data)),
    rows.filter((row) => row.flops > 0).map((row) => [row.flop, row.flops]), `gemm ${dtype}`);
  for (const { yAxis } of marks) {
    const ceilings = report.runs.flatMap((run) => run.calibration?.ceilings ?? []).map(({ flops }) => flops);
    const peaks = rows.filter((row) => row.of_peak > 0).map((row) => row.flops / row.of_peak);
    assert.ok([...ceilings, ...peaks].some((at) => Math.abs(at / yAxis - 1) < 1e-6), `a limit of ${yAxis}`);
  }
}

/** The point that a list above the chart names: "4 ranks, point 6"; the first one without a list. */
function pointOf({ chosen }, report, op) {
  const points = report.runs.flatMap((run) => run.points).filter((point) => point.rows.some((row) => row.op === op));
  const index = chosen.map((text) => text.match(/point (\d+)$/)?.[1]).find(Boolean);
  return index === undefined ? points[0] : points.find((point) => point.index === Number(index));
}

export function memoryBandwidth(option, { report }) {
  const rows = pointOf(option, report, "memory").rows.filter((row) => row.op === "memory" && known(row.bandwidth));
  const keys = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.kind, row.numa ?? null, row.together]);
    if (!keys.has(key) || keys.get(key).bytes < row.bytes) keys.set(key, row);
  }
  const drawn = option.series.flatMap(({ data }) => pairs(data)).filter((value) => value !== null).sort((a, b) => a - b);
  const wanted = [...keys.values()].map((row) => row.bandwidth).sort((a, b) => a - b);
  assert.equal(drawn.length, wanted.length);
  wanted.forEach((value, i) => near(drawn[i], value, "bandwidth"));
}

export function memorySizes(option, { report }) {
  const rows = pointOf(option, report, "memory").rows.filter((row) => row.op === "memory" && row.bytes > 0 && row.bandwidth > 0);
  sameSet(option.series.flatMap(({ data }) => pairs(data)), rows.map((row) => [row.bytes, row.bandwidth]), "memory");
}

const pairKeys = { bandwidth: "bandwidth", latency: "latency", "both ways": "bidirectional" };

export function pairsMatrix(option, { report }) {
  const point = pointOf(option, report, "p2p");
  const rows = point.rows.filter((row) => row.op === "p2p" && row.src !== undefined);
  const key = pairKeys[option.state.what];
  // The page speaks of MPI's ranks, which differ from the point's where it leaves some ranks out.
  const ranks = [...new Set(rows.flatMap((row) => [row.src_world_rank, row.dst_world_rank]))].sort((a, b) => a - b);
  assert.deepEqual(option.xAxis[0].data, ranks.map(String));
  const value = (row) => {
    if (option.state.colour === "value") return row[key];
    const own = rows.filter((at) => at.class === row.class && known(at[key])).map((at) => at[key]);
    return row[key] / median(own) - 1;
  };
  const drawn = new Map(option.series[0].data.map(valueOf).map(([x, y, at]) => [`${y} ${x}`, at]));
  const shown = rows.filter((row) => known(row[key]));
  assert.equal(drawn.size, shown.length);
  for (const row of shown) {
    const at = drawn.get(`${ranks.indexOf(row.src_world_rank)} ${ranks.indexOf(row.dst_world_rank)}`);
    const what = `${row.src} to ${row.dst}: ${at}`;
    if (option.state.colour === "value") near(at, row[key], what);
    else assert.ok(Math.abs(at - value(row)) < 1e-9, what);
  }
  const slow = point.slow_pairs.filter((at) => at.quantity === key).map((at) => `${ranks.indexOf(at.dst_world_rank)} ${ranks.indexOf(at.src_world_rank)}`);
  const outlined = option.series.find(({ name }) => name === "\0slow").data.map(([x, y]) => `${x} ${y}`);
  assert.deepEqual(outlined.sort(), slow.sort(), "slow pairs are outlined");
}

/** Only what has an interval is joined by lines, and on the frontier. */
export function inferenceFrontier({ series }, { report }) {
  const rows = rowsOf(report, (row) => row.op === "infer" && known(row.tpot.median) && known(row.tokens_per_second_per_rank));
  const place = (row) => [row.tpot.median, row.tokens_per_second_per_rank];
  const [joined, single] = ["line", "scatter"].map((type) => series.filter((at) => at.type === type).flatMap(({ data }) => data));
  sameSet(joined.map(({ value }) => value), rows.filter((row) => known(row.tpot.lower)).map(place), "joined");
  sameSet(single.map(({ value }) => value), rows.filter((row) => !known(row.tpot.lower)).map(place), "single");
  assert.ok(single.every(({ symbol }) => symbol === "emptyCircle"));
}
