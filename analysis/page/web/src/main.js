// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
import { content } from "./blocks.js";
import { charts, drawAll } from "./chart.js";
import { benches, curves, data } from "./data.js";
import { button, el } from "./dom.js";
import { sectionInAddress } from "./filter.js";
import { distinctOf, rankCount } from "./format.js";
import { breakdownSection } from "./sections/breakdown.js";
import { collectivesSection } from "./sections/collectives.js";
import { compareSections } from "./sections/compare.js";
import { curvesSection } from "./sections/curves.js";
import { devicesSection } from "./sections/devices.js";
import { findingsSection } from "./sections/findings.js";
import { gemmSection } from "./sections/gemm.js";
import { indexSections } from "./sections/index.js";
import { inferenceSection, servingSection } from "./sections/inference.js";
import { launchesSection } from "./sections/launches.js";
import { memorySection, overlapSection } from "./sections/memory.js";
import { overviewSection } from "./sections/overview.js";
import { pairsSection } from "./sections/pairs.js";
import { popSection } from "./sections/pop.js";
import { predictSections } from "./sections/predict.js";
import { preflightSection } from "./sections/preflight.js";
import { provenanceSection } from "./sections/provenance.js";
import { ranksSection } from "./sections/ranks.js";
import { stepsSection } from "./sections/steps.js";
import { timelineSection } from "./sections/timeline.js";
import { waterfallSection } from "./sections/waterfall.js";
import { detailed } from "./select.js";
import { nextTheme } from "./theme.js";

/**
 * A section of a page. A function that makes a section returns null if it has nothing to show.
 * @typedef {object} Section
 * @property {string} id
 * @property {string} title in the list of sections
 * @property {string} [heading] replaces a title that is too short for the section
 * @property {boolean} [quiet] the heading is hidden
 * @property {string} [look] class of the content
 * @property {import("./blocks.js").Block[]} blocks
 */

/** The functions that make the sections of a report, in order, by the data that they read. */
const ofCurves = [overviewSection, findingsSection, curvesSection, launchesSection, breakdownSection, waterfallSection, popSection];
const ofPoints = [timelineSection, ranksSection, stepsSection, devicesSection];
const ofBenches = [collectivesSection, gemmSection, pairsSection, memorySection, overlapSection, inferenceSection, servingSection];

/** Returns the functions that make the sections of the page, in order. */
function sections() {
  if (data.kind === "compare") return compareSections(data.compare);
  if (data.kind === "index") return indexSections(data.report);
  if (data.kind === "predict") return predictSections(data.prediction);
  const all = curves();
  const groups = detailed(all);
  const micro = benches();
  const each = (makers, from) => makers.map((make) => () => make(from));
  return [...each(ofCurves, all), ...each(ofPoints, groups), ...each(ofBenches, micro), preflightSection, provenanceSection];
}

/** Makes a section; an error replaces a section that cannot be drawn, and the others are kept. */
function attempt(make, i) {
  try {
    const section = make();
    return section && { ...section, element: content(section.blocks, section.look) };
  } catch (error) {
    console.error(error);
    const element = el("p", { class: "bad" }, `This section could not be drawn: ${error.message}`);
    return { id: `broken-${i}`, title: "Not drawn", element };
  }
}

function themeButton() {
  const made = button("colours: auto", () => { made.textContent = `colours: ${nextTheme()}`; },
    { title: "colours: as the system, light, dark" });
  return made;
}

/** Returns the title of the page of a report: "Isoscale: dp, tp on 64 ranks". */
function titleOf({ runs }) {
  const measured = (run) => (run.curves.length > 0 ? run.points.filter((point) => point.efficiency !== null) : run.points);
  const workloads = distinctOf(runs.flatMap(measured).map((point) => point.workload));
  const ranks = Math.max(...runs.map((run) => run.ranks));
  return `Isoscale: ${workloads.slice(0, 4).join(", ") || "report"} on ${rankCount(ranks)}`;
}

/** Returns the title of the page of a comparison: "Isoscale: A vs B, dp, pp on 64 ranks". */
function titleOfComparison({ sides, curves: compared }) {
  const has = (side, ranks) => side.points.some((point) => point.ranks === ranks);
  // A comparison covers only the rank counts that all sides of a curve have.
  const ranks = Math.max(0, ...compared.flatMap((curve) => curve.sides[0].points.map((point) => point.ranks)
    .filter((count) => curve.sides.every((side) => has(side, count)))));
  const workloads = distinctOf(compared.map((curve) => curve.workload));
  const what = workloads.length > 0 ? `, ${workloads.slice(0, 4).join(", ")}${ranks > 0 ? ` on ${rankCount(ranks)}` : ""}` : "";
  return `Isoscale: ${sides.map((side) => side.name).join(" vs ")}${what}`;
}

function titleOfPage() {
  const { kind, compare, prediction, report } = data;
  if (kind === "compare") return titleOfComparison(compare);
  if (kind !== "predict") return kind === "index" ? "Isoscale index" : titleOf(report);
  const ranks = Math.max(...prediction.curve.points.map((point) => point.ranks));
  return `Isoscale: ${prediction.workload} predicted on ${rankCount(ranks)}`;
}

function links(shown) {
  const byId = new Map(shown.map(({ id, title }) => [id, el("a", { href: `#${id}` }, title)]));
  const nav = el("nav", { "aria-label": "sections", tabindex: -1 }, [...byId.values()]);
  // The link to the section below the header is marked and kept in view.
  const seen = new Set();
  const mark = () => {
    const current = shown.find(({ id }) => seen.has(id))?.id;
    for (const [id, link] of byId) {
      if (id !== current) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        nav.scrollTo({ left: link.offsetLeft - nav.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2 });
      }
    }
  };
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
    mark();
  }, { rootMargin: "-15% 0px -60% 0px" });
  return { nav, watch: () => { for (const { id } of shown) observer.observe(document.getElementById(id)); } };
}

function notes() {
  const all = data.notes ?? [];
  return all.length === 0 ? null : el("section", { id: "notes", "aria-label": "notes" },
    el("h3", {}, "Left out of this page"), el("ul", {}, all.map((note) => el("li", { class: "note" }, note))));
}

/** Shows the element that the address names, and opens it if it is closed. */
function follow() {
  const target = document.getElementById(sectionInAddress());
  if (!target) return;
  for (let around = target.querySelector(":scope > details.finding") ?? target; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
  }
  target.scrollIntoView();
}

function build() {
  const shown = sections().map(attempt).filter((section) => section !== null);
  const title = titleOfPage();
  const { nav, watch } = links(shown);
  document.title = title;
  document.getElementById("page").replaceChildren(
    el("header", {}, el("h1", {}, el("a", { href: "#page", title }, "Isoscale")), nav, themeButton()),
    ...shown.map(({ id, title: name, heading = name, quiet, element }) =>
      el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title`, class: quiet ? "unseen" : null }, heading), element)),
    el("footer", {}, notes(), el("p", { class: "note" }, `Written by Isoscale ${data.isoscale_version}.`)),
  );
  watch();
  // The browser looked for the anchor before the element existed, so the address is followed again.
  follow();
  window.addEventListener("hashchange", follow);
}

build();
// Scripts can use this object: isoscale.charts.efficiency.instance is an ECharts instance once the
// chart is drawn.
window.isoscale = { charts, data, drawAll };
