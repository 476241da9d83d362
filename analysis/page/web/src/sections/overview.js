// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the first screen of a report: the workloads and the machine, how well they scale, causes of
// lost time, findings, and warnings about numbers. Each curve has a card with its efficiency at its
// largest sound point (see isSound()); inference, serving and micro-benchmarks have cards, too.
// Also makes the section of all findings with the cost of each, its evidence and the next step.
import {
  benches, card, cardGrid, causeItem, columns, counted, data, distinctOf, dotted, efficiencyBar, el, endsOf, explains, fact, factLine,
  fixed, groupBy, headlineOf, isSound, joined, known, largest, largestBy, listed, lossesOf, machineOf, missing, note, panel, percent,
  periodText, rankCount, ranksText, seconds, shareText, si, thinBar, tracing, unsound, warningsPanel,
} from "../reexports.js";

/** Returns the evidence for a finding: a line for each point, the most severe first. */
function evidence(at) {
  const lines = groupBy(at.evidence, (one) => one.ranks);
  return [...lines].map(([ranks, all]) => el("div", {},
    (ranks && lines.size > 1 ? `${rankCount(ranks)}: ` : "") + all.map(({ what, unit, text }) => `${what}${unit === "text" ? ":" : ""} ${text}`).join(", ")));
}

/** Returns the name of a finding's curve on this page. The finding's sentence names the ranks. */
const whereOf = ({ curve }, curves) => (curve ? curves.find(({ title }) => title === curve)?.short ?? curve : "");

/** Lists the points to which the rules of findings were not applied, and why; "" without any. */
const leftOutText = (curves) => data.report.findings_left_out
  .map((at) => `${whereOf(at, curves)} on ${at.ranks.join(", ")} (${at.why})`).join("; ");

const opened = 3; // number of findings that are unfolded at first
const most = 10; // number of findings that are shown at first

const severity = (share, scale) => el("span", { class: "severity" },
  el("b", { class: "big" }, known(share) ? shareText(share) : missing),
  thinBar("lost-bar", known(share) && scale > 0 ? Math.min(1, share / scale) : 0, "span"));

const finding = (at, i, scale, curves) => el("li", { id: `finding-${i + 1}` },
  el("details", { class: "finding", open: i < opened },
    el("summary", {}, severity(at.severity, scale),
      el("span", {}, el("b", {}, at.sentence), el("span", { class: "note" }, at.curve ? ` \u00b7 ${whereOf(at, curves)}` : ""))),
    el("dl", {}, factLine("evidence", evidence(at)), factLine("next step", at.next_step), factLine("source", dotted(at.rule, at.source)))));

const numbers = columns("", "curve, on ranks:count, kind:nowrap, which ranks, what was seen:long");

/** Lists the remarks of the analysis on single points, the largest first. */
function remarks(curves) {
  const row = (curve, point, { size = -1, kind = "remark", ranks = [], text }) =>
    ({ curve: curve.short, "on ranks": point.ranks, kind, "which ranks": ranks.join(", ") || null, "what was seen": text, size });
  return curves.flatMap((curve) => curve.points.flatMap((point) => [
    ...point.full.findings.map((at) => row(curve, point, at)),
    ...point.full.flags.map((text) => row(curve, point, { text })),
  ])).sort((a, b) => b.size - a.size);
}

export function findingsBlocks({ curves }) {
  const all = data.report.findings;
  const seen = remarks(curves);
  const unjudged = leftOutText(curves);
  const scale = Math.max(0, ...all.map((at) => at.severity ?? 0));
  const items = all.map((at, i) => finding(at, i, scale, curves));
  // The worst finding of each rule about hardware is always shown, however little it costs.
  const isShown = (i) => i < most || (all[i].concern === "hardware" && all.findIndex((at) => at.rule === all[i].rule) === i);
  const list = (some) => some.length > 0 && el("ol", { class: "plain findings" }, some);
  const rest = items.filter((_, i) => !isShown(i));
  const points = { table: { columns: numbers, items: seen, caption: "Seen at single points" } };
  return [
    { when: all.length > 0, note: "largest first, by the estimated share of the step that is lost; estimates overlap and do not add up; \u2014: not known: faults of hardware, then the largest" },
    { when: unjudged !== "", note: `not judged: ${unjudged}` },
    list(items.filter((_, i) => isShown(i))),
    { when: rest.length > 0, fold: `${rest.length} more findings`, look: "rest", blocks: [list(rest)] },
    all.length === 0 ? points : { when: seen.length > 0, fold: `${counted(seen.length, "remark")} on single points`, blocks: [points] }];
}

const mostDeviceWarnings = 4;
/** Joins equal texts of several launches into one, which tells the number of launches. */
const merged = (items, runs) => [...groupBy(items, ({ text }) => text).values()].map((same) =>
  (same.length > 1 && runs > 1 ? { ...same.at(-1), text: `${same[0].text} (${same.length} launches)` } : same.at(-1)));

function checkItem({ verdict, allowed, name, host, device, what }) {
  const where = joined([host, device]);
  const text = `preflight ${verdict}${allowed ? " (allowed)" : ""}, ${name}: ${where ? `${where}: ` : ""}${what ?? ""}`;
  return { grave: verdict === "stop", text, target: "preflight", hardware: true };
}

export const partialText = ({ planned }) => `the run did not finish${planned ? `; it was to measure ${counted(planned, "point")}` : ""}`;

const ofRun = (run) => [
  ...(run.status === "partial" ? [{ grave: true, text: `PARTIAL: ${partialText(run)}`, target: "provenance" }] : []),
  ...run.warnings.map((text) => ({ text })),
  ...(run.preflight?.results ?? []).filter(({ verdict }) => verdict === "stop" || verdict === "warning").map(checkItem),
];

/** Returns a text that says where points {curve, ranks} are: "pp on 4, 8 ranks; dp on 2 ranks". */
function places(found) {
  const all = [...groupBy(found, ({ curve }) => curve)].map(([curve, points]) => `${curve} on ${ranksText(points.map(({ ranks }) => ranks))}`);
  return all.slice(0, 3).join("; ") + (all.length > 3 ? `; and ${all.length - 3} more curves` : "");
}

function ofPoints(curves) {
  const points = curves.flatMap((curve) => [...curve.points, ...curve.skipped].map((point) => ({ curve: curve.short, ...point })));
  const failed = points.filter((point) => point.status === "failed");
  const measured = points.filter((point) => point.status === "ok");
  const reason = failed.map((point) => point.reason).find(Boolean);
  const labels = [...new Set(measured.flatMap((point) => point.labels))];
  const kinds = [
    { grave: true, what: `failed${reason ? ` (${reason})` : ""}`, found: failed },
    { grave: true, what: "wrong results, did not verify", found: measured.filter((point) => point.full.verified === false) },
    ...labels.map((label) => ({
      what: `${label}${unsound.includes(label) ? ", no scaling result" : ""}`, found: measured.filter((point) => point.labels.includes(label)),
    })),
    { what: "not verified", found: measured.filter((point) => point.full.verified === null) },
    { what: "skipped", found: points.filter((point) => point.status === "skipped") },
  ];
  return kinds.filter(({ found }) => found.length > 0).map(({ grave, what, found }) => ({ grave, text: `${what}: ${places(found)}`, target: "curves" }));
}

const ofBenches = () => benches().map(({ point }) => point).filter(({ status }) => status === "failed")
  .map(({ workload, ranks, reason }) => ({ grave: true, text: `failed: ${workload} on ${rankCount(ranks)}${reason ? ` (${reason})` : ""}` }));

function ofLeftOut(report) {
  // A report on one launch has no joined curves; its skipped points are named by other warnings.
  const all = report.runs.length < 2 ? [] : report.curves.flatMap((curve) => curve.left_out);
  const reasons = [...new Set(all.map((at) => at.reason))];
  const text = `left out of the joined curves: ${counted(all.length, "point")} (${reasons.slice(0, 3).join(", ")}${reasons.length > 3 ? ", ..." : ""})`;
  return all.length === 0 ? [] : [{ text, target: "launches" }];
}

/** Returns the warnings about devices. Equal warnings at several points become one. */
function ofDevices(curves) {
  const found = curves.flatMap((curve) => curve.points.flatMap(({ full, ranks }) =>
    (full.device_state?.warnings ?? []).map((text) => ({ text, curve: curve.short, ranks }))));
  const all = [...groupBy(found, ({ text }) => text)].sort((a, b) => b[1].length - a[1].length).map(([text, at]) => `${text}: ${places(at)}`);
  const rest = all.length > mostDeviceWarnings ? [`${all.length - mostDeviceWarnings} more about devices`] : [];
  return [...all.slice(0, mostDeviceWarnings), ...rest].map((text) => ({ text, target: "devices", hardware: true }));
}

const ofPairs = (report) => report.findings.flatMap((at, i) =>
  (at.rule === "slow-pair" ? [{ text: `slow pairs: ${at.sentence}`, target: `finding-${i + 1}`, hardware: true }] : []));

/** Returns the warnings as objects with these keys:
 * - text
 * - grave: true if a number is wrong or missing; these warnings come first
 * - hardware: true if the cause can be repaired; these come next
 * - target: id of the section with more on it */
function warningsOf(report, curves) {
  const { notes } = data;
  const items = [
    ...merged(report.runs.flatMap(ofRun), report.runs.length), ...ofPoints(curves), ...ofBenches(), ...ofLeftOut(report),
    ...report.warnings.map((text) => ({ text, target: report.runs.length > 1 ? "launches" : undefined })),
    ...ofPairs(report), ...ofDevices(curves),
    ...(notes.length > 0 ? [{ text: `this page shows less than the file holds: ${counted(notes.length, "note")}`, target: "notes" }] : []),
  ];
  const rank = ({ grave, hardware }) => (grave ? 0 : hardware ? 1 : 2);
  return items.sort((a, b) => rank(a) - rank(b));
}

const shownAtFirst = { cards: 10, causes: 3, findings: 3, warnings: 4 }; // 10 cards are two rows on a common screen

function machineFact(runs) {
  const machines = runs.map(machineOf);
  const titles = distinctOf(machines.map((at) => at.title));
  if (titles.length === 1) return fact("machine", titles[0], dotted(...machines[0].details));
  return fact("machines", listed(titles, 3), `${titles.length} shapes in ${runs.length} launches`);
}

function ranFact(runs) {
  const scaled = runs.flatMap((run) => run.points.filter((point) => run.curves.some((curve) => curve.points.includes(point.index))));
  const points = runs.flatMap((run) => run.points);
  const of = (key, from = scaled) => distinctOf(from.map((point) => point[key]));
  const others = of("workload", points.filter((point) => !scaled.includes(point)));
  if (scaled.length === 0) return fact("ran", listed(others, 8), listed(of("dtype", points)));
  return fact("ran", listed(of("workload"), 8), dotted(listed(of("model")), listed(of("dtype")), `${of("scaling").join(", ")} scaling`,
    others.length > 0 && `also ${listed(others, 4)}`));
}

function launchFact(runs) {
  const dates = runs.map((run) => run.created).sort();
  const versions = distinctOf(runs.map((run) => run.isoscale_version));
  const hashes = distinctOf(runs.map(({ system }) => system?.git_hash && `git ${system.git_hash}`));
  return fact(runs.length === 1 ? "launch" : `${runs.length} launches`, periodText(dates[0], dates.at(-1)),
    dotted(`Isoscale ${versions.join(", ")}`, hashes.join(", ")));
}

/** Returns badges for a point's labels, and one if its results are wrong or were not checked. */
const badgesOf = ({ labels }, verified) => [
  ...labels.map((text) => ({ text, kind: "warn" })),
  ...(verified === false ? [{ text: "did not verify", kind: "bad" }] : []),
  ...(verified === null ? [{ text: "not verified", kind: "warn" }] : []),
];

/** Shows a curve's largest point; null if that is `point`, or if it has no efficiency. */
function beyond(curve, point) {
  const at = largest(curve.points);
  if (at.ranks === point.ranks || at.efficiency.value === null) return null;
  return el("span", { class: "faint" }, `${rankCount(at.ranks)}: ${percent(at.efficiency.value)}, ${joined(at.labels) || "did not verify"}`);
}

function efficiencyOf(curve, point, scale) {
  if (point.efficiency.value === null || point.ranks === curve.baseline) {
    const why = curve.baseline === null ? "no baseline" : point.ranks === curve.baseline ? "the baseline itself" : "the baseline alone";
    return { value: missing, beside: el("span", { class: "note" }, why) };
  }
  const ends = endsOf(point.efficiency);
  return {
    value: percent(point.efficiency.value),
    beside: [
      ends ? el("span", { class: "note", title: "95% interval" }, `${fixed(100 * ends[0], 1)}\u2013${percent(ends[1])}`) : null,
      el("span", { class: "note faint" }, `against ${curve.perNode ? "a node" : rankCount(curve.baseline)}`)],
    bar: efficiencyBar(point.efficiency.value, ends, scale),
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
    lines: [`${si(point.throughput.value, point.unit)} \u00b7 ${seconds(point.step_time.median)} a step`, beyond(curve, point)],
    badges: badgesOf(point, point.full.verified),
  });
}

function curveCards(curves) {
  const reached = curves.map((curve) => headlineOf(curve.points)?.efficiency.value).filter((value) => value > 0);
  const scale = Math.max(1, ...reached);
  const unit = curves.some((curve) => curve.perNode) ? "node" : "rank";
  return el("div", {},
    note(`efficiency at each curve's largest ${unit} count without a label: throughput per ${unit} against the baseline; the bar's end is ideal; grey: no scaling result`),
    cardGrid(curves.map((curve) => curveCard(curve, scale)), shownAtFirst.cards, "curves"));
}

const benchCard = (point, value, ...lines) => card({
  title: joined([point.workload, point.dtype]), ranks: point.ranks, value, lines, badges: badgesOf(point, point.verified),
});

/** Makes the card of an inference point, which shows its row with the most tokens per second; null
 * if no row has a rate. */
function inferCard({ point }) {
  const rows = point.rows.filter((at) => at.op === "infer" && at.status === "ok" && known(at.tokens_per_second));
  // Rows whose times have intervals are preferred.
  const sure = rows.filter((at) => known(at.tpot?.lower));
  const row = largestBy(sure.length > 0 ? sure : rows, (at) => at.tokens_per_second);
  if (!row) return null;
  const { median, lower, upper, plays } = row.tpot;
  const between = known(lower) ? `, 95%: ${seconds(lower)} to ${seconds(upper)}` : ", too few plays for an interval";
  return benchCard(point, si(row.tokens_per_second, "tokens/s"), `at batch ${row.batch}, ${seconds(median)} per output token${between}; ${plays} plays`);
}

/** Makes the card of a serving point, with the highest rate it sustained; null without rates. */
function serveCard({ point }) {
  const rates = point.rows.filter((at) => at.op === "serve" && at.part === "rate");
  if (rates.length === 0) return null;
  const row = largestBy(rates.filter((at) => !at.saturated), (at) => at.achieved);
  if (!row) return benchCard(point, missing, `no rate was sustained of ${rates.length} tried`);
  return benchCard(point, `${si(row.achieved)} requests/s`, `highest rate sustained; median latency ${seconds(row.latency.median)}, ${row.requests} requests`);
}

const rates = [["busbw", "B/s", "bus bandwidth"], ["flops", "FLOP/s", "rate"], ["bandwidth", "B/s", "bandwidth"]];

/** Makes the card of a micro-benchmark, which shows the highest value of the first of `rates` that
 * its rows have; null if they have none. */
function peakCard({ point }) {
  for (const [key, unit, name] of rates) {
    const values = point.rows.map((row) => row[key]).filter(known);
    if (values.length > 0) return benchCard(point, si(Math.max(...values), unit), `highest ${name} of ${values.length} rows`);
  }
  return null;
}

/** Makes the cards of inference, serving and, if there are no curves, micro-benchmarks. */
function benchCards(hasCurves) {
  const makers = hasCurves ? [inferCard, serveCard] : [inferCard, serveCard, peakCard];
  const cards = makers.flatMap((make) => benches().map(make)).filter(Boolean).slice(0, shownAtFirst.cards);
  if (cards.length > 0) return cardGrid(cards, shownAtFirst.cards);
  return hasCurves ? null : note("no point was measured");
}

const tracingShare = (point) => lossesOf(point).find((loss) => loss.cause === tracing)?.share ?? 0;

/** Returns the causes that lose most time, each at the headlineOf() point where it costs most. */
function causes(curves) {
  const all = curves.flatMap((curve) => {
    const point = headlineOf(curve.points);
    if (!point || !explains(point)) return [];
    return lossesOf(point).filter((loss) => loss.share > 0 && loss.cause !== tracing).map((loss) => ({ ...loss, curve, point }));
  });
  // Losses at points that are not sound are shown only if there are no others.
  const sound = all.filter((at) => isSound(at.point));
  const largestFirst = (sound.length > 0 ? sound : all).sort((a, b) => b.share - a.share);
  return [...groupBy(largestFirst, ({ cause }) => cause).values()].slice(0, shownAtFirst.causes)
    .map(([worst, ...others]) => ({ ...worst, others: others.filter(({ share }) => share >= 0.01).length }));
}

const placeOf = (curve, point) => `${curve.short} on ${rankCount(point.ranks)}`;

function causeOf(at, scale) {
  const { curve, point, others } = at;
  const labels = joined(point.labels.filter((name) => name === "few-steps" || unsound.includes(name)));
  const where = joined([placeOf(curve, point), point.launch && `launch ${point.launch}`]);
  const more = others > 0 ? `, ${counted(others, "other curve")} too` : "";
  return causeItem(at, scale, ", ", el("span", { class: "faint" }, `${where}${labels && ` (${labels})`}${more}`));
}

/** Tells by how much traced steps differ from others at these causes' points; null if below 5%. */
function tracingText(items) {
  const points = new Map(items.map((at) => [at.point, at.curve]));
  const differing = [...points].filter(([point]) => Math.abs(tracingShare(point)) > 0.05).map(([point, curve]) =>
    `${percent(Math.abs(tracingShare(point)), 0)}${items.length > 1 ? ` (${placeOf(curve, point)})` : ""}`);
  return differing.length === 0 ? null : `traced steps differ from the others by ${differing.join(", ")}: the causes below are uncertain`;
}

/** Names the points at which the causes do not add up to the loss; null if there are none. */
function unexplainedText(curves) {
  const parts = curves.map((curve) => [curve, headlineOf(curve.points)])
    .filter(([, point]) => point?.full.waterfall && !explains(point))
    .map(([curve, point]) => `${placeOf(curve, point)} (traced steps differ by ${percent(tracingShare(point))})`);
  return parts.length === 0 ? null : `unexplained, too few steps or traced steps unlike the others: ${listed(parts, 4)}`;
}

function causesPanel(curves) {
  const items = causes(curves);
  const texts = [unexplainedText(curves), tracingText(items)].filter(Boolean);
  if (items.length === 0 && texts.length === 0) return null;
  const scale = Math.max(...items.map((at) => at.share));
  return panel("Where time is lost", "waterfall", "all causes", texts.map(note), el("ol", { class: "plain" }, items.map((at) => causeOf(at, scale))));
}

/** Makes the panel with the worst finding of each rule, up to three. Faults of hardware come first,
 * and all of them are shown, even if they are more, since they can be repaired. */
function findingsPanel(curves) {
  const all = data.report.findings;
  if (all.length === 0) return null;
  const first = all.map((at, i) => ({ at, i })).filter(({ at, i }) => all.findIndex((other) => other.rule === at.rule) === i);
  const faults = first.filter(({ at }) => at.concern === "hardware");
  const ranked = [...faults, ...first.filter((one) => !faults.includes(one))];
  const items = ranked.slice(0, Math.max(shownAtFirst.findings, faults.length)).map(({ at, i }) => el("li", {},
    el("a", { href: `#finding-${i + 1}` }, at.sentence), el("span", { class: "faint" }, at.curve ? ` \u00b7 ${whereOf(at, curves)}` : "")));
  const what = faults.length > 0 ? "hardware first, most severe of each kind" : "most severe of each kind";
  return panel(`Findings: ${what}`, "findings", all.length > items.length ? `all ${all.length}` : "what to do", el("ol", { class: "plain lines" }, items));
}

function reportWarnings(curves) {
  const all = warningsOf(data.report, curves);
  const isMeasured = data.report.runs.some((run) => run.points.some((point) => point.status === "ok"));
  if (!isMeasured) all.unshift({ grave: true, text: "no point was measured" });
  return warningsPanel(all, shownAtFirst.warnings, "none: every point was measured and verified as asked");
}

export const overviewBlocks = ({ curves, runs }) => [
  el("dl", { class: "facts" }, machineFact(runs), ranFact(runs), launchFact(runs)),
  el("div", {}, curves.length > 0 ? curveCards(curves) : null, benchCards(curves.length > 0)),
  el("div", { class: "panels" }, causesPanel(curves), findingsPanel(curves), reportWarnings(curves))];
