// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes tables that sort by any column and can be copied as CSV, and the kinds of columns that they
// consist of.
import { copyButton, button, el } from "./dom.js";
import { bytes, fixed, memory, missing, percent, seconds, si } from "./format.js";

/**
 * @typedef {object} Column
 * @property {string} title heading of the column
 * @property {(item: object) => any} value null = not known
 * @property {string} [csv] heading in the CSV, whose values have one unit; by default the title
 * @property {(value: any) => string} [text] formats the value for a cell
 * @property {boolean} [number] right-aligned
 * @property {string | ((value: any) => string|null)} [look] class of a cell that has a value
 */

/** @typedef {{columns: Column[], items: object[]}} Numbers a table's description: an item is a row */

const column = (title, value, rest = {}) => ({ title, value: value ?? ((item) => item[title]), ...rest });
const numeric = (title, value, text, unit) =>
  column(title, value, { number: true, text, csv: unit ? `${title} / ${unit}` : title });

/**
 * These functions make columns. `value` is a function of the item; by default the title is the key
 * of the value.
 */
export const words = (title, value, look) => column(title, value, { look });
export const count = (title, value) => column(title, value, { number: true });
export const time = (title, value) => numeric(title, value, seconds, "s");
export const size = (title, value) => numeric(title, value, bytes, "B");
export const memorySize = (title, value) => numeric(title, value, memory, "B");
export const share = (title, value, places = 1) => numeric(title, value, (at) => percent(at, places));
export const decimal = (title, value, places = 2) => numeric(title, value, (at) => fixed(at, places));
export const rate = (title, value, unit) => numeric(title, value, (at) => si(at, unit), unit);

/** Makes a column, and two for the bounds of its interval; `of` returns [value, lower, upper]. */
export function ends(kind, title, of) {
  const bound = (name, at) => ({ ...kind(`${title}, ${name}`, (item) => of(item)[at]), title: name });
  return [kind(title, (item) => of(item)[0]), bound("lower", 1), bound("upper", 2)];
}

export const cellsOf = (columns, item) => columns.map((at) => at.value(item) ?? null);

/**
 * Makes a CSV cell (RFC 4180). A cell that a spreadsheet would take for a formula begins with an
 * apostrophe.
 */
function csvCell(value) {
  if (value === null) return "";
  let text = String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes columns and rows as CSV, with the values themselves and not as cells show them. */
export function csv(columns, rows) {
  const lines = [columns.map((at) => csvCell(at.csv ?? at.title)), ...rows.map((row) => row.map(csvCell))];
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

const longText = 28; // characters

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/**
 * @param {Numbers & {caption?: string, id?: string, most?: number, stacks?: boolean}} how most: rows
 *   shown at first; stacks: in a narrow window a row becomes a block of named lines
 */
export function table({ columns, items, caption = "", id, most = 200, stacks = false }) {
  const rows = items.map((item) => cellsOf(columns, item));
  let order = [...rows];
  let sorted = { column: -1, descending: false };
  let shown = most;
  const body = el("tbody");
  const more = button("", () => { shown = rows.length; fill(); });
  const headers = columns.map((at, i) =>
    el("th", { scope: "col", class: at.number ? "number" : null },
      el("button", { type: "button", on: { click: () => sortBy(i) } }, at.title)));
  function cell(at, value) {
    const shownText = value === null ? missing : (at.text?.(value) ?? String(value));
    const look = value === null ? "none" : typeof at.look === "function" ? at.look(value) : at.look;
    // Long texts get a wide column; the table is then scrolled instead of wrapped at every word.
    const long = !at.number && shownText.length > longText ? "long" : null;
    const classes = [at.number ? "number" : null, look, long].filter(Boolean).join(" ") || null;
    return el("td", { class: classes, "data-title": stacks ? at.title : null }, shownText);
  }
  function fill() {
    body.replaceChildren(...order.slice(0, shown).map((row) =>
      el("tr", {}, columns.map((at, c) => cell(at, row[c])))));
    more.hidden = shown >= rows.length;
    more.textContent = `${Math.min(shown, rows.length)} of ${rows.length} shown; show all`;
  }
  function sortBy(c) {
    sorted = { column: c, descending: sorted.column === c && !sorted.descending };
    const sign = sorted.descending ? -1 : 1;
    order = [...rows].sort((a, b) => sign * compare(a[c], b[c]));
    headers.forEach((header, i) => {
      if (i === c) header.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    fill();
  }
  fill();
  return el("div", { class: stacks ? "table stacks" : "table", id },
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption || "table" },
      el("table", {}, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, headers)), body)),
    el("div", { class: "actions" }, copyButton("copy as CSV", () => csv(columns, order)), more));
}
