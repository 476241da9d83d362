// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What the charts of steps must show: parts, causes, and the details of a point that the page holds.
import assert from "node:assert/strict";
import { cellsOf, curvesOf, drawnCurves, median, near, pairs, samePairs, valueOf } from "./expected.mjs";

const parts = ["compute", "copies", "transfer", "wait", "bubble", "gap", "other"];
const rounded = 2e-5; // what is only in pictures has six digits
const isTraced = (point) => typeof point.full.traced_step === "number";
const last = (points) => points.reduce((best, point) => (best.ranks > point.ranks ? best : point));

/** Bars of parts: {parts, hidden, whole}. */
export function checkBars(series, bars, isShare, what) {
  const scale = (bar) => (isShare ? bar.whole : 1);
  for (const name of parts) {
    const drawn = series.find((at) => at.name === name);
    const seen = bars.some((bar) => bar.parts[name] > 0.0005 * bar.whole);
    assert.equal(drawn !== undefined, seen, `${what}: ${name}`);
    if (drawn) {
      assert.equal(drawn.stack, "step", `${what}: ${name}`);
      bars.forEach((bar, i) => near(valueOf(drawn.data[i]), bar.parts[name] === null ? null : bar.parts[name] / scale(bar), `${what}: ${name}`));
    }
  }
  const hidden = series.find((at) => at.name.startsWith("hidden"));
  assert.equal(hidden !== undefined, bars.some((bar) => bar.hidden > 0), `${what}: hidden`);
  if (hidden) bars.forEach((bar, i) => near(valueOf(hidden.data[i]), bar.hidden === null ? null : bar.hidden / scale(bar), `${what}: hidden`));
  assert.equal(series.length, series.filter((at) => parts.includes(at.name)).length + (hidden ? 1 : 0), `${what}: series`);
}

const barOf = ({ full }) => ({ parts: full.breakdown, hidden: full.hidden_communication, whole: full.traced_step });
const tracedCurves = (report) => curvesOf(report).filter((curve) => curve.points.some(isTraced));

export function stepAll({ series, state }, { report }) {
  const bars = tracedCurves(report).map((curve) => barOf(last(curve.points.filter(isTraced))));
  checkBars(series, bars, state.unit === "share", "step-all");
}

export function stepOf({ series, state }, { report }, [, index]) {
  const bars = tracedCurves(report)[Number(index)].points.filter(isTraced).map(barOf);
  checkBars(series, bars, state.unit === "share", `step-${index}`);
}

export function placesOf({ series, state, yAxis }, { report }, [, index]) {
  const points = tracedCurves(report)[Number(index)].points.filter((point) => isTraced(point) && point.full.breakdown_by);
  const point = points.find((at) => String(at.ranks) === state.ranks);
  // A page keeps the layers that take most time, so many for each point.
  const all = Object.entries(point.full.breakdown_by[state.by]);
  const nameOf = (place) => (state.by === "layer" && /^\d+$/.test(place) ? `layer ${place}` : place.replaceAll("_", " "));
  const places = all.filter(([place]) => yAxis[0].data.includes(nameOf(place)));
  assert.deepEqual(yAxis[0].data, places.map(([place]) => nameOf(place)), "places");
  const secondsOf = ([, at]) => parts.reduce((sum, name) => sum + (at[name] ?? 0), at.hidden_communication ?? 0);
  const least = Math.min(...places.map(secondsOf));
  for (const at of all.filter((place) => !places.includes(place))) {
    assert.equal(state.by, "layer", `${at[0]} is left out`);
    assert.ok(secondsOf(at) <= least, `${at[0]} takes more time than a layer that is shown`);
  }
  assert.ok(places.length >= Math.min(all.length, 8), "layers that are shown");
  const bars = places.map(([, at]) => ({
    parts: at,
    hidden: at.hidden_communication,
    whole: parts.reduce((sum, name) => sum + (at[name] ?? 0), 0),
  }));
  checkBars(series, bars, false, `places-${index}`);
}

const hasWaterfall = (point) => point.full.waterfall?.measured > 0;

export function waterfall(option, { report }, [, index]) {
  const curve = curvesOf(report).filter((at) => at.points.some(hasWaterfall))[Number(index)];
  checkStairs(option, curve.points.filter(hasWaterfall).find((at) => String(at.ranks) === option.state.ranks).full.waterfall);
}

/** The staircase from the ideal step to the measured one, by the causes in `lost`. */
export function checkStairs({ series, yAxis }, { ideal, measured, lost, explains = true }) {
  const names = yAxis[0].data;
  const items = series[0].data;
  assert.equal(items.length, names.length);
  const end = items.length - 1;
  near(items[0][2], ideal, "ideal");
  near(items[end][2], measured, "measured");
  near(items[0][1] + 1, 1, "from zero");
  near(items[end][1] + 1, 1, "from zero");
  let at = ideal;
  let left = new Set(Object.entries(lost).filter(([, seconds]) => seconds !== 0).map(([cause]) => cause));
  for (let i = 1; i < end; ++i) {
    const [, from, to] = items[i];
    assert.ok(Math.abs(from - at) <= 1e-9 * measured, `${names[i]} begins where the one before ends`);
    if (names[i] in lost) {
      assert.ok(explains || names[i] === "untraced", `${names[i]}: causes that do not explain the loss`);
      assert.ok(Math.abs(to - from - lost[names[i]]) <= 1e-9 * measured, `${names[i]}: ${to - from}, wanted ${lost[names[i]]}`);
      left.delete(names[i]);
    } else {
      const rest = explains ? [...left].filter((cause) => Math.abs(lost[cause]) < 0.005 * measured) : Object.keys(lost).filter((cause) => !names.includes(cause));
      if (explains) assert.match(names[i], /^\d+ smaller$/);
      assert.ok(Math.abs(to - from - rest.reduce((sum, cause) => sum + lost[cause], 0)) <= 1e-9 * measured, names[i]);
      left = new Set([...left].filter((cause) => !rest.includes(cause)));
    }
    at = to;
  }
  // A cause that the picture leaves out is too small to be seen in it.
  const unseen = [...left].reduce((sum, cause) => sum + lost[cause], 0);
  assert.ok([...left].every((cause) => Math.abs(lost[cause]) < 0.005 * measured), `missing: ${[...left]}`);
  assert.ok(Math.abs(unseen) <= 0.0005 * measured);
  assert.ok(Math.abs(at - measured) <= 0.0005 * measured + 1e-9, `ends at ${at}, measured ${measured}`);
}

export function spread({ series, yAxis }, { report }) {
  const points = report.curves.flatMap((curve) => curve.points.filter((point) => point.launches.length > 1));
  assert.equal(yAxis[0].data.length, points.length);
  report.runs.forEach((run, i) => {
    const drawn = series.find(({ type, name }) => type === "scatter" && name === `launch ${i + 1}`);
    const wanted = points.flatMap((point, place) => point.launches.filter((at) => at.run === run.id)
      .map((at) => [at.step_time.median / point.step_time.median - 1, place]));
    assert.equal(drawn.data.length, wanted.length);
    pairs(drawn.data).forEach(([x, y], at) => {
      assert.ok(Math.abs(x - wanted[at][0]) < 1e-12, `${drawn.name}: ${x}`);
      assert.equal(y, wanted[at][1]);
    });
  });
}

/** The point that the lists of a section have chosen, {full, details}, and the details of all points of its curve. */
function chosenPoint({ chosenIndex }, { report, details }) {
  const of = (point) => details.find((at) => at.run === point.run && at.point === point.index);
  const groups = drawnCurves(report).map((curve) => curve.points.filter(of)).filter((points) => points.length > 0);
  const points = groups[chosenIndex[0]];
  const point = points[chosenIndex[1]];
  return { full: point.full, details: of(point), curve: points.map(of) };
}

const kindNames = ["measured", "traced", "dropped: first of a block", "warm-up"];

export function stepsSeries(option, from) {
  const { details: { steps }, full } = chosenPoint(option, from);
  const drawn = option.series.flatMap(({ name, data }) => pairs(data).map(([step, time]) => [step, time, kindNames.indexOf(name)]));
  const wanted = steps.first.map((step, i) => [step, steps.time[i], steps.kind[i]])
    .filter(([, , kind]) => option.state.show === "all" || kind !== 3);
  samePairs(drawn.sort(([one], [other]) => one - other), wanted, "steps");
  if (full.step_time.median !== null) near(option.marks[0].yAxis, full.step_time.median, "median");
}

export function stepsDistribution(option, from) {
  const { curve, details } = chosenPoint(option, from);
  const isAlone = option.state.of === "this point";
  const wanted = curve.filter((at) => at.steps?.quantiles && (!isAlone || at === details));
  assert.equal(option.series.length, wanted.length);
  wanted.forEach(({ steps: { quantiles } }, i) => samePairs(pairs(option.series[i].data),
    quantiles.map((value, share) => [isAlone ? value : value / quantiles[50], share / 100]), "quantiles"));
}

export function rankMap(option, from) {
  const { details: { rank_map: map }, full } = chosenPoint(option, from);
  const titles = option.xAxis[0].data;
  const keys = titles.map((title) => (title === "caused" ? "caused_wait" : title));
  const grid = cellsOf(option.series[0]);
  const whole = map.median.step;
  // The waiting that a rank caused is added up over all that waited for it, and shown for each of
  // them.
  const others = Math.max(1, map.traced - 1);
  keys.forEach((key, x) => {
    const middle = key === "caused_wait" ? 0 : map.median[key];
    if (map.rank.length === full.ranks && middle !== 0) {
      near(middle, median(map[key].filter((at) => at !== null)), `median of ${key}`, 4 * rounded);
    }
    map[key].forEach((seconds, y) => {
      const at = grid.get(`${x} ${y}`);
      if (seconds === null) assert.equal(at, undefined, `${key} of row ${y}`);
      else assert.ok(Math.abs(at - (seconds - middle) / whole / (key === "caused_wait" ? others : 1)) < 1e-9, `${key} of row ${y}: ${at}`);
    });
  });
  assert.equal(keys[0], "step");
}

export function rankSteps(option, from) {
  const { details: { rank_map: { cells, rank } } } = chosenPoint(option, from);
  assert.deepEqual(option.xAxis[0].data, cells.first.map(String));
  assert.equal(cells.time.length, rank.length);
  const grid = cellsOf(option.series[0]);
  let filled = 0;
  cells.time.forEach((row, y) => row.forEach((value, x) => {
    if (value === null) return;
    ++filled;
    near(grid.get(`${x} ${y}`), value, `row ${y}, step ${cells.first[x]}`);
  }));
  assert.equal(grid.size, filled);
}

export function device(option, from, [, quantity]) {
  const { details } = chosenPoint(option, from);
  const lines = option.series.filter(({ name }) => name !== "held down");
  const sampled = details.devices.filter((at) => at.quantity === quantity && at.time.length > 0);
  assert.equal(lines.length, sampled.length);
  const celsius = sampled[0].unit === "K" ? 273.15 : 0;
  lines.forEach(({ data }, i) => {
    const { time, value } = sampled[i];
    samePairs(pairs(data), time.map((at, j) => [at, value[j] - celsius]), quantity);
  });
}

export function timelineStep(option, from) {
  const { details: { timeline } } = chosenPoint(option, from);
  const boxes = option.series.filter(({ name }) => timeline.phases.map((phase) => phase.replaceAll("_", " ")).includes(name));
  assert.equal(boxes.reduce((sum, { data }) => sum + data.length, 0), timeline.spans.lane.length, "boxes");
  for (const { name, data } of boxes) {
    for (const [, start, end, , i] of data) {
      assert.equal(start, timeline.spans.start[i], "start");
      assert.equal(end - start, timeline.spans.length[i], "length");
      assert.equal(name, timeline.phases[timeline.spans.phase[i]].replaceAll("_", " "));
    }
  }
  for (const [kind, name] of ["exposed communication", "gap"].entries()) {
    const drawn = option.series.find((at) => at.name === name)?.data ?? [];
    assert.equal(drawn.length, timeline.idle.kind.filter((at) => at === kind).length, name);
  }
}
