// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The tree of efficiencies of the POP Centre of Excellence, by rank count.
import { largest } from "../causes.js";
import { launchesText } from "../data.js";
import { el } from "../dom.js";
import { percent } from "../format.js";
import { oneOf } from "../select.js";
import { table } from "../table.js";

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

/** Returns the colour of a cell and its strength in percent. */
function heat(value) {
  if (typeof value !== "number") return {};
  const isFair = value >= fair;
  const strength = isFair ? (Math.min(value, 1) - fair) / (1 - fair) : Math.min(1, (fair - value) / 0.4);
  return { class: `heat ${isFair ? "fair" : "poor"}`, style: `--heat:${(8 + 44 * strength).toFixed(0)}%` };
}

function cell(value) {
  const { class: kind = "", style } = heat(value);
  return el("td", { class: `number ${kind}`.trim(), style }, percent(value));
}

function dagger(point) {
  return point.labels.length > 0 ? el("span", { class: "dagger", title: point.labels.join(", ") }, "\u2020") : null;
}

function treeOf(curve) {
  const points = curve.points.filter((point) => point.full.pop);
  return el("div", { class: "panel" },
    el("h3", {}, curve.short),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `POP efficiencies of ${curve.short}` },
      el("table", { class: "tree" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "ranks"),
          points.map((point) => el("th", { scope: "col", class: "number" }, String(point.ranks), dagger(point))))),
        el("tbody", {}, tree.map(([key, name, level, what]) => el("tr", { class: level === 0 ? "top" : null },
          el("th", { scope: "row", class: `level-${level}`, title: what }, name), points.map((point) => cell(point.full.pop[key]))))))),
    launchesText(points) ? el("p", { class: "note" }, launchesText(points)) : null,
    labelsOf(points));
}

function labelsOf(points) {
  const labelled = points.filter((point) => point.labels.length > 0);
  if (labelled.length === 0) return null;
  return el("p", { class: "note" }, `\u2020 ${labelled.map((point) => `${point.ranks}: ${point.labels.join(", ")}`).join("; ")}`);
}

/** Shows all curves at their largest rank count, one line each. */
function allCurves(curves) {
  return el("div", { class: "panel" },
    el("h3", {}, "At the largest rank count"),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "POP efficiencies at the largest rank count" },
      el("table", { class: "tree" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "curve"), el("th", { scope: "col", class: "number" }, "ranks"),
          tree.map(([, name, , what]) => el("th", { scope: "col", class: "number wrapped", title: what }, name)))),
        el("tbody", {}, curves.map((curve) => {
          const point = largest(curve.points.filter((at) => at.full.pop));
          return el("tr", {}, el("th", { scope: "row" }, curve.short),
            el("td", { class: "number" }, String(point.ranks), dagger(point)), tree.map(([key]) => cell(point.full.pop[key])));
        })))));
}

function numbers(curves) {
  const columns = [{ title: "curve" }, { title: "ranks", number: true },
    ...tree.map(([, title]) => ({ title, number: true, text: (value) => percent(value) })), { title: "labels" }];
  const rows = curves.flatMap((curve) => curve.points.filter((point) => point.full.pop).map((point) =>
    [curve.short, point.ranks, ...tree.map(([key]) => point.full.pop[key]), point.labels.join(" ")]));
  return el("details", { class: "numbers" }, el("summary", {}, "table"), table(columns, rows, { caption: "POP efficiencies" }));
}

/** @param {import("../data.js").Curve[]} all */
export function popSection(all) {
  const curves = all.filter((curve) => curve.points.some((point) => point.full.pop));
  if (curves.length === 0) return null;
  const grid = (shown) => el("div", { class: "charts" }, shown.map(treeOf));
  return {
    id: "pop",
    title: "POP",
    heading: "POP efficiencies",
    content: el("div", { class: "stacked" },
      el("p", { class: "note" }, "each is the product of those one level below it; green from 80% on, which POP calls acceptable; \u2020 labelled"),
      curves.length > 1 ? allCurves(curves) : null,
      curves.length > mostSmall ? oneOf("curve", curves.map((curve) => curve.short), (i) => [grid([curves[i]])]) : grid(curves),
      numbers(curves)),
  };
}
