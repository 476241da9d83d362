// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
import { charts, drawAll } from "./chart.js";
import { benches, curves, data } from "./data.js";
import { el } from "./dom.js";
import { collectivesSection } from "./sections/collectives.js";
import { compareSections } from "./sections/compare.js";
import { curvesSection } from "./sections/curves.js";
import { devicesSection } from "./sections/devices.js";
import { gemmSection } from "./sections/gemm.js";
import { memorySection, overlapSection } from "./sections/memory.js";
import { pairsSection } from "./sections/pairs.js";
import { ranksSection } from "./sections/ranks.js";
import { stepsSection } from "./sections/steps.js";
import { timelineSection } from "./sections/timeline.js";
import { detailed } from "./select.js";
import { nextTheme } from "./theme.js";

/** The sections of a page, in order; null = nothing to show. Each: {id, title, content}. */
function sections() {
  if (data.kind === "compare") return compareSections(data.compare).filter((section) => section !== null);
  const all = curves();
  const groups = detailed(all);
  const micro = benches();
  return [
    curvesSection(all),
    timelineSection(groups),
    ranksSection(groups),
    stepsSection(groups),
    devicesSection(groups),
    collectivesSection(micro),
    gemmSection(micro),
    pairsSection(micro),
    memorySection(micro),
    overlapSection(micro),
  ].filter((section) => section !== null);
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

function build() {
  const shown = sections();
  const title = data.kind === "compare" ? "Isoscale comparison" : "Isoscale report";
  document.title = title;
  document.getElementById("page").replaceChildren(
    el("header", {}, el("h1", {}, title), themeButton(),
      el("nav", { "aria-label": "sections" }, shown.map(({ id, title: name }) => el("a", { href: `#${id}` }, name)))),
    ...shown.map(({ id, title: name, content }) => el("section", { id, "aria-label": name }, el("h2", {}, name), content)),
    el("footer", {}, (data.notes ?? []).map((note) => el("p", { class: "note" }, note)),
      el("p", {}, `Written by Isoscale ${data.isoscale_version}.`)),
  );
}

build();
// For scripts: isoscale.charts.efficiency.instance is an ECharts instance once it is drawn.
window.isoscale = { charts, data, drawAll };
