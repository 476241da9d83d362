// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Draws charts for printing as SVG: a canvas is painted too late for this, and is coarse on paper.
import { el } from "./dom.js";
import { init } from "./echarts.js";

const width = 760; // about the width of a printed page in pixels
const onPaper = [];

/** Puts a drawing of `made` beside its canvas; style.css shows it on paper only. */
export function toPaper(made) {
  const height = made.height();
  const instance = init(el("div"), null, { renderer: "svg", width, height });
  instance.setOption(made.option(width));
  instance.getZr().flush();
  const svg = instance.getDom().querySelector("svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const name of ["width", "height", "style"]) svg.removeAttribute(name);
  const place = el("div", { class: "paper", "aria-hidden": "true" });
  place.append(svg);
  made.canvas.after(place);
  onPaper.push({ instance, place });
}

/** Removes the drawings that toPaper() made. */
export function leavePaper() {
  for (const { instance, place } of onPaper.splice(0)) {
    instance.dispose();
    place.remove();
  }
}
