// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What charts must show, worked out from the JSON report alone; none of the page's own code.
import assert from "node:assert/strict";

/** Numbers are the file's: only the last digits of doubles may differ. */
export function near(actual, wanted, what, relative = 1e-9) {
  if (wanted === null || wanted === undefined) {
    assert.ok(actual === null || actual === undefined || actual === "-", `${what}: ${actual}, wanted none`);
    return;
  }
  assert.equal(typeof actual, "number", `${what}: ${actual}, wanted ${wanted}`);
  assert.ok(Math.abs(actual - wanted) <= relative * Math.max(Math.abs(wanted), 1e-300),
    `${what}: ${actual}, wanted ${wanted}`);
}

/** The rows of CSV (RFC 4180) that has no line breaks in its cells. */
export const rowsOfCsv = (text) => text.split(/\r?\n/).slice(0, -1)
  .map((line) => [...`,${line}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare));

export const known = (value) => typeof value === "number";

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** The value of an item of a series: bare or in an object. */
export const valueOf = (item) => (item !== null && typeof item === "object" && !Array.isArray(item) ? item.value : item);

export function pairs(items) {
  return items.map(valueOf);
}

/** The cells of a heat map, by "column row". */
export const cellsOf = ({ data }) => new Map(data.map(valueOf).map(([x, y, value]) => [`${x} ${y}`, value]));

export function samePairs(actual, wanted, what, relative) {
  assert.equal(actual.length, wanted.length, `${what}: ${JSON.stringify(actual)}, wanted ${JSON.stringify(wanted)}`);
  wanted.forEach((row, i) => row.forEach((value, at) => near(actual[i][at], value, `${what}[${i}][${at}]`, relative)));
}

/** Curves of a report, in its order: {title, points}. A point: ranks, step_time, throughput, unit,
 * speedup, speedup_interval, efficiency, ideal, labels, full (the point of the run), run, index. */
export function curvesOf(report) {
  if (report.runs.length === 1) {
    const run = report.runs[0];
    return run.curves.map((curve) => ({
      ...curve,
      points: curve.points
        .map((index) => run.points.find((point) => point.index === index))
        .filter((point) => point.status === "ok")
        .map((point) => ({ ...point, full: point, run: 0 })),
    }));
  }
  return report.curves.map((curve) => ({
    ...curve,
    points: curve.points.map((point) => {
      const typical = point.launches.find((at) => at.typical) ?? point.launches[0];
      const run = report.runs.findIndex((at) => at.id === typical.run);
      // The losses are against the joined curve's baseline, not the launch's own.
      const { waterfall, pop } = point;
      const full = { ...report.runs[run].points.find((at) => at.index === typical.index), waterfall, pop };
      return { ...point, full, run, index: typical.index };
    }),
  }));
}

/** Curves that have a point. */
export const drawnCurves = (report) => curvesOf(report).filter((curve) => curve.points.length > 0);

/** Intervals of efficiency: those of speed-up over what an ideal speed-up would be. */
export function efficiencyInterval({ efficiency, speedup, speedup_interval: interval }) {
  return interval && efficiency ? interval.map((at) => (at * efficiency) / speedup) : null;
}

/** Throughput is work over time: a longer step is the lower end. */
export function throughputInterval({ throughput, step_time: { median, lower, upper } }) {
  return lower && upper ? [(throughput.value * median) / upper, (throughput.value * median) / lower] : null;
}

/** Charts of lines over ranks with whiskers: each series against the curves. */
export function checkLines(series, curves, value, interval, what) {
  const lines = series.filter(({ type, name }) => type === "line" && name !== "ideal");
  assert.equal(lines.length, curves.length, `${what}: lines`);
  assert.equal(new Set(lines.map(({ name }) => name)).size, lines.length, `${what}: names of lines`);
  lines.forEach((line, i) => {
    const points = curves[i].points.filter((point) => value(point) !== null);
    const at = `${what} of ${curves[i].title}`;
    samePairs(pairs(line.data), points.map((point) => [point.ranks, value(point)]), at);
    line.data.forEach((item, j) =>
      assert.equal(item.itemStyle !== undefined && item.itemStyle !== null, points[j].labels.length > 0,
        `${at}: marked when it has labels`));
    const known = points.filter((point) => interval(point) !== null);
    const whiskers = series.filter(({ type, name }) => type === "custom" && name === line.name);
    assert.equal(whiskers.length, known.length > 0 ? 1 : 0, `${at}: whiskers`);
    if (known.length > 0) {
      samePairs(whiskers[0].data, known.map((point) => [point.ranks, ...interval(point)]), `${at}: whiskers`);
    }
  });
}

export function checkIdeal(series, curves, value, what) {
  const ideal = series.find(({ name }) => name === "ideal");
  assert.ok(ideal, `${what}: ideal`);
  const ranks = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.ranks)))].sort((a, b) => a - b);
  samePairs(pairs(ideal.data), ranks.map((n) => [n, value(n)]), `${what}: ideal`);
}
