// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes elements of the page, and the building blocks that the first screens of pages share: facts,
// panels, cards, bars, and lists of causes and warnings. Text from run files is inserted as text
// only, never as markup.
import { meaning, partOfCause } from "./data.js";
import { percent, rankCount } from "./format.js";

/** Makes an element. The entries of `attributes` become attributes, except `on`, which maps events
 * to listeners, and entries that are null, undefined or false. `children` are elements, texts, or
 * arrays of these; null and undefined are skipped. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** True if a width in pixels is that of a telephone, or of a chart that is as narrow. */
export const isNarrow = (width = window.innerWidth) => width < 520;
/** Makes a button without a frame. The listener `click` gets the event. */
export const button = (text, click, attributes = {}) =>
  el("button", { type: "button", class: "quiet", on: { click }, ...attributes }, text);

/** Makes a button that copies the text content(), and then shows "copied" for 1.5 s. */
export function copyButton(text, content) {
  const made = button(text, async () => {
    const copied = content();
    try {
      await navigator.clipboard.writeText(copied);
    } catch { // The page may not use the clipboard, for example if it was opened from disk.
      const area = el("textarea", { style: "position:fixed;opacity:0", "aria-hidden": "true" }, copied);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    made.textContent = "copied";
    setTimeout(() => { made.textContent = text; }, 1500);
  });
  return made;
}

/** Offers the reader a file to save, with this name, MIME type and content. */
export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Makes a fact: its name, the text `title` in large type, and details in small type. */
export const fact = (name, title, ...details) => el("div", { class: "fact" }, el("dt", {}, name),
  el("dd", {}, el("b", {}, title)), details.filter(Boolean).map((text) => el("dd", { class: "note" }, text)));

/** Makes a panel, whose heading links to the section `target` (or null) with the text `more`. */
export const panel = (title, target, more, ...inside) => el("div", { class: "panel" },
  el("h3", {}, title, target ? el("a", { class: "more", href: `#${target}` }, more) : null), inside);

export const note = (text) => el("p", { class: "note" }, text);
/** Makes content that is hidden until the reader opens it. */
const folded = (summary, ...inside) => el("details", {}, el("summary", {}, summary), inside);
export const thinBar = (look, share, element = "div") =>
  el(element, { class: "bar thin", "aria-hidden": "true" }, el("i", { class: look, style: `width:${100 * share}%` }));
/** Formats a share, with one decimal place if it is below 10%. */
export const shareText = (value) => percent(value, value < 0.0995 ? 1 : 0);

/** Makes an item of a list of causes of lost time. A full bar stands for the share `scale`. */
export const causeItem = ({ cause, share }, scale, ...where) => el("li", { class: "cause", title: meaning(cause) },
  el("b", { class: "big" }, shareText(share)),
  el("div", {}, el("div", {}, el("b", {}, cause), " of the step", where), thinBar(`part-${partOfCause(cause)}`, share / scale)));

const warningItem = ({ grave, text, target }) => el("li", { class: grave ? "bad" : "warn" },
  el("span", { class: "sign", "aria-hidden": "true" }, grave ? "\u2716" : "\u25b2"),
  target ? el("a", { href: `#${target}` }, text) : el("span", {}, text));

/** Makes the panel of warnings {grave, text, target}. The first `most` are shown, and the others
 * are folded. Without warnings, it shows the text `none`. */
export function warningsPanel(all, most, none) {
  if (all.length === 0) return panel("Warnings", null, "", el("p", { class: "good" }, none));
  const list = (some) => el("ul", { class: "plain lines" }, some.map(warningItem));
  const rest = all.slice(most);
  return panel(`Warnings: ${all.length}`, null, "", list(all.slice(0, most)), rest.length === 0 ? null : folded(`${rest.length} more`, list(rest)));
}

/** Makes a card: a name with a rank count, a large `value`, small `lines`, badges {text, kind}. */
export function card({ title, full = null, ranks, value, beside = null, lines = [], bar = null, badges = [], look = "" }) {
  const name = el("h3", { title: full }, title);
  return el("article", { class: `card ${look}`.trim() },
    ranks === undefined ? name : el("div", { class: "card-title" }, name, el("span", {}, rankCount(ranks))),
    el("div", { class: "headline" }, el("b", { class: "huge" }, value), beside),
    bar, lines.filter(Boolean).map(note),
    el("p", { class: "badges" }, badges.map(({ text, kind }) => el("span", { class: `badge ${kind}` }, text))));
}

/** Makes a grid of cards; those after the first `most` are folded under "5 more" and `rest`. */
export function cardGrid(cards, most, rest) {
  // Up to four cards are as large as the screen allows.
  const grid = el("div", { class: cards.length <= 4 ? "cards few" : "cards" }, cards.slice(0, most));
  const more = cards.slice(most);
  return [grid, more.length === 0 ? null : folded(`${more.length} more ${rest}`, el("div", { class: "cards" }, more))];
}

/** Draws an efficiency as a bar: the reached share of the ideal, the lost share, and the interval.
 * `scale` is the efficiency at the bar's end; it is the same for all bars of a page. */
export function efficiencyBar(efficiency, interval, scale) {
  const at = (value) => `${(100 * Math.min(value, scale)) / scale}%`;
  const piece = (look, style) => el("i", { class: look, style });
  return el("div", { class: "bar", "aria-hidden": "true" },
    piece("lost", `width:${at(1)}`), piece("reached", `width:${at(efficiency)}`),
    interval ? piece("interval", `left:${at(interval[0])};right:calc(100% - ${at(interval[1])})`) : null,
    piece("ideal", `left:${at(1)}`));
}
