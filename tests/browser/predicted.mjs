// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What the charts of a prediction must show: the numbers of predict --format json.
import assert from "node:assert/strict";
import { near, pairs, samePairs } from "./expected.mjs";
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
