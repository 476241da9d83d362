// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Lists the figures that people read, with the format and the unit of each, and makes tables of them that sort by any column and
// can be copied as CSV.
import { copyButton, button, el } from "./dom.js";
import { bandwidth, bytes, fixed, flops, memory, missing, percent, seconds, si } from "./format.js";

/** A column: title; value(item): null = not known; csv: heading in the CSV, whose values have one unit; text(value): the text of
 * a cell; number: right-aligned; look: class of a cell that has a value, or a function of the value that returns it. */

/** The figures by kind: how a value is shown, its unit if it is copied as a number, and the
 * headings of the figures of this kind. Figures with other headings are of the kind "words". */
const kinds = {
  words: { number: false },
  nowrap: { number: false, look: "nowrap", of: ["check", "created", "git", "id"] },
  long: { number: false, look: "long", of: ["fix", "what was found", "what was seen", "why it could not be read"] },
  count: { of: [
    "backlog", "batch", "k", "launches", "layer", "length / ns", "m", "microbatch", "n", "nodes", "NUMA node", "on ranks", "point",
    "rank", "ranks", "replicas", "requests", "runs", "start / ns", "step", "traced steps", "warnings", "wrong"] },
  time: { text: seconds, unit: "s", of: [
    "99% of calls", "bubble", "collective alone", "compute", "copies", "delay by noise", "fastest", "gap", "GEMM alone",
    "hidden communication", "latency", "max", "other", "p99", "queueing", "schedule's bubble", "seconds", "simulated", "slowest",
    "step time", "time", "TPOT", "traced step", "transfer", "TTFT", "wait"] },
  size: { text: bytes, unit: "B", of: ["size"] },
  memory: { text: memory, unit: "B", of: ["memory per rank"] },
  share: { text: (value) => percent(value), of: [
    "communication ratio", "efficiency", "faster by", "longer by", "MFU", "model", "noise", "of ceiling", "of peak", "per peak",
    "range of throughput", "share of the step", "spread of step time"] },
  "coarse share": { text: (value) => percent(value, 0), of: ["hidden", "utilisation"] },
  "fine share": { text: (value) => percent(value, 2) },
  decimal: { text: (value) => fixed(value), of: ["99% / median", "efficiency, points", "imbalance", "points", "speed-up"] },
  "fine decimal": { text: (value) => fixed(value, 4), of: ["p of a regression", "p of passing", "throughput ratio"] },
  factor: { text: (value) => `${fixed(value)} x`, of: ["collective slower", "GEMM slower"] },
  rate: { text: (value) => si(value), of: [
    "achieved/s", "first", "FLOP/s per rank", "last", "median", "offered/s", "per link", "per watt", "throughput", "tokens/s", "tokens/s/rank"] },
  bandwidth: { text: bandwidth, unit: "B/s", of: ["algbw", "bandwidth", "both ways", "busbw"] },
  flops: { text: flops, unit: "FLOP/s", of: ["rate"] },
};
const kindOf = new Map(Object.entries(kinds).flatMap(([kind, { of = [] }]) => of.map((title) => [title, kind])));

/** Makes a column of the figure `title`, or of another figure of the kind `kind`. By default the title is the key of the value. */
export function column(title, value = null, { kind = kindOf.get(title) ?? "words", ...own } = {}) {
  const { number = true, unit, text, look } = kinds[kind];
  return { title, csv: unit ? `${title} / ${unit}` : title, value: value ?? ((item) => item[title]), number, text, look, ...own };
}

/** Returns the value at a path of keys: valueAt({time: {median: 2}}, "time.median") is 2. */
const valueAt = (item, path) => path.split(".").reduce((at, key) => at?.[key], item);

/** Makes a figure's column, and two for the bounds of its interval; `of` returns [value, lower, upper]. */
export const ends = (title, of, how = { kind: kindOf.get(title) }) => [
  column(title, (item) => of(item)[0], how),
  ...["lower", "upper"].map((name, i) => ({ ...column(`${title}, ${name}`, (item) => of(item)[i + 1], how), title: name }))];

/** Makes the columns that a text describes, see columns(). */
function described(text) {
  const [, title, kind, interval, path] = /^(.+?)(?::([\w ]+))?(~)?(?:=(.+))?$/.exec(text);
  const of = path ? (item) => valueAt(item, path) : null;
  if (!interval) return column(title, of, kind ? { kind } : {});
  return ends(title, (item) => [of(item)?.median ?? of(item)?.value, of(item)?.lower, of(item)?.upper]);
}

/** Makes columns from columns, from objects that map a heading to the function of its value, and from texts: "curve, ranks" are
 * headings that are keys of items, "size=bytes" names the key, or a path of keys, "launch:count" the kind, and "time~=time" makes
 * three columns from an object with a median or a value, and with the bounds of its interval. */
export const columns = (...parts) => parts.flatMap((part) => {
  if (typeof part === "string") return part.split(", ").flatMap(described);
  if (Array.isArray(part) || part.title !== undefined) return part;
  return Object.entries(part).map(([title, value]) => column(title, value));
});

/** The column of a point's labels. */
export const labels = column("labels", (at) => at.labels.join(" "));

/** Makes a CSV cell (RFC 4180). A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function csvCell(value) {
  if (value === null) return "";
  let text = String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes columns and rows as CSV, with the unformatted values. */
const csv = (shown, rows) => [shown.map((at) => at.csv ?? at.title), ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
const longText = 28; // characters

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function cell({ title, text = String, look, number }, value, stacks) {
  const shown = value === null ? missing : text(value);
  const own = value === null ? "none" : typeof look === "function" ? look(value) : look;
  // Long texts get a wide column; the table is then scrolled instead of wrapped at every word.
  const long = !number && shown.length > longText ? "long" : null;
  const classes = [number ? "number" : null, own, long].filter(Boolean).join(" ") || null;
  return el("td", { class: classes, "data-title": stacks ? title : null }, shown);
}

/** Makes a table of columns and items, its rows. most: rows shown at first; stacks: in a narrow window a row becomes a block of
 * named lines. */
export function table({ columns: shown, items, caption = "", id, most = 200, stacks = false }) {
  const rows = items.map((item) => shown.map((at) => at.value(item) ?? null));
  let order = [...rows];
  let room = most;
  const body = el("tbody");
  const more = button("", () => { room = rows.length; fill(); });
  const headers = shown.map((at, i) => el("th", { scope: "col", class: at.number ? "number" : null },
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
