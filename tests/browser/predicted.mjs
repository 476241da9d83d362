// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What the charts of predictions and of comparisons must show: the numbers of predict and of compare
// --format json.
import assert from "node:assert/strict";
import { known, near, pairs, samePairs, throughputInterval } from "./expected.mjs";
import { checkBars, checkStairs } from "./steps.mjs";

const curvesOf = ({ curve, what_if: whatIf }) => [curve, ...whatIf]
  .map((at) => ({ ...at, points: at.points.filter((point) => point.refused === null) }))
  .filter((at) => at.points.length > 0);

const last = (points) => points.reduce((best, at) => (best.ranks >= at.ranks ? best : at));

/** Lines, measured points, and the intervals that the switch asks for. */
export function curve({ series, state }, { report }, [, name]) {
  const key = name.replace("-", "_");
  const curves = curvesOf(report);
  const drawn = series.filter(({ type, name: of }) => type === "line" && of !== "ideal");
  assert.equal(drawn.length, curves.length, "lines");
  curves.forEach((at, i) => {
    const what = `${key} of ${at.title}`;
    samePairs(pairs(drawn[i].data), at.points.map((point) => [point.ranks, point[key].value]), what);
    drawn[i].data.forEach((item, j) =>
      assert.equal(Boolean(item.itemStyle), at.points[j].extrapolated, `${what}: hollow when extrapolated`));
    const ends = at.points.filter((point) => point[key].lower < point[key].upper).map((point) => [point.ranks, point[key].lower, point[key].upper]);
    const shown = series.filter((of) => of.type === "custom" && of.name === drawn[i].name);
    assert.equal(shown.length, ends.length > 0 && (i === 0 || state.interval === "all") ? 1 : 0, `${what}: intervals`);
    if (shown.length > 0) samePairs(shown[0].data, ends, `${what}: intervals`);
  });
  const known = report.measured.filter((point) => point[key] !== null);
  const measured = series.filter(({ type }) => type === "scatter");
  assert.equal(measured.length, known.length > 0 ? 1 : 0, "measured points");
  if (known.length > 0) samePairs(pairs(measured[0].data), known.map((point) => [point.ranks, point[key]]), `measured ${key}`);
}

export function uncertainty({ series, xAxis }, { report }) {
  const [{ points }] = curvesOf(report);
  assert.deepEqual(xAxis[0].data, points.map((point) => String(point.ranks)));
  for (const [name, key] of [["noise", "noise"], ["launch", "launch"], ["model", "fit"]]) {
    const bars = series.find((at) => at.name === name);
    assert.equal(bars !== undefined, points.some((point) => point.uncertainty[key] > 0), name);
    points.forEach((point, i) => bars && near(bars.data[i], point.uncertainty[key], `${name} on ${point.ranks} ranks`));
  }
  const all = series.find((at) => at.name === "together");
  points.forEach(({ uncertainty: { noise, launch, fit } }, i) => near(all.data[i], Math.sqrt(noise ** 2 + launch ** 2 + fit ** 2), "together"));
}

const barOf = ({ breakdown, step_time: time }) => ({ parts: breakdown, hidden: breakdown.hidden_communication, whole: time.value ?? time });

export function step({ series, state }, { report }) {
  checkBars(series, curvesOf(report)[0].points.map(barOf), state.unit === "share", "predicted steps");
}

export function stepWhatIf({ series, state }, { report }) {
  checkBars(series, curvesOf(report).map(({ points }) => barOf(last(points))), state.unit === "share", "steps of what-ifs");
}

export function best({ series, state }, { report }) {
  checkBars(series, report.best.map(barOf), state.unit === "share", "the best");
}

export function waterfall(option, { report }, [, index]) {
  const curves = curvesOf(report).map((at) => at.points.filter((point) => point.waterfall !== null)).filter((points) => points.length > 0);
  const { ideal, predicted, lost } = curves[Number(index)].find((point) => String(point.ranks) === option.state.ranks).waterfall;
  checkStairs(option, { ideal, measured: predicted, lost });
  assert.equal(option.yAxis[0].data.at(-1), "predicted");
}

export function differences({ series, state }, { report: { differences: all } }) {
  const of = (at) => (state.what === "throughput"
    ? { value: at.throughput.ratio - 1, interval: at.throughput.lower === null ? null : [at.throughput.lower - 1, at.throughput.upper - 1] }
    : { value: at.efficiency.points, interval: at.efficiency.lower === null ? null : [at.efficiency.lower, at.efficiency.upper] });
  const shown = all.map((at, row) => ({ ...of(at), row, verdict: at.verdict })).filter(({ value }) => known(value));
  for (const verdict of new Set(all.map((at) => at.verdict))) {
    const own = shown.filter((at) => at.verdict === verdict);
    const points = series.find(({ type, name }) => type === "scatter" && name === verdict);
    assert.equal(points.data.length, own.length, verdict);
    pairs(points.data).forEach(([x, y], i) => {
      assert.ok(Math.abs(x - own[i].value) < 1e-12, `${verdict}: ${x}`);
      assert.equal(y, own[i].row);
    });
    const whiskers = series.find(({ type, name }) => type === "custom" && name === verdict);
    const wanted = own.filter(({ interval }) => interval !== null);
    assert.equal(whiskers.data.length, wanted.length, `${verdict}: whiskers`);
    whiskers.data.forEach(([low, row, high], i) => {
      assert.equal(row, wanted[i].row);
      assert.ok(Math.abs(low - wanted[i].interval[0]) < 1e-12 && Math.abs(high - wanted[i].interval[1]) < 1e-12, `${verdict}: ${low} to ${high}`);
    });
  }
}

const shownAs = (cause) => (cause === "untraced" ? "traced steps differ" : cause);

export function why({ series, state }, { report: { differences: all } }) {
  const inPoints = state.of !== "step time";
  const of = (at) => (inPoints
    ? at.why.map(({ cause, points }) => [shownAs(cause), points])
    : at.step.against > 0 ? at.step.why.map(({ cause, seconds }) => [shownAs(cause), seconds / at.step.against]) : []);
  const shown = all.filter((at) => of(at).length > 0);
  const drawn = new Map(series.map(({ name, data }) => [name, data]));
  shown.forEach((at, i) => {
    const parts = new Map(of(at));
    for (const [cause, value] of parts) near(drawn.get(cause)[i], value, `${cause} of ${at.ranks} ranks`);
    for (const [cause, data] of drawn) if (!parts.has(cause)) assert.equal(data[i], null, cause);
  });
  for (const data of drawn.values()) assert.equal(data.length, shown.length);
}

/** Lines of the sides of the curve that the list names. */
function sides({ series, chosenIndex }, { report }, value, interval, what) {
  const curve = report.curves[chosenIndex[0] ?? 0];
  for (const side of curve.sides) {
    const points = side.points.filter((point) => known(value(point)));
    const line = series.find(({ type, name }) => type === "line" && name === side.side);
    samePairs(pairs(line.data), points.map((point) => [point.ranks, value(point)]), `${what} of ${side.side}`);
    const wanted = points.filter((point) => interval(point) !== null).map((point) => [point.ranks, ...interval(point)]);
    const whiskers = series.find(({ type, name }) => type === "custom" && name === side.side);
    assert.equal(whiskers !== undefined, wanted.length > 0, `${what} of ${side.side}: whiskers`);
    if (whiskers) samePairs(whiskers.data, wanted, `${what} of ${side.side}: whiskers`);
  }
}

export function comparedEfficiency(option, from) {
  sides(option, from, (point) => point.efficiency.value,
    ({ efficiency: { lower, upper } }) => (known(lower) && known(upper) ? [lower, upper] : null), "efficiency");
}

export function comparedThroughput(option, from) {
  sides(option, from, (point) => point.throughput.value, throughputInterval, "throughput");
}

export function normalised(option, from) {
  sides(option, from, (point) => point.normalised[option.state.per].value, () => null, "normalised");
}
