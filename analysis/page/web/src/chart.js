// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Makes the frame around every chart: title, switches, a legend of buttons, the picture, a table of
// its numbers, and buttons to save it. A chart is drawn when it comes near the visible part of the
// page, and before printing.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TitleComponent, TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import LRU from "zrender/lib/core/LRU.js";
import { filter, onThemeChange, setPrinting, theme } from "./theme_and_filter.js";
import { sourceText } from "./data.js";
import { button, download, el, isNarrow } from "./page_elements.js";
import { table } from "./table.js";

// zrender caches the widths of texts in an object, with the text as key. For a host called
// "__proto__" or "constructor" it would find and change a property that all objects have. A zero
// byte at the end of each key prevents this, since no such property's name ends with a zero byte.
for (const name of ["get", "put"]) {
  const method = LRU.prototype[name];
  LRU.prototype[name] = function (key, ...value) {
    return method.call(this, `${key}\0`, ...value);
  };
}

// The page contains only these parts of ECharts.
use([
  BarChart, CanvasRenderer, CustomChart, DataZoomComponent, GridComponent, LegendComponent, LineChart, MarkAreaComponent,
  MarkLineComponent, SVGRenderer, ScatterChart, TitleComponent, TooltipComponent, VisualMapComponent,
]);

/** A chart's description has these keys:
 * - id, unique on the page; title; and note, a sentence below the title
 * - option(colours, state, isNarrow): returns an ECharts option. In it, `format` of an axis returns
 *   the label of a value, `tip(item)` returns the text of a tooltip, and `zoom: true` lets a reader
 *   zoom along the x axis. Series that the legend switches on and off have names. `state` has the
 *   value of each switch by its name.
 * - switches: [{name, label, choices, value}]; a switch named "ranks" follows the page's filter
 * - table: the chart's numbers (table.js)
 * - height: pixels, or a function of the state that returns them
 * - legend: false for no legend */

/** Maps ids to the Chart objects of all charts on the page; scripts may use it, too. */
export const charts = {};

const nearby = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    nearby.unobserve(target);
    charts[target.dataset.chart]?.draw();
  }
}, { rootMargin: "600px" });
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) charts[target.dataset.chart]?.resize();
});

/** Puts an invisible character in each "{name|", which ECharts reads as a style of rich text. */
const plain = (text) => text?.replace(/\{(?=\w+\|)/g, "{\u2060");
/** Replaces the characters that XML does not allow even escaped, such as control characters. */
const forXml = (text) => text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd");
/** Returns the bytes of a picture's data URL. */
const bytesOf = (url) => Uint8Array.from(atob(url.split(",")[1]), (c) => c.charCodeAt(0));

/** Adds to an axis the settings that all axes share. The name of an x axis is below its middle. */
const axisOf = ({ format, ...own }, colours, isX) => ({
  type: "value", nameTextStyle: { color: colours.faint }, axisLine: { lineStyle: { color: colours.line } },
  ...(isX ? { nameLocation: "middle", nameGap: 26 } : {}),
  ...(own.type === "category" ? { axisTick: { show: false } } : {}),
  ...own, splitLine: { ...own.splitLine, lineStyle: { color: colours.line, opacity: 0.6 } },
  axisLabel: { color: colours.faint, hideOverlap: true, ...(format ? { formatter: (value) => format(value) } : {}), ...own.axisLabel },
});

/** Adds to the option of a chart the settings that all charts share. */
function complete({ tip, zoom, ...option }, colours, narrow) {
  const axes = (given, isX) => (Array.isArray(given) ? given.map((own) => axisOf(own, colours, isX)) : axisOf(given, colours, isX));
  const named = [option.xAxis].flat().some((own) => own.name);
  return {
    animation: false, color: colours.series,
    textStyle: { color: colours.text, fontFamily: "system-ui, sans-serif" },
    ...(zoom ? { dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" }] } : {}),
    ...option,
    // Each series is drawn in one pass: a picture might be saved before further passes.
    series: option.series.map((own) => ({ progressive: 0, ...own })),
    xAxis: axes(option.xAxis, true),
    yAxis: axes(option.yAxis, false),
    grid: { left: narrow ? 8 : 12, right: narrow ? 14 : 24, top: 34, bottom: named ? 34 : 14, containLabel: true, ...option.grid },
    tooltip: {
      backgroundColor: colours.background, borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 }, confine: true,
      // Tooltips have names from run files, which must be shown as text and never as markup.
      renderMode: "richText",
      ...option.tooltip,
      formatter: tip && ((item) => plain(tip(item))),
    },
    legend: { show: false },
  };
}

/** Estimates how many lines a legend with these names takes in a saved picture. */
function linesOf(names, width) {
  let [lines, used] = [0, Infinity];
  for (const name of names) {
    const item = 45 + 7 * name.length;
    lines += used + item > width ? 1 : 0;
    used = used + item > width ? item : used + item;
  }
  return lines;
}

/** Maps keys to functions that move the zoom window, given by middle and width in percent. */
const moves = {
  "+": (middle, width) => [middle, width / 2],
  "=": (middle, width) => [middle, width / 2],
  "-": (middle, width) => [middle, Math.min(100, width * 2)],
  0: () => [50, 100],
  ArrowLeft: (middle, width) => [middle - width / 5, width],
  ArrowRight: (middle, width) => [middle + width / 5, width],
};

// The states of switches by chart id, for a chart that replaces one with the same id.
const states = {};
const paperWidth = 760; // about the width of a printed page in pixels

class Chart {
  constructor(spec) {
    const { id, title, note, switches = [] } = spec;
    this.spec = spec;
    this.state = {};
    for (const { name, choices, value = choices[0] } of switches) {
      const wanted = [name === "ranks" ? filter.get("ranks") : null, states[id]?.[name]];
      this.state[name] = wanted.find((at) => choices.includes(at)) ?? value;
    }
    this.hidden = new Set();
    this.instance = null;
    this.canvas = el("div", {
      class: "canvas", "data-chart": id, tabindex: 0, role: "img", "aria-label": title, on: { keydown: (event) => this.onKey(event) },
    });
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "series" });
    this.showAll = button("show all", () => this.zoomTo(50, 100), { hidden: true });
    // Maps the name of each switch to its buttons, by choice.
    this.buttons = new Map(switches.map(({ name, choices }) => [name, new Map(choices.map((at) => [at, this.switchButton(name, at)]))]));
    const groups = switches.map(({ name, label }) =>
      el("div", { class: "switch", role: "group", "aria-label": label }, el("span", {}, label), [...this.buttons.get(name).values()]));
    const numbers = el("details", { class: "numbers" }, el("summary", {}, "table"));
    // The table is filled only when it is opened, since it is long with many ranks.
    numbers.addEventListener("toggle", () => numbers.append(table({ caption: title, ...spec.table })), { once: true });
    this.element = el("figure", { class: "chart", id },
      el("figcaption", {}, el("h3", {}, title), note ? el("p", { class: "note" }, note) : null),
      el("div", { class: "controls" }, groups, el("div", { class: "actions" }, this.showAll,
        button("SVG", () => download(`isoscale-${id}.svg`, "image/svg+xml", this.picture("svg"))),
        button("PNG", () => download(`isoscale-${id}.png`, "image/png", bytesOf(this.picture("canvas")))))),
      this.legend, this.canvas, numbers);
    charts[id] = this;
  }

  get drawn() {
    return this.instance !== null;
  }

  switchButton(name, choice) {
    const press = () => (name === "ranks" ? filter.set({ ranks: choice }) : this.choose(name, choice));
    return button(choice, press, { class: null, "aria-pressed": String(choice === this.state[name]) });
  }

  /** Sets the switch `name` to `choice`; does nothing if the switch does not have this choice. */
  choose(name, choice) {
    const own = this.buttons.get(name);
    if (choice === this.state[name] || !own?.has(choice)) return;
    this.state[name] = choice;
    for (const [at, element] of own) element.setAttribute("aria-pressed", String(at === choice));
    this.refresh();
  }

  height() {
    const { height = 320 } = this.spec;
    return typeof height === "function" ? height(this.state) : height;
  }

  option(width) {
    const colours = theme();
    const option = complete(this.spec.option(colours, this.state, isNarrow(width)), colours, isNarrow(width));
    option.legend.selected = Object.fromEntries([...this.hidden].map((name) => [name, false]));
    return option;
  }

  draw() {
    if (this.drawn) return;
    this.canvas.style.height = `${this.height()}px`;
    this.instance = init(this.canvas, null, { renderer: "canvas" });
    this.refresh();
    resized.observe(this.canvas);
  }

  resize() {
    if (!this.drawn) return;
    if (isNarrow(this.canvas.clientWidth) === this.wasNarrow) this.instance.resize();
    else this.refresh();
  }

  refresh() {
    if (!this.drawn) return;
    this.wasNarrow = isNarrow(this.canvas.clientWidth);
    this.canvas.style.height = `${this.height()}px`;
    this.instance.resize();
    this.instance.setOption(this.option(this.canvas.clientWidth), { notMerge: true });
    this.fillLegend();
    const zooms = this.window() !== null;
    this.showAll.hidden = !zooms;
    this.canvas.setAttribute("aria-label", `${this.spec.title}. ${zooms ? "Arrow keys move, + and - zoom, 0 shows all; t" : "T"}he numbers are in the table below.`);
  }

  /** Returns the names of series for the legend; [] if there are fewer than two. */
  names() {
    const series = this.spec.legend === false ? [] : (this.instance?.getOption().series ?? []);
    const names = [...new Set(series.map((s) => s.name).filter((name) => name && !name.startsWith("\0")))];
    return names.length < 2 ? [] : names;
  }

  fillLegend() {
    const series = this.instance.getOption().series;
    this.legend.replaceChildren(...this.names().map((name) => {
      const colour = this.instance.getVisual({ seriesIndex: series.findIndex((s) => s.name === name) }, "color");
      return button([el("i", { style: `background:${colour}` }), name], (event) => this.toggle(name, event.currentTarget),
        { class: null, "aria-pressed": String(!this.hidden.has(name)), title: name });
    }));
  }

  toggle(name, pressed) {
    const hide = !this.hidden.delete(name);
    if (hide) this.hidden.add(name);
    pressed.setAttribute("aria-pressed", String(!hide));
    this.instance?.dispatchAction({ type: hide ? "legendUnSelect" : "legendSelect", name });
  }

  zoomTo(middle, width) {
    const start = Math.min(Math.max(0, middle - width / 2), 100 - width);
    this.instance?.dispatchAction({ type: "dataZoom", start, end: start + width });
  }

  /** Returns the visible part of the x axis in percent of the data; null without a zoom. */
  window() {
    const zoom = this.instance?.getOption().dataZoom?.[0];
    return zoom ? { start: zoom.start, end: zoom.end } : null;
  }

  onKey(event) {
    const shown = this.window();
    const move = moves[event.key];
    if (!shown || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.zoomTo(...move((shown.start + shown.end) / 2, shown.end - shown.start));
  }

  /** Draws the chart as a picture to be saved, with its title and the source of its numbers. */
  picture(renderer) {
    const width = 1000; // pixels
    const names = this.names();
    const [above, below] = [34 + 22 * linesOf(names, width - 40), 24];
    const height = Math.max(420, this.height()) + above + below;
    const colours = theme();
    const instance = init(renderer === "svg" ? null : el("div"), null, { renderer, ssr: renderer === "svg", width, height });
    const option = this.option(width);
    option.title = [
      { text: this.spec.title, left: 12, top: 8, textStyle: { color: colours.text, fontSize: 16 } },
      { text: sourceText(), left: 12, bottom: 6, textStyle: { color: colours.faint, fontSize: 11, fontWeight: "normal", width: width - 24, overflow: "truncate" } },
    ];
    Object.assign(option.legend, {
      show: names.length > 0, top: 34, left: 12, width: width - 40, type: "plain", data: names, textStyle: { color: colours.text },
    });
    option.backgroundColor = colours.background;
    // Margins are enlarged if they are in pixels; those in percent leave enough room.
    for (const [key, more] of [["top", above], ["bottom", below]]) {
      if (typeof option.grid[key] === "number") option.grid[key] += more;
    }
    if (option.visualMap) option.visualMap.bottom += below;
    const zoom = this.window();
    if (zoom && option.dataZoom) option.dataZoom = option.dataZoom.map((z) => ({ ...z, ...zoom, show: false }));
    instance.setOption(option);
    const result = renderer === "svg" ? forXml(instance.renderToSVGString()) : instance.getDataURL({ type: "png", pixelRatio: 2 });
    instance.dispose();
    return result;
  }

  /** Puts an SVG drawing of the chart beside the canvas, for printing: the canvas is painted too
   * late for that, and is coarse on paper. style.css shows the drawing on paper only. */
  toPaper() {
    const height = this.height();
    const instance = init(el("div"), null, { renderer: "svg", width: paperWidth, height });
    instance.setOption(this.option(paperWidth));
    instance.getZr().flush();
    const svg = instance.getDom().querySelector("svg").cloneNode(true);
    svg.setAttribute("viewBox", `0 0 ${paperWidth} ${height}`);
    for (const name of ["width", "height", "style"]) svg.removeAttribute(name);
    this.canvas.after(el("div", { class: "paper", "aria-hidden": "true" }, svg));
    instance.dispose();
  }
}

/** Makes a figure element with the chart that `spec` describes. */
export function chart(spec) {
  const made = new Chart(spec);
  nearby.observe(made.canvas);
  return made.element;
}

/** Unregisters the charts in the element `place`, and calls `fill`, which puts others there. New
 * charts take over the switch states of old charts with the same id. */
export function keepStates(place, fill) {
  const drawn = [];
  for (const { id } of place.querySelectorAll("figure.chart")) {
    if (!charts[id]) continue;
    states[id] = charts[id].state;
    if (charts[id].drawn) drawn.push(id);
    charts[id].instance?.dispose();
    charts[id].instance = null; // the buttons of a removed chart must not draw it
    delete charts[id];
  }
  fill();
  for (const id of drawn) charts[id]?.draw();
}

const forAll = (call) => Object.values(charts).forEach(call);
const leavePaper = () => document.querySelectorAll(".paper").forEach((drawing) => drawing.remove());

/** Draws all charts, also those far from the visible part of the page: for printing and scripts. */
export const drawAll = () => forAll((made) => {
  try {
    made.draw();
  } catch (error) {
    // If one chart cannot be drawn, the others still are.
    console.error(made.spec.id, error);
  }
});

filter.onChange(() => forAll((made) => made.choose("ranks", filter.get("ranks"))));
onThemeChange(() => forAll((made) => made.refresh()));
window.addEventListener("beforeprint", () => {
  setPrinting(true);
  drawAll();
  leavePaper();
  forAll((made) => made.toPaper());
});
window.addEventListener("afterprint", () => {
  leavePaper();
  setPrinting(false);
});
