// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Tables that sort by any column and go to the clipboard as CSV.
import { copyText, el } from "./dom.js";
import { missing } from "./format.js";

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {string} [csv] heading in the CSV, which has values in one unit; the title without
 * @property {(value: any) => string} [text] how a cell shows its value; as it is without
 * @property {boolean} [number] right-aligned; sorts by value
 * @property {(value: any) => string|null} [look] class of a cell that has a value
 */

/**
 * Makes a CSV cell (RFC 4180). A cell that a spreadsheet would take for a formula begins with an
 * apostrophe.
 */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  let text = String(value);
  if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes columns and rows as CSV, with values as they are and not as they are shown. */
export function csv(columns, rows) {
  const lines = [columns.map((column) => csvCell(column.csv ?? column.title)), ...rows.map((row) => row.map(csvCell))];
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

const longText = 28; // characters

function compare(a, b) {
  const none = (value) => value === null || value === undefined;
  if (none(a) || none(b)) return none(a) - none(b);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/**
 * @param {Column[]} columns
 * @param {any[][]} rows values by column; null = not known
 * @param {{caption?: string, id?: string, most?: number, stacks?: boolean}} [how] most: rows shown at
 *   first; stacks: in a narrow window a row becomes a block of named lines
 */
export function table(columns, rows, { caption = "", id, most = 200, stacks = false } = {}) {
  let order = rows.map((_, i) => i);
  let sorted = { column: -1, descending: false };
  let shown = most;
  const body = el("tbody");
  const more = el("button", { type: "button", class: "quiet", on: { click: () => { shown = rows.length; fill(); } } });
  const headers = columns.map((column, i) =>
    el("th", { scope: "col", class: column.number ? "number" : null },
      el("button", { type: "button", on: { click: () => sortBy(i) } }, column.title)),
  );
  function cell(column, value) {
    const isMissing = value === null || value === undefined;
    const shownText = isMissing ? missing : (column.text?.(value) ?? String(value));
    const look = isMissing ? "none" : column.look?.(value);
    // Long texts get a wide column; the table is then scrolled instead of wrapped at every word.
    const long = !column.number && shownText.length > longText ? "long" : null;
    return el("td", { class: [column.number ? "number" : null, look, long].filter(Boolean).join(" ") || null, "data-title": stacks ? column.title : null }, shownText);
  }
  function fill() {
    body.replaceChildren(
      ...order.slice(0, shown).map((i) => el("tr", {}, columns.map((column, c) => cell(column, rows[i][c])))),
    );
    more.hidden = shown >= rows.length;
    more.textContent = `${Math.min(shown, rows.length)} of ${rows.length} shown; show all`;
  }
  function sortBy(column) {
    sorted = { column, descending: sorted.column === column && !sorted.descending };
    const sign = sorted.descending ? -1 : 1;
    order = rows.map((_, i) => i).sort((a, b) => sign * compare(rows[a][column], rows[b][column]) || a - b);
    headers.forEach((header, i) => {
      if (i === column) header.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    fill();
  }
  fill();
  const copy = el("button", {
    type: "button",
    class: "quiet",
    on: {
      click: async () => {
        await copyText(csv(columns, order.map((i) => rows[i])));
        copy.textContent = "copied";
        setTimeout(() => { copy.textContent = "copy as CSV"; }, 1500);
      },
    },
  }, "copy as CSV");
  return el("div", { class: stacks ? "table stacks" : "table", id },
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption || "table" },
      el("table", {}, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, headers)), body)),
    el("div", { class: "actions" }, copy, more),
  );
}
