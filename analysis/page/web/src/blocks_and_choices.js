// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Builds sections of the page from lists of blocks, and the select lists that choose what a section
// shows.
import { chart, keepStates } from "./chart.js";
import { el } from "./page_elements.js";
import { filter } from "./theme_and_filter.js";
import { missing, rankCount } from "./format.js";
import { table } from "./table.js";

/** A block of a section is an element, or an object with one of these keys:
 * - note or saying: a sentence in small or usual type
 * - mark: a warning
 * - list: sentences, of which `most` are shown
 * - table: see table.js
 * - charts: descriptions of charts (see chart.js) or elements, side by side; chart: one alone
 * - facts: lines of [name, value]
 * - fold: a text that opens the blocks in `blocks`
 * A block is left out if it is null, if it has nothing to show (such as a table without items), or
 * if its `when` is false. */

const paragraph = (look) => (text) => el("p", { class: look }, text);

const kinds = {
  note: paragraph("note"),
  saying: paragraph("saying"),
  mark: paragraph("mark"),
  list: (items, { most = 8, rest = "more", look = "saying" }) => el("ul", { class: look },
    items.slice(0, most).map((item) => el("li", {}, item)),
    items.length > most ? el("li", {}, `${items.length - most} ${rest}`) : null),
  table: (how) => (how.items.length > 0 ? table(how) : null),
  charts: (made) => el("div", { class: "charts" }, made.filter(Boolean).map((at) => (at instanceof Element ? at : chart(at)))),
  chart,
  facts: (pairs) => el("dl", { class: "lines" }, pairs.map(([name, value]) => factLine(name, value ?? missing))),
  fold: (summary, { blocks, look = null }) => el("details", { class: look }, el("summary", {}, summary), blocks.map(built)),
};

const isEmpty = (value) => !value || (Array.isArray(value) && !value.some(Boolean));

/** Makes the element of a block; null if the block is left out. */
function built(block) {
  if (!block || block instanceof Element) return block || null;
  const name = Object.keys(kinds).find((kind) => Object.hasOwn(block, kind));
  return block.when === false || isEmpty(block[name]) ? null : kinds[name](block[name], block);
}

/** Makes an element with the blocks of a section; `look` is its CSS class. */
export const content = (blocks, look = null) => el("div", { class: look }, blocks.map(built));

export const factLine = (name, value) => (isEmpty(value) ? null
  : el("div", { class: "fact-line" }, el("dt", {}, name), el("dd", {}, value)));

function select(label, names, chosen, onChange) {
  const list = el("select", { on: { change: () => onChange(list.selectedIndex) } }, names.map((name) => el("option", {}, name)));
  list.selectedIndex = chosen;
  return el("label", { class: "select" }, el("span", {}, label), list);
}

/** Makes a select list of `names` and shows the content of the chosen one; null without names. A
 * list labelled "curve" follows and changes the page's filter. show(index) returns the blocks. */
export function oneOf(label, names, show) {
  if (names.length === 0) return null;
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

export const mostBeside = 6; // limit on charts of curves side by side

/** Shows what `make` returns for all curves side by side, or for a chosen one if they are many. */
export const eachCurve = (curves, make) => [curves.length > mostBeside
  ? oneOf("curve", curves.map((curve) => curve.short), (i) => [{ charts: [make(curves[i], i)] }]) : { charts: curves.map(make) }];

/** Returns the number of mesh axes that have an extent above 1 at a point. */
const axes = ({ mesh }) => Object.values(mesh ?? {}).filter((extent) => extent > 1).length;

/** Returns {group, point} for the point with the most ranks and, among equals, the most mesh axes
 * (see axes()). If some points are traced, only these are considered. */
function firstChoice(groups) {
  const all = groups.flatMap((group) => group.points.map((point) => ({ group, point })));
  const traced = all.filter(({ point }) => point.details.timeline);
  return (traced.length > 0 ? traced : all).sort(({ point: a }, { point: b }) => b.ranks - a.ranks || axes(b) - axes(a))[0];
}

/** Returns the curve and the point that the page's filter names, by default firstChoice(). */
function chosenPoint(groups) {
  const first = firstChoice(groups);
  const group = groups.find(({ title }) => title === filter.get("curve")) ?? first.group;
  const point = group.points.find(({ ranks }) => String(ranks) === filter.get("ranks"));
  // If the curve has no point with this rank count, the point of firstChoice() is shown if it is on
  // this curve, or else the largest point.
  return { group, point: point ?? (group === first.group ? first.point : group.points.at(-1)) };
}

/** Makes the content of one point that has details, with select lists for curve and rank count, or
 * null if has(details) is true for none. show(point, group) returns the blocks of a point; `group`
 * is {title, points} of its curve. */
export function pointContent(curves, has, show) {
  const groups = curves.map((curve) => ({ title: curve.short, points: curve.points.filter((point) => point.details) }))
    .filter(({ points }) => points.length > 0);
  if (!groups.some(({ points }) => points.some(({ details }) => has(details)))) return null;
  const place = el("div", {});
  const lists = el("div", { class: "choices" });
  // Select lists are not printed; a line shows what they select instead.
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
