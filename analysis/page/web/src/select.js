// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Choices that are too many for buttons, and the point that several sections show at the same time.
import { charts, chart } from "./chart.js";
import { el } from "./dom.js";
import { rankCount } from "./format.js";

/**
 * Makes a list to choose from.
 * @param {string} label
 * @param {string[]} names
 * @param {number} chosen
 * @param {(index: number) => void} onChange
 */
export function select(label, names, chosen, onChange) {
  const list = el("select", { on: { change: () => onChange(list.selectedIndex) } },
    names.map((name) => el("option", {}, name)));
  list.selectedIndex = chosen;
  return el("label", { class: "select" }, el("span", {}, label), list);
}

// Switches keep their state when the point changes.
const states = {};

/** Makes a chart whose content changes with the chosen point; its switches keep their state. */
export function changingChart(spec) {
  const before = states[spec.id] ?? {};
  const switches = spec.switches?.map((s) => ({ ...s, value: s.choices.includes(before[s.name]) ? before[s.name] : s.value }));
  return chart({ ...spec, switches });
}

/**
 * Removes the charts of `place`, and then fills it with what `make` gives. The order matters:
 * charts are registered by their ids, and those of `make` have the same ones.
 */
export function refill(place, make) {
  for (const figure of place.querySelectorAll("figure.chart")) {
    const old = charts[figure.id];
    if (!old) continue;
    states[figure.id] = old.state;
    old.instance?.dispose();
    delete charts[figure.id];
  }
  place.replaceChildren(...make().flat().filter((child) => child !== null && child !== undefined));
}

/**
 * Makes a list of several contents, one of which is shown.
 * @param {string} label
 * @param {string[]} names
 * @param {(index: number) => (Element|null)[]} show
 */
export function oneOf(label, names, show) {
  const place = el("div", {});
  const fill = (index) => refill(place, () => show(index));
  fill(0);
  return el("div", {}, names.length > 1 ? el("div", { class: "choices" }, select(label, names, 0, fill)) : null, place);
}

/** The point that is shown, as [curve, point] of the groups; the same in all sections. */
let current = null;
const listeners = [];

/**
 * Returns the curves that have points with details (series for pictures), with only these points.
 */
export function detailed(curves) {
  return curves
    .map((curve) => ({ title: curve.short, points: curve.points.filter((point) => point.details) }))
    .filter((group) => group.points.length > 0);
}

/** Returns the number of axes along which a point is parallel. */
const axes = (point) => Object.values(point.full?.mesh ?? {}).filter((extent) => extent > 1).length;

/**
 * Returns the largest traced point, by ranks and then by parallel axes; without a traced one the
 * largest.
 */
function firstChoice(groups) {
  const wanted = groups.flatMap((group, c) => group.points.map((point, p) => ({ c, p, point })));
  const traced = wanted.filter(({ point }) => point.details.timeline);
  const largest = (of) => of.reduce((best, at) => {
    const isMore = !best || at.point.ranks > best.point.ranks || (at.point.ranks === best.point.ranks && axes(at.point) > axes(best.point));
    return isMore ? at : best;
  }, null);
  const { c, p } = largest(traced) ?? largest(wanted);
  return [c, p];
}

/**
 * Makes the content of one point, with two lists to choose the curve and the rank count.
 * @param {{title: string, points: import("./data.js").Point[]}[]} groups of detailed()
 * @param {(point: import("./data.js").Point, group: object) => (Element|null)[]} show
 */
export function pointContent(groups, show) {
  const place = el("div", {});
  const lists = el("div", { class: "choices" });
  // Lists are not printed; a line shows their choices instead.
  const chosen = el("p", { class: "chosen" });
  const choose = (c, p) => {
    current = [c, p];
    for (const listener of listeners) listener();
  };
  const fill = () => {
    const [c, p] = current;
    const group = groups[c];
    const point = group.points[p];
    // If another curve is chosen, its point with the same rank count is shown, else its largest.
    const sameCount = (to) => {
      const at = groups[to].points.findIndex((of) => of.ranks === point.ranks);
      return at >= 0 ? at : groups[to].points.length - 1;
    };
    const focused = [...lists.querySelectorAll("select")].indexOf(document.activeElement);
    lists.replaceChildren(
      select("curve", groups.map((at) => at.title), c, (to) => choose(to, sameCount(to))),
      select("ranks", group.points.map((at) => String(at.ranks)), p, (to) => choose(c, to)),
      ...(point.labels.length > 0 ? [el("span", { class: "mark" }, point.labels.join(", "))] : []));
    if (focused >= 0) lists.querySelectorAll("select")[focused].focus();
    chosen.textContent = `${group.title}, ${rankCount(point.ranks)}`;
    refill(place, () => show(point, group));
  };
  current ??= firstChoice(groups);
  listeners.push(fill);
  fill();
  return el("div", {}, lists, chosen, place);
}
