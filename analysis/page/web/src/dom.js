// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes elements without markup: text from run files is only ever inserted as text.

/** Makes an element. `attributes` become attributes, except `on`, which maps events to listeners. `children` are elements, texts
 * or arrays of them; null and undefined are skipped. */
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

/** True on a telephone, and for a chart beside another one on a small screen; the width is in pixels. */
export const isNarrow = (width = window.innerWidth) => width < 520;
/** Makes a button without a frame; the listener gets the event. */
export const button = (text, click, attributes = {}) =>
  el("button", { type: "button", class: "quiet", on: { click }, ...attributes }, text);

/** Makes a button that copies the text from `content`, and then shows "copied" for a while. */
export function copyButton(text, content) {
  const made = button(text, async () => {
    await copyText(content());
    made.textContent = "copied";
    setTimeout(() => { made.textContent = text; }, 1500);
  });
  return made;
}

/** Offers the reader a file to save. */
export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Copies text to the clipboard, even if the browser does not let the page use its clipboard API, as for a page opened from disk. */
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
