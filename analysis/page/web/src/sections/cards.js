// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// A card for each curve: in large type its efficiency at its largest sound point, with a bar
// against the ideal.
import { headlineOf, isSound, largest } from "../causes.js";
import { benches } from "../data.js";
import { el } from "../dom.js";
import { fixed, missing, percent, rankCount, seconds, si } from "../format.js";

const most = 10; // two rows of cards on a common screen
const few = 4; // up to this many, cards are as large as the screen allows

/** Returns the marks of a point, which go beside its number: {text, kind}. */
function marks(point) {
  const verified = point.full.verified;
  return [
    ...point.labels.map((text) => ({ text, kind: "warn" })),
    ...(verified === false ? [{ text: "did not verify", kind: "bad" }] : []),
    ...(verified === null ? [{ text: "not verified", kind: "warn" }] : []),
  ];
}

export const badges = (point) => marks(point).map(({ text, kind }) => el("span", { class: `badge ${kind}` }, text));

/**
 * Draws the reached and lost shares of the ideal, and the interval. All bars of a page have one
 * scale.
 */
export function bar(point, scale) {
  const at = (value) => `${(100 * Math.min(value, scale)) / scale}%`;
  const interval = point.efficiencyInterval;
  return el("div", { class: "bar", "aria-hidden": "true" },
    el("i", { class: "lost", style: `width:${at(1)}` }),
    el("i", { class: "reached", style: `width:${at(point.efficiency)}` }),
    interval ? el("i", { class: "interval", style: `left:${at(interval[0])};right:calc(100% - ${at(interval[1])})` }) : null,
    el("i", { class: "ideal", style: `left:${at(1)}` }));
}

function interval(point) {
  const at = point.efficiencyInterval;
  return at ? el("span", { class: "note", title: "95% interval" }, `${fixed(100 * at[0], 1)}\u2013${percent(at[1])}`) : null;
}

function withoutEfficiency(curve, point) {
  const why = curve.baseline === null ? "no baseline" : point.ranks === curve.baseline ? "the baseline itself" : "the baseline alone";
  return el("div", { class: "headline" }, el("b", { class: "huge" }, missing), el("span", { class: "note" }, why));
}

function cardTitle(name, title, ranks) {
  return el("div", { class: "card-title" }, el("h3", { title }, name), el("span", {}, rankCount(ranks)));
}

/** Shows, in small type, a larger point whose times are not those of the machine. */
function beyond(curve, point) {
  const at = largest(curve.points);
  if (at.ranks === point.ranks || at.efficiency === null) return null;
  const why = at.labels.length > 0 ? at.labels.join(", ") : "did not verify";
  return el("p", { class: "note faint" }, `${rankCount(at.ranks)}: ${percent(at.efficiency)}, ${why}`);
}

function curveCard(curve, scale) {
  const point = headlineOf(curve.points);
  if (!point) {
    const first = curve.skipped[0];
    return el("article", { class: "card labelled" }, el("h3", { title: curve.title }, curve.short),
      el("div", { class: "headline" }, el("b", { class: "huge" }, missing)),
      el("p", { class: "note" }, `nothing measured: ${first?.reason || first?.status || "no points"}`));
  }
  const isAlone = point.efficiency === null || point.ranks === curve.baseline;
  return el("article", { class: `card${isSound(point) ? "" : " labelled"}` },
    cardTitle(curve.short, curve.title, point.ranks),
    isAlone ? withoutEfficiency(curve, point)
      : el("div", { class: "headline" }, el("b", { class: "huge" }, percent(point.efficiency)), interval(point),
        el("span", { class: "note faint" }, `against ${curve.perNode ? "a node" : rankCount(curve.baseline)}`)),
    isAlone ? null : bar(point, scale),
    el("p", { class: "note" }, `${si(point.throughput, point.unit)} \u00b7 ${seconds(point.stepTime.median)} a step`),
    beyond(curve, point),
    el("p", { class: "badges" }, badges(point)));
}

/** Makes the cards of the curves, in the report's order. */
export function curveCards(curves) {
  const reached = curves.map((curve) => headlineOf(curve.points)?.efficiency).filter((value) => value > 0);
  const scale = Math.max(1, ...reached);
  const perNode = curves.some((curve) => curve.perNode);
  const cards = curves.map((curve) => curveCard(curve, scale));
  return el("div", {},
    el("p", { class: "note" }, `efficiency at each curve's largest ${perNode ? "node" : "rank"} count without a label: throughput per ${perNode ? "node" : "rank"} `
      + "against the baseline; the bar's end is ideal; grey: no scaling result"),
    el("div", { class: cards.length <= few ? "cards few" : "cards" }, cards.slice(0, most)),
    cards.length <= most ? null
      : el("details", {}, el("summary", {}, `${cards.length - most} more curves`), el("div", { class: "cards" }, cards.slice(most))));
}

const quantities = [["busbw", "B/s", "bus bandwidth"], ["flops", "FLOP/s", "rate"], ["bandwidth", "B/s", "bandwidth"]];

/** Returns the row with the highest rate; rows with an interval are preferred. */
const bestOf = (rows, rate) => {
  const known = rows.filter((row) => typeof rate(row) === "number");
  const sure = known.filter((row) => typeof row.tpot?.lower === "number");
  return (sure.length > 0 ? sure : known).reduce((best, row) => (best && rate(best) >= rate(row) ? best : row), undefined);
};

function headlineCard(point, text, ...said) {
  return el("article", { class: "card" }, cardTitle(`${point.workload}${point.dtype ? `, ${point.dtype}` : ""}`, null, point.ranks),
    el("div", { class: "headline" }, el("b", { class: "huge" }, text)),
    said.map((line) => el("p", { class: "note" }, line)),
    el("p", { class: "badges" }, badges({ labels: point.labels, full: point })));
}

/** Shows the best tokens per second with their time per output token; null if no row has it. */
function inferCard({ point }) {
  const row = bestOf(point.rows.filter((at) => at.op === "infer" && at.status === "ok"), (at) => at.tokens_per_second);
  if (!row) return null;
  const { median, lower, upper, plays } = row.tpot;
  const between = typeof lower === "number" ? `, 95%: ${seconds(lower)} to ${seconds(upper)}` : ", too few plays for an interval";
  return headlineCard(point, si(row.tokens_per_second, "tokens/s"), `at batch ${row.batch}, ${seconds(median)} per output token${between}; ${plays} plays`);
}

/** Shows the highest rate at which requests did not pile up; null without rates. */
function serveCard({ point }) {
  const rates = point.rows.filter((at) => at.op === "serve" && at.part === "rate");
  if (rates.length === 0) return null;
  const row = bestOf(rates.filter((at) => !at.saturated), (at) => at.achieved);
  if (!row) return headlineCard(point, missing, `no rate was sustained of ${rates.length} tried`);
  return headlineCard(point, `${si(row.achieved)} requests/s`, `highest rate sustained; median latency ${seconds(row.latency.median)}, ${row.requests} requests`);
}

/** Makes the cards of inference and serving; [] if a run has neither. */
export function servedCards() {
  return benches().flatMap((one) => [inferCard(one), serveCard(one)]).filter((card) => card !== null);
}

function benchCard({ point }) {
  for (const [key, unit, name] of quantities) {
    const values = point.rows.map((row) => row[key]).filter((value) => typeof value === "number");
    if (values.length === 0) continue;
    return el("article", { class: "card" }, cardTitle(`${point.workload}${point.dtype ? `, ${point.dtype}` : ""}`, null, point.ranks),
      el("div", { class: "headline" }, el("b", { class: "huge" }, si(Math.max(...values), unit))),
      el("p", { class: "note" }, `highest ${name} of ${values.length} rows`),
      el("p", { class: "badges" }, badges({ labels: point.labels, full: point })));
  }
  return null;
}

/** Shows the peaks of the micro-benchmarks if no workload scales. */
export function benchCards() {
  const cards = [...servedCards(), ...benches().map(benchCard).filter((card) => card !== null)].slice(0, most);
  return cards.length > 0 ? el("div", { class: cards.length <= few ? "cards few" : "cards" }, cards) : el("p", { class: "note" }, "no point was measured");
}
