// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
import { content } from "./blocks_and_choices.js";
import { charts, drawAll } from "./chart.js";
import { benches, curves, data, distinctOf, shortTitles } from "./data.js";
import { button, el, note } from "./page_elements.js";
import { nextTheme, sectionInAddress } from "./theme_and_filter.js";
import { rankCount } from "./format.js";
import { breakdownBlocks } from "./sections/breakdown.js";
import { compareCurvesBlocks, differencesBlocks, unlikeBlocks, verdictBlocks } from "./sections/compare.js";
import { curvesBlocks, indexBlocks, indexHeading, launchesBlocks, overTimeBlocks } from "./sections/curves_and_run_index.js";
import { popBlocks, waterfallBlocks } from "./sections/losses.js";
import { findingsBlocks, overviewBlocks } from "./sections/overview.js";
import {
  bestBlocks, bestHeading, intervalBlocks, numbersBlocks, predictedCurves, predictedCurvesBlocks, predictedHeading,
  predictedLossBlocks, predictedStepBlocks, predictionBlocks,
} from "./sections/predict.js";
import { preflightBlocks, provenanceBlocks } from "./sections/provenance_and_preflight.js";
import { pairsBlocks, ranksBlocks } from "./sections/rank_heat_maps.js";
import { collectivesBlocks, gemmBlocks, inferenceBlocks, memoryBlocks, overlapBlocks, servingBlocks } from "./sections/benchmarks_and_serving.js";
import { devicesBlocks, stepsBlocks } from "./sections/steps_and_devices.js";
import { timelineBlocks } from "./sections/timeline.js";

/** The sections of each kind of page, in order; those that have nothing to show are left out:
 * - blocks: makes the section's blocks from the result of `sources` for this kind of page
 * - title: the name in the list of sections
 * - heading: the section's heading, if the title is too short for that; a text, or a function like
 *   `blocks` that returns it
 * - quiet: true if the heading is hidden; and look: the CSS class of the content */
const sections = {
  report: [
    { id: "overview", title: "Overview", blocks: overviewBlocks, quiet: true },
    { id: "findings", title: "Findings", blocks: findingsBlocks },
    { id: "curves", title: "Scaling", blocks: curvesBlocks },
    { id: "launches", title: "Launches", blocks: launchesBlocks, look: "stacked" },
    { id: "breakdown", title: "Step", heading: "Where a step goes", blocks: breakdownBlocks, look: "stacked" },
    { id: "waterfall", title: "Lost time", heading: "Where time is lost", blocks: waterfallBlocks },
    { id: "pop", title: "POP", heading: "POP efficiencies", blocks: popBlocks, look: "stacked" },
    { id: "timeline", title: "Traced step", heading: "A traced step", blocks: timelineBlocks },
    { id: "ranks", title: "Ranks", blocks: ranksBlocks },
    { id: "steps", title: "Steps", blocks: stepsBlocks },
    { id: "devices", title: "Devices", blocks: devicesBlocks },
    { id: "collectives", title: "Collectives", blocks: collectivesBlocks },
    { id: "gemm", title: "GEMM", heading: "Matrix multiplication", blocks: gemmBlocks },
    { id: "pairs", title: "Pairs", heading: "Pairs of ranks", blocks: pairsBlocks },
    { id: "memory", title: "Memory", blocks: memoryBlocks },
    { id: "overlap", title: "Overlap", blocks: overlapBlocks },
    { id: "inference", title: "Inference", blocks: inferenceBlocks },
    { id: "serving", title: "Serving", blocks: servingBlocks },
    { id: "preflight", title: "Preflight", blocks: preflightBlocks },
    { id: "provenance", title: "Provenance", blocks: provenanceBlocks },
  ],
  compare: [
    { id: "verdict", title: "Verdict", blocks: verdictBlocks },
    { id: "differences", title: "Why", blocks: differencesBlocks },
    { id: "compare-curves", title: "Curves", blocks: compareCurvesBlocks },
    { id: "unlike", title: "Differences", blocks: unlikeBlocks },
  ],
  index: [
    { id: "index", title: "Runs", heading: indexHeading, blocks: indexBlocks },
    { id: "over-time", title: "Over time", heading: "Throughput over time", blocks: overTimeBlocks },
  ],
  predict: [
    { id: "overview", title: "Overview", blocks: predictionBlocks, quiet: true },
    { id: "curves", title: "Curve", heading: predictedHeading, blocks: predictedCurvesBlocks, look: "stacked" },
    { id: "interval", title: "Interval", heading: "Where the interval comes from", blocks: intervalBlocks },
    { id: "step", title: "Step", heading: "Where a step would go", blocks: predictedStepBlocks },
    { id: "waterfall", title: "Lost time", heading: "Where time would be lost", blocks: predictedLossBlocks },
    { id: "best", title: "Best", heading: bestHeading, blocks: bestBlocks, look: "stacked" },
    { id: "numbers", title: "Numbers", heading: "All numbers", blocks: numbersBlocks, look: "stacked" },
  ],
};

/** Returns the title of a report's page: "Isoscale: dp, tp on 64 ranks". */
function titleOf({ runs }) {
  const measured = (run) => (run.curves.length > 0 ? run.points.filter((point) => point.efficiency !== null) : run.points);
  const workloads = distinctOf(runs.flatMap(measured).map((point) => point.workload));
  const ranks = Math.max(...runs.map((run) => run.ranks));
  return `Isoscale: ${workloads.slice(0, 4).join(", ") || "report"} on ${rankCount(ranks)}`;
}

/** Returns the title of a comparison's page: "Isoscale: A vs B, dp, pp on 64 ranks". */
function titleOfComparison({ sides, curves: compared }) {
  const has = (side, ranks) => side.points.some((point) => point.ranks === ranks);
  // A comparison covers only the rank counts that all sides of a curve have.
  const ranks = Math.max(0, ...compared.flatMap((curve) => curve.sides[0].points.map((point) => point.ranks)
    .filter((count) => curve.sides.every((side) => has(side, count)))));
  const workloads = distinctOf(compared.map((curve) => curve.workload));
  const what = workloads.length > 0 ? `, ${workloads.slice(0, 4).join(", ")}${ranks > 0 ? ` on ${rankCount(ranks)}` : ""}` : "";
  return `Isoscale: ${sides.map((side) => side.name).join(" vs ")}${what}`;
}

/** For each kind of page, returns its title and the input of its sections: the JSON of --format
 * json or its runs, and curves (data.js, sections/predict.js), short names of compared curves, or
 * the points of micro-benchmarks as {run, point}. */
const sources = {
  report: ({ report }) => ({ runs: report.runs, curves: curves(), micro: benches(), title: titleOf(report) }),
  compare: ({ compare }) =>
    ({ compare, names: shortTitles(compare.curves.map((curve) => curve.title)), title: titleOfComparison(compare) }),
  index: ({ report }) => ({ ...report, title: "Isoscale index" }),
  predict: ({ prediction }) => {
    const ranks = Math.max(...prediction.curve.points.map((point) => point.ranks));
    return { prediction, curves: predictedCurves(prediction), title: `Isoscale: ${prediction.workload} predicted on ${rankCount(ranks)}` };
  },
};

/** Makes a section, or an error message in its place, so that the others are still shown. */
function made({ blocks, heading, look, ...section }, i, from) {
  try {
    const element = content(blocks(from) || [], look);
    return element.hasChildNodes() && { ...section, heading: typeof heading === "function" ? heading(from) : heading, element };
  } catch (error) {
    console.error(error);
    return { id: `broken-${i}`, title: "Not drawn", element: el("p", { class: "bad" }, `This section could not be drawn: ${error.message}`) };
  }
}

/** Makes links to the sections; the link to the section on the screen is marked and in view. */
function links(shown, elements) {
  const all = shown.map(({ id, title }) => el("a", { href: `#${id}` }, title));
  const nav = el("nav", { "aria-label": "sections", tabindex: -1 }, all);
  const seen = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) isIntersecting ? seen.add(target.id) : seen.delete(target.id);
    const current = shown.findIndex(({ id }) => seen.has(id));
    all.forEach((link, i) => {
      if (i !== current) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        nav.scrollTo({ left: link.offsetLeft - nav.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2 });
      }
    });
  }, { rootMargin: "-15% 0px -60% 0px" });
  for (const element of elements) observer.observe(element);
  return nav;
}

const notesOf = ({ notes }) => (notes.length === 0 ? null : el("section", { id: "notes", "aria-label": "notes" },
  el("h3", {}, "Left out of this page"), el("ul", {}, notes.map((text) => el("li", { class: "note" }, text)))));

/** Shows the element that the page's address names, and opens it if it is folded. */
function follow() {
  const target = document.getElementById(sectionInAddress());
  if (!target) return;
  for (let around = target.querySelector(":scope > details.finding") ?? target; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
  }
  target.scrollIntoView();
}

function build() {
  const from = sources[data.kind](data);
  const shown = sections[data.kind].map((section, i) => made(section, i, from)).filter(Boolean);
  const elements = shown.map(({ id, title: name, heading = name, quiet, element }) =>
    el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title`, class: quiet ? "unseen" : null }, heading), element));
  const themeButton = button("colours: auto", () => { themeButton.textContent = `colours: ${nextTheme()}`; },
    { title: "colours: as the system, light, dark" });
  document.title = from.title;
  document.getElementById("page").replaceChildren(
    el("header", {}, el("h1", {}, el("a", { href: "#page", title: from.title }, "Isoscale")), links(shown, elements), themeButton),
    ...elements,
    el("footer", {}, notesOf(data), note(`Written by Isoscale ${data.isoscale_version}.`)),
  );
  // The browser looked for the element in the address before it existed, so this is done again.
  follow();
  window.addEventListener("hashchange", follow);
}

build();
// For scripts: isoscale.charts.efficiency.instance is an ECharts instance once the chart is drawn.
window.isoscale = { charts, data, drawAll };
