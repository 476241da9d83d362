// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What the charts of a comparison must show: the numbers of compare --format json.
import assert from "node:assert/strict";
import { known, near, pairs, samePairs, throughputInterval } from "./expected.mjs";

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

export function efficiency(option, from) {
  sides(option, from, (point) => point.efficiency.value,
    ({ efficiency: { lower, upper } }) => (known(lower) && known(upper) ? [lower, upper] : null), "efficiency");
}

export function throughput(option, from) {
  sides(option, from, (point) => point.throughput.value, throughputInterval, "throughput");
}

export function normalised(option, from) {
  sides(option, from, (point) => point.normalised[option.state.per].value, () => null, "normalised");
}
