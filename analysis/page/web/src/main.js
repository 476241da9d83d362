// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
import { charts, drawAll } from "./chart.js";
import { benches, curves, data } from "./data.js";
import { el } from "./dom.js";
import { rankCount } from "./format.js";
import { distinctOf } from "./machine.js";
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
import { predictSections, titleOfPrediction } from "./sections/predict.js";
import { preflightSection } from "./sections/preflight.js";
import { provenanceSection } from "./sections/provenance.js";
import { ranksSection } from "./sections/ranks.js";
import { stepsSection } from "./sections/steps.js";
import { timelineSection } from "./sections/timeline.js";
import { waterfallSection } from "./sections/waterfall.js";
import { detailed } from "./select.js";
import { nextTheme } from "./theme.js";

/**
 * The sections of a page, in order; a function that gives null has nothing to show. Each is {id,
 * title, content, heading, quiet}; `heading` replaces a title that is too short for the section,
 * and a `quiet` heading is hidden.
 */
function sections() {
  if (data.kind === "compare") return compareSections(data.compare);
  if (data.kind === "index") return indexSections(data.report).map((section) => () => section);
  if (data.kind === "predict") return predictSections(data.prediction);
  const all = curves();
  const groups = detailed(all);
  const micro = benches();
  return [
    () => overviewSection(all),
    () => findingsSection(all),
    () => curvesSection(all),
    () => launchesSection(all),
    () => breakdownSection(all),
    () => waterfallSection(all),
    () => popSection(all),
    () => timelineSection(groups),
    () => ranksSection(groups),
    () => stepsSection(groups),
    () => devicesSection(groups),
    () => collectivesSection(micro),
    () => gemmSection(micro),
    () => pairsSection(micro),
    () => memorySection(micro),
    () => overlapSection(micro),
    () => inferenceSection(micro),
    () => servingSection(micro),
    () => preflightSection(),
    () => provenanceSection(),
  ];
}

/** Shows an error in place of a section that cannot be drawn, so that the others are drawn. */
function attempt(make, i) {
  try {
    return make();
  } catch (error) {
    console.error(error);
    return { id: `broken-${i}`, title: "Not drawn", content: el("p", { class: "bad" }, `This section could not be drawn: ${error.message}`) };
  }
}

function themeButton() {
  const button = el("button", {
    type: "button",
    class: "quiet",
    title: "colours: as the system, light, dark",
    on: { click: () => { button.textContent = `colours: ${nextTheme()}`; } },
  }, "colours: auto");
  return button;
}

/** Returns "Isoscale: dp, tp on 64 ranks" */
function titleOf({ runs }) {
  const workloads = distinctOf(runs.flatMap((run) => run.curves.length > 0 ? run.points.filter((point) => point.efficiency !== null) : run.points).map((point) => point.workload));
  const ranks = Math.max(...runs.map((run) => run.ranks));
  return `Isoscale: ${workloads.slice(0, 4).join(", ") || "report"} on ${rankCount(ranks)}`;
}

/** Returns "Isoscale: A vs B, dp, pp on 64 ranks" */
function titleOfComparison({ sides, curves: compared }) {
  const has = (side, ranks) => side.points.some((point) => point.ranks === ranks);
  // Only rank counts that all sides of a curve have are compared.
  const ranks = Math.max(0, ...compared.flatMap((curve) => curve.sides[0].points.map((point) => point.ranks)
    .filter((count) => curve.sides.every((side) => has(side, count)))));
  const workloads = distinctOf(compared.map((curve) => curve.workload));
  const what = workloads.length > 0 ? `, ${workloads.slice(0, 4).join(", ")}${ranks > 0 ? ` on ${rankCount(ranks)}` : ""}` : "";
  return `Isoscale: ${sides.map((side) => side.name).join(" vs ")}${what}`;
}

function titleOfPage() {
  if (data.kind === "compare") return titleOfComparison(data.compare);
  if (data.kind === "predict") return titleOfPrediction(data.prediction);
  return data.kind === "index" ? "Isoscale index" : titleOf(data.report);
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
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
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
    ...shown.map(({ id, title: name, heading = name, quiet, content }) =>
      el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title`, class: quiet ? "unseen" : null }, heading), content)),
    el("footer", {}, notes(), el("p", { class: "note" }, `Written by Isoscale ${data.isoscale_version}.`)),
  );
  watch();
  // The browser looked for the anchor before the element existed, so the address is followed again.
  follow();
  window.addEventListener("hashchange", follow);
}

build();
// Scripts use this: isoscale.charts.efficiency.instance is an ECharts instance once it is drawn.
window.isoscale = { charts, data, drawAll };
