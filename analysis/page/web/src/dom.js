// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes elements of the page. Text from run files is inserted as text only, never as markup.

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

/** True if a width in pixels is that of a telephone; a chart beside another one on a small screen
 * may be as narrow. */
export const isNarrow = (width = window.innerWidth) => width < 520;
/** Makes a button without a frame. The listener `click` gets the event. */
export const button = (text, click, attributes = {}) =>
  el("button", { type: "button", class: "quiet", on: { click }, ...attributes }, text);

/** Makes a button with this text that copies the text that content() returns, and then shows
 * "copied" for 1.5 s. */
export function copyButton(text, content) {
  const made = button(text, async () => {
    await copyText(content());
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

/** Copies text to the clipboard. If the browser does not let the page use the clipboard API, as for
 * a page opened from disk, it copies from a temporary text field. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { style: "position:fixed;opacity:0", "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
