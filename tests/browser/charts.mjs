// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Which charts there are, and what each must show. A chart that no line here knows fails the tests.
import assert from "node:assert/strict";
import {
  checkIdeal, checkLines, drawnCurves, efficiencyInterval, median, pairs, samePairs, throughputInterval,
} from "./expected.mjs";
import * as micro from "./micro.mjs";
import * as predicted from "./predicted.mjs";
import * as steps from "./steps.mjs";

function efficiency({ series }, { report }) {
  const curves = drawnCurves(report);
  checkLines(series, curves, (point) => point.efficiency, efficiencyInterval, "efficiency");
  checkIdeal(series, curves, () => 1, "efficiency");
}

function speedup({ series }, { report }) {
  const curves = drawnCurves(report);
  checkLines(series, curves, (point) => point.speedup, (point) => point.speedup_interval, "speed-up");
  if (curves.every((curve) => curve.baseline_unit === "rank")) checkIdeal(series, curves, (n) => n, "speed-up");
}

function throughput({ series }, { report }, [, number]) {
  const curves = drawnCurves(report);
  const units = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.throughput.unit)))];
  const own = curves.filter((curve) => curve.points.some((point) => point.throughput.unit === units[Number(number ?? 0)]));
  assert.ok(own.length > 0, "throughput of no unit");
  checkLines(series, own, (point) => point.throughput.value, throughputInterval, "throughput");
}

/** Checks a chart of the index: each run's throughput over the median of its experiment's runs. */
function overTime({ series }, { report }, [, number]) {
  const trends = report.machines[Number(number)].throughput_over_time.filter((trend) => trend.runs.length > 1);
  assert.equal(series.length, trends.length);
  trends.forEach((trend, i) => {
    const values = trend.runs.map((id) => {
      const run = report.index.find((at) => at.id === id);
      return [Date.parse(run.created), run.experiments.find((at) => at.fingerprint === trend.fingerprint).throughput.value];
    });
    const middle = median(values.map(([, value]) => value));
    samePairs(pairs(series[i].data), values.map(([time, value]) => [time, value / middle]), trend.title);
  });
}

/** Checkers by the id of a chart: (option, {report, details}, match) => throws where the chart shows
 * something else than the report and the page's data have. */
export const registry = [
  [/^efficiency$/, efficiency],
  [/^speedup$/, speedup],
  [/^throughput(?:-(\d+))?$/, throughput],
  [/^spread$/, steps.spread],
  [/^step-all$/, steps.stepAll],
  [/^step-(\d+)$/, steps.stepOf],
  [/^places-(\d+)$/, steps.placesOf],
  [/^waterfall-(\d+)$/, steps.waterfall],
  [/^timeline-step$/, steps.timelineStep],
  [/^rank-map$/, steps.rankMap],
  [/^rank-steps$/, steps.rankSteps],
  [/^steps-series$/, steps.stepsSeries],
  [/^steps-distribution$/, steps.stepsDistribution],
  [/^device-(.+)$/, steps.device],
  [/^collective-busbw$/, micro.collectiveBusbw],
  [/^collective-time$/, micro.collectiveTime],
  [/^gemm-rate$/, micro.gemmRate],
  [/^memory-bandwidth$/, micro.memoryBandwidth],
  [/^memory-sizes$/, micro.memorySizes],
  [/^pairs-matrix$/, micro.pairsMatrix],
  [/^inference-frontier$/, micro.inferenceFrontier],
  [/^over-time-(\d+)$/, overTime],
  [/^compare-differences$/, predicted.differences],
  [/^compare-why$/, predicted.why],
  [/^compare-efficiency$/, predicted.comparedEfficiency],
  [/^compare-throughput$/, predicted.comparedThroughput],
  [/^compare-normalised$/, predicted.normalised],
  [/^predict-(efficiency|throughput|step-time)$/, predicted.curve],
  [/^predict-uncertainty$/, predicted.uncertainty],
  [/^predict-step$/, predicted.step],
  [/^predict-step-what-if$/, predicted.stepWhatIf],
  [/^predict-waterfall-(\d+)$/, predicted.waterfall],
  [/^predict-best$/, predicted.best],
];

/** The checker of a chart, bound to its id; throws when there is none. */
export function checkerOf(id) {
  for (const [pattern, check] of registry) {
    const match = id.match(pattern);
    if (match) return (option, from) => check(option, from, match);
  }
  throw new Error(`no checker knows the chart '${id}': add one to tests/browser/charts.mjs`);
}
