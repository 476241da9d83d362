// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Shows the tree of efficiencies of the POP Centre of Excellence, by rank count.
import { panel } from "../blocks.js";
import { largest } from "../causes.js";
import { launchesText } from "../data.js";
import { el } from "../dom.js";
import { known, percent } from "../format.js";
import { oneOf } from "../select.js";
import { count, share, words } from "../table.js";

const mostSmall = 6;

/** Each efficiency is the product of those one level below it. */
const tree = [
  ["global", "global", 0, "parallel \u00d7 computation scalability"],
  ["parallel", "parallel", 1, "load balance \u00d7 communication"],
  ["load_balance", "load balance", 2, "mean useful time / largest"],
  ["communication", "communication", 2, "serialisation \u00d7 transfer"],
  ["serialisation", "serialisation", 3, "largest useful time / step on a network that takes no time"],
  ["transfer", "transfer", 3, "that step / the measured one"],
  ["computation_scalability", "computation scalability", 1, "work \u00d7 speed, against the baseline"],
  ["work_scalability", "work", 2, "FLOP per unit of work, baseline / here"],
  ["speed_scalability", "speed", 2, "FLOP per useful second, here / baseline"],
];

// By POP's own guidelines, values from 80% on are acceptable.
const fair = 0.8;

/** Makes a cell whose colour says how good a value is. */
function cell(value) {
  const isFair = value >= fair;
  const strength = isFair ? (Math.min(value, 1) - fair) / (1 - fair) : Math.min(1, (fair - value) / 0.4);
  const heat = known(value) ? { class: `number heat ${isFair ? "fair" : "poor"}`, style: `--heat:${(8 + 44 * strength).toFixed(0)}%` } : { class: "number" };
  return el("td", heat, percent(value));
}

const dagger = ({ labels }) =>
  (labels.length > 0 ? el("span", { class: "dagger", title: labels.join(", ") }, "\u2020") : null);

/** Makes a panel with a table of efficiencies, which scrolls in a narrow window. */
const treePanel = (title, label, heads, rows, ...notes) => panel(title, null, "",
  el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `POP efficiencies ${label}` },
    el("table", { class: "tree" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows))),
  notes.filter(Boolean).map((text) => el("p", { class: "note" }, text)));

const hasTree = (point) => Boolean(point.full.pop);

function treeOf(curve) {
  const points = curve.points.filter(hasTree);
  const labelled = points.filter((point) => point.labels.length > 0).map((point) => `${point.ranks}: ${point.labels.join(", ")}`);
  return treePanel(curve.short, `of ${curve.short}`,
    [el("th", { scope: "col" }, "ranks"), points.map((point) => el("th", { scope: "col", class: "number" }, String(point.ranks), dagger(point)))],
    tree.map(([key, name, level, what]) => el("tr", { class: level === 0 ? "top" : null },
      el("th", { scope: "row", class: `level-${level}`, title: what }, name), points.map((point) => cell(point.full.pop[key])))),
    launchesText(points), labelled.length > 0 ? `\u2020 ${labelled.join("; ")}` : "");
}

/** Shows all curves at their largest rank count, one line each. */
const allCurves = (curves) => treePanel("At the largest rank count", "at the largest rank count",
  [el("th", { scope: "col" }, "curve"), el("th", { scope: "col", class: "number" }, "ranks"),
    tree.map(([, name, , what]) => el("th", { scope: "col", class: "number wrapped", title: what }, name))],
  curves.map((curve) => {
    const point = largest(curve.points.filter(hasTree));
    return el("tr", {}, el("th", { scope: "row" }, curve.short),
      el("td", { class: "number" }, String(point.ranks), dagger(point)), tree.map(([key]) => cell(point.full.pop[key])));
  }));

const columns = [words("curve"), count("ranks"), ...tree.map(([key, title]) => share(title, ({ full }) => full.pop[key])),
  words("labels", ({ labels }) => labels.join(" "))];

/** @param {import("../data.js").Curve[]} all */
export function popSection(all) {
  const curves = all.filter((curve) => curve.points.some(hasTree));
  if (curves.length === 0) return null;
  const items = curves.flatMap((curve) => curve.points.filter(hasTree).map((point) => ({ curve: curve.short, ...point })));
  return {
    id: "pop",
    title: "POP",
    heading: "POP efficiencies",
    look: "stacked",
    blocks: [
      { note: "each is the product of those one level below it; green from 80% on, which POP calls acceptable; \u2020 labelled" },
      curves.length > 1 ? allCurves(curves) : null,
      curves.length > mostSmall ? oneOf("curve", curves.map((curve) => curve.short), (i) => [{ charts: [treeOf(curves[i])] }])
        : { charts: curves.map(treeOf) },
      { fold: "table", look: "numbers", blocks: [{ table: { columns, items, caption: "POP efficiencies" } }] }],
  };
}
