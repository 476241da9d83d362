// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes tables. Their columns are metrics of the report or figures of the page itself. A reader can
// sort a table by any column and copy it as CSV.
import { data, ownOf } from "./data.js";
import { copyButton, button, el } from "./page_elements.js";
import { formOf, joined, missing } from "./format.js";

/** A column has these keys:
 * - title; and about, a sentence that explains it
 * - value(item): null if it is not known
 * - csv: the heading in the CSV, with the unit that all values have there
 * - text(value): the text of a cell
 * - number: true if the cells are right-aligned
 * - look: the CSS class of a cell that has a value, or a function of the value that returns it */

/** Makes a column of this form and unit (formOf()). The default `value` is the property `title`. */
export function column(title, value = null, { form, unit, ...own } = {}) {
  const { number = true, unit: copied, text, look } = formOf({ form, unit });
  return { title, csv: copied ? `${title} / ${copied}` : title, value: value ?? ((item) => item[title]), number, text, look, ...own };
}

/** Returns a table of the program's metrics by key: {heading, form, unit, sentence, shown}. */
export const metricsOf = (name) => data.metrics[name] ?? {};

/** Explains the metrics `keys` of one of the program's tables, in one sentence each. */
export const legendOf = (name, ...keys) =>
  keys.map((key) => metricsOf(name)[key]).map(({ heading, sentence }) => `${heading}: ${sentence}.`).join(" ");

/** Returns the median or value of an object with an interval; any other value is returned as is. */
const numberOf = (at) => (at?.median !== undefined ? at.median : at?.value !== undefined ? at.value : at);
/** Returns the value at a path of keys: valueAt({time: {median: 2}}, "time.median") is 2. */
const valueAt = (item, path) => path.split(".").reduce((at, key) => at?.[key], item);

/** Makes a column for a value and two for its bounds; `of` returns [value, lower, upper]. */
export const ends = (title, of, how = {}) => [
  column(title, (item) => of(item)[0], how),
  ...["lower", "upper"].map((name, i) => ({ ...column(`${title}, ${name}`, (item) => of(item)[i + 1], how), title: name }))];

/** Makes the columns that one word names; columns() below describes the form of such a word. */
function described(metrics, text) {
  const [, name, given, interval, path = name] = /^(.+?)(?::([\w ]+))?(~)?(?:=(.+))?$/.exec(text);
  const metric = ownOf(metrics, name);
  const title = metric?.heading ?? name;
  const how = { form: given ?? metric?.form, unit: metric?.unit, about: metric?.sentence };
  const of = (item) => valueAt(item, path);
  return interval ? ends(title, (item) => [numberOf(of(item)), of(item)?.lower, of(item)?.upper], how)
    : column(title, (item) => numberOf(of(item)), how);
}

/** Makes columns. A part is a column, a list of columns, an object that maps headings to functions
 * that return an item's value, or a text of words such as "curve, ranks". Each word is the key of a
 * value. If the table `of` has a metric with this key, the column has its heading, form and unit;
 * otherwise the key is also the heading. A word may have additions:
 * - "size=bytes" reads the value from another key, or from a path of keys.
 * - "launch:count" gives the form.
 * - "time~" makes three columns, from an object with a median or a value and with the bounds of its
 *   interval.
 * - "...=path" stands for the metrics that no text names and that the program marks as `shown`. */
export function columns(of, ...parts) {
  const metrics = metricsOf(of);
  const all = parts.flatMap((part) => (typeof part === "string" ? part.split(", ") : part));
  const named = new Set(all.filter((at) => typeof at === "string").map((word) => /^[^:~=]+/.exec(word)[0]));
  const others = (path) => Object.keys(metrics).filter((key) => metrics[key].shown && !named.has(key))
    .flatMap((key) => described(metrics, path ? `${key}=${path}.${key}` : key));
  return all.flatMap((at) => {
    if (typeof at === "string") return at.startsWith("...") ? others(at.slice(4)) : described(metrics, at);
    return at.title === undefined ? Object.entries(at).map(([title, value]) => column(title, value)) : at;
  });
}

/** The column with the labels of a point. */
export const labels = column("labels", (at) => at.labels.join(" "));

/** Makes a CSV cell (RFC 4180); an apostrophe keeps spreadsheets from taking text for a formula. */
function csvCell(value) {
  if (value === null) return "";
  let text = String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes a heading for each column, and the rows, as CSV with unformatted values. */
const csv = (shown, rows) => [shown.map((at) => at.csv ?? at.title), ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function cell({ title, text = String, look, number }, value, stacks) {
  const shown = value === null ? missing : text(value);
  const own = value === null ? "none" : typeof look === "function" ? look(value) : look;
  // A text of over 28 characters gets a wide column; the table is then scrolled, not wrapped.
  const classes = joined([number && "number", own, !number && shown.length > 28 && "long"], " ");
  return el("td", { class: classes || null, "data-title": stacks ? title : null }, shown);
}

/** Makes a table, at first of `most` rows; if it `stacks`, rows are blocks in a narrow window. */
export function table({ columns: shown, items, caption = "", id, most = 200, stacks = false }) {
  const rows = items.map((item) => shown.map((at) => at.value(item) ?? null));
  let order = [...rows];
  let room = most;
  const body = el("tbody");
  const more = button("", () => { room = rows.length; fill(); });
  const headers = shown.map((at, i) => el("th", { scope: "col", class: at.number ? "number" : null, title: at.about || null },
    el("button", { type: "button", on: { click: () => sortBy(i) } }, at.title)));
  function fill() {
    body.replaceChildren(...order.slice(0, room).map((row) => el("tr", {}, shown.map((at, c) => cell(at, row[c], stacks)))));
    more.hidden = room >= rows.length;
    more.textContent = `${Math.min(room, rows.length)} of ${rows.length} shown; show all`;
  }
  function sortBy(c) {
    const direction = headers[c].getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    const sign = direction === "descending" ? -1 : 1;
    order = [...rows].sort((a, b) => sign * compare(a[c], b[c]));
    for (const header of headers) header.removeAttribute("aria-sort");
    headers[c].setAttribute("aria-sort", direction);
    fill();
  }
  fill();
  return el("div", { class: stacks ? "table stacks" : "table", id },
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption || "table" },
      el("table", {}, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, headers)), body)),
    el("div", { class: "actions" }, copyButton("copy as CSV", () => csv(shown, order)), more));
}
