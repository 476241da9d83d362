// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes a card for each curve, with its efficiency at its largest sound point (see isSound()), and
// cards for inference, serving and micro-benchmarks.
import { card, cardGrid, efficiencyBar } from "../blocks.js";
import { headlineOf, isSound, largest } from "../causes.js";
import { benches } from "../data.js";
import { el } from "../dom.js";
import { fixed, joined, known, missing, percent, rankCount, seconds, si } from "../format.js";

const most = 10; // two rows of cards on a common screen

/** Returns the badges of a point, which go below its number: {text, kind}. */
const badgesOf = ({ labels }, verified) => [
  ...labels.map((text) => ({ text, kind: "warn" })),
  ...(verified === false ? [{ text: "did not verify", kind: "bad" }] : []),
  ...(verified === null ? [{ text: "not verified", kind: "warn" }] : []),
];

/**
 * The card shows the largest point whose times represent the machine. If the curve has a larger
 * point, names that point's efficiency and labels; null otherwise.
 */
function beyond(curve, point) {
  const at = largest(curve.points);
  if (at.ranks === point.ranks || at.efficiency === null) return null;
  return el("span", { class: "faint" }, `${rankCount(at.ranks)}: ${percent(at.efficiency)}, ${joined(at.labels) || "did not verify"}`);
}

function efficiencyOf(curve, point, scale) {
  if (point.efficiency === null || point.ranks === curve.baseline) {
    const why = curve.baseline === null ? "no baseline" : point.ranks === curve.baseline ? "the baseline itself" : "the baseline alone";
    return { value: missing, beside: el("span", { class: "note" }, why) };
  }
  const ends = point.efficiencyInterval;
  return {
    value: percent(point.efficiency),
    beside: [
      ends ? el("span", { class: "note", title: "95% interval" }, `${fixed(100 * ends[0], 1)}\u2013${percent(ends[1])}`) : null,
      el("span", { class: "note faint" }, `against ${curve.perNode ? "a node" : rankCount(curve.baseline)}`)],
    bar: efficiencyBar(point.efficiency, ends, scale),
  };
}

function curveCard(curve, scale) {
  const point = headlineOf(curve.points);
  const named = { title: curve.short, full: curve.title };
  if (!point) {
    const first = curve.skipped[0];
    return card({ ...named, value: missing, look: "labelled", lines: [`nothing measured: ${first?.reason || first?.status || "no points"}`] });
  }
  return card({
    ...named, ranks: point.ranks, ...efficiencyOf(curve, point, scale), look: isSound(point) ? "" : "labelled",
    lines: [`${si(point.throughput, point.unit)} \u00b7 ${seconds(point.stepTime.median)} a step`, beyond(curve, point)],
    badges: badgesOf(point, point.full.verified),
  });
}

/** Makes the cards of the curves, in the report's order. */
export function curveCards(curves) {
  const reached = curves.map((curve) => headlineOf(curve.points)?.efficiency).filter((value) => value > 0);
  const scale = Math.max(1, ...reached);
  const unit = curves.some((curve) => curve.perNode) ? "node" : "rank";
  return el("div", {},
    el("p", { class: "note" }, `efficiency at each curve's largest ${unit} count without a label: throughput per ${unit} `
      + "against the baseline; the bar's end is ideal; grey: no scaling result"),
    cardGrid(curves.map((curve) => curveCard(curve, scale)), most, "curves"));
}

const quantities = [["busbw", "B/s", "bus bandwidth"], ["flops", "FLOP/s", "rate"], ["bandwidth", "B/s", "bandwidth"]];

/** Returns the row with the highest rate; rows with an interval are preferred. */
const bestOf = (rows, rate) => {
  const measured = rows.filter((row) => known(rate(row)));
  const sure = measured.filter((row) => known(row.tpot?.lower));
  return (sure.length > 0 ? sure : measured).reduce((best, row) => (best && rate(best) >= rate(row) ? best : row), undefined);
};

const benchCard = (point, value, ...lines) => card({
  title: joined([point.workload, point.dtype]), ranks: point.ranks, value, lines, badges: badgesOf(point, point.verified),
});

/** Shows the most tokens per second, with the time per output token; null if no row has them. */
function inferCard({ point }) {
  const row = bestOf(point.rows.filter((at) => at.op === "infer" && at.status === "ok"), (at) => at.tokens_per_second);
  if (!row) return null;
  const { median, lower, upper, plays } = row.tpot;
  const between = known(lower) ? `, 95%: ${seconds(lower)} to ${seconds(upper)}` : ", too few plays for an interval";
  return benchCard(point, si(row.tokens_per_second, "tokens/s"), `at batch ${row.batch}, ${seconds(median)} per output token${between}; ${plays} plays`);
}

/** Shows the highest request rate at which requests did not pile up; null without rates. */
function serveCard({ point }) {
  const rates = point.rows.filter((at) => at.op === "serve" && at.part === "rate");
  if (rates.length === 0) return null;
  const row = bestOf(rates.filter((at) => !at.saturated), (at) => at.achieved);
  if (!row) return benchCard(point, missing, `no rate was sustained of ${rates.length} tried`);
  return benchCard(point, `${si(row.achieved)} requests/s`, `highest rate sustained; median latency ${seconds(row.latency.median)}, ${row.requests} requests`);
}

/** Shows the highest rate of a micro-benchmark; null if it has none. */
function peakCard({ point }) {
  for (const [key, unit, name] of quantities) {
    const values = point.rows.map((row) => row[key]).filter(known);
    if (values.length > 0) return benchCard(point, si(Math.max(...values), unit), `highest ${name} of ${values.length} rows`);
  }
  return null;
}

/** Makes the cards of inference and serving, and of micro-benchmarks if there are no curves. */
export function benchCards(hasCurves) {
  const makers = hasCurves ? [inferCard, serveCard] : [inferCard, serveCard, peakCard];
  const cards = makers.flatMap((make) => benches().map(make)).filter(Boolean).slice(0, most);
  if (cards.length > 0) return cardGrid(cards, most);
  return hasCurves ? null : el("p", { class: "note" }, "no point was measured");
}
