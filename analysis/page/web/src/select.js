// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes lists to choose from, and the content that changes with the choice.
import { content } from "./blocks.js";
import { keepStates } from "./chart.js";
import { el } from "./dom.js";
import { rankCount } from "./format.js";
import { filter } from "./filter.js";

function select(label, names, chosen, onChange) {
  const list = el("select", { on: { change: () => onChange(list.selectedIndex) } },
    names.map((name) => el("option", {}, name)));
  list.selectedIndex = chosen;
  return el("label", { class: "select" }, el("span", {}, label), list);
}

/**
 * Makes a list of several contents, one of which is shown. A list of curves follows the filter.
 * @param {string} label
 * @param {string[]} names
 * @param {(index: number) => object[]} show returns the blocks of one content
 */
export function oneOf(label, names, show) {
  const place = el("div", {});
  const isFiltered = label === "curve";
  const list = select(label, names, 0, (to) => (isFiltered ? filter.set({ curve: names[to] }) : fill(to)));
  let shown = -1;
  function fill(index) {
    if (index === shown) return;
    shown = index;
    list.querySelector("select").selectedIndex = index;
    keepStates(place, () => place.replaceChildren(content(show(index))));
  }
  const follow = () => fill(isFiltered ? Math.max(0, names.indexOf(filter.get("curve"))) : 0);
  if (isFiltered) filter.onChange(follow);
  follow();
  return el("div", {}, names.length > 1 ? el("div", { class: "choices" }, list) : null, place);
}

/** Returns the curves that have points with details (series for charts), with only these points. */
export function detailed(curves) {
  return curves
    .map((curve) => ({ title: curve.short, points: curve.points.filter((point) => point.details) }))
    .filter((group) => group.points.length > 0);
}

/** Returns the number of mesh axes along which a point is parallel. */
const axes = (point) => Object.values(point.full?.mesh ?? {}).filter((extent) => extent > 1).length;

/**
 * Returns the point with the most ranks, then the most parallel axes; traced points are preferred.
 */
function firstChoice(groups) {
  const all = groups.flatMap((group) => group.points.map((point) => ({ group, point })));
  const traced = all.filter(({ point }) => point.details.timeline);
  const isMore = (a, b) => a.ranks > b.ranks || (a.ranks === b.ranks && axes(a) > axes(b));
  return (traced.length > 0 ? traced : all).reduce((best, at) => (isMore(at.point, best.point) ? at : best));
}

/** Returns the group and the point that the filter names, or those nearest to it. */
function chosenPoint(groups) {
  const first = firstChoice(groups);
  const group = groups.find(({ title }) => title === filter.get("curve")) ?? first.group;
  const point = group.points.find(({ ranks }) => String(ranks) === filter.get("ranks"));
  // If no point has the chosen rank count, the first choice is shown if it is on this curve, and
  // otherwise the largest point of the curve.
  return { group, point: point ?? (group === first.group ? first.point : group.points.at(-1)) };
}

/**
 * Makes the content of one point, with two lists to choose the curve and the rank count.
 * @param {{title: string, points: import("./data.js").Point[]}[]} groups of detailed()
 * @param {(point: import("./data.js").Point, group: object) => object[]} show returns its blocks
 */
export function pointContent(groups, show) {
  const place = el("div", {});
  const lists = el("div", { class: "choices" });
  // Lists are not printed; a line shows their choices instead.
  const chosen = el("p", { class: "chosen" });
  let shown = null;
  const fill = () => {
    const { group, point } = chosenPoint(groups);
    if (point === shown) return;
    shown = point;
    const choose = (curve, ranks) => filter.set({ curve, ranks });
    const focused = [...lists.querySelectorAll("select")].indexOf(document.activeElement);
    lists.replaceChildren(
      select("curve", groups.map(({ title }) => title), groups.indexOf(group), (to) => choose(groups[to].title, point.ranks)),
      select("ranks", group.points.map(({ ranks }) => String(ranks)), group.points.indexOf(point),
        (to) => choose(group.title, group.points[to].ranks)),
      ...(point.labels.length > 0 ? [el("span", { class: "mark" }, point.labels.join(", "))] : []));
    if (focused >= 0) lists.querySelectorAll("select")[focused].focus();
    chosen.textContent = `${group.title}, ${rankCount(point.ranks)}`;
    keepStates(place, () => place.replaceChildren(content(show(point, group))));
  };
  filter.onChange(fill);
  fill();
  return el("div", {}, lists, chosen, place);
}
