// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The frame around every chart: title, switches, a legend of buttons, the picture, its numbers as a
// table, and saving. A chart is drawn when it comes near the window.
import { download, el } from "./dom.js";
import { init } from "./echarts.js";
import { leavePaper, toPaper } from "./paper.js";
import { table } from "./table.js";
import { onThemeChange, setPrinting, theme } from "./theme.js";

/**
 * @typedef {object} ChartSpec
 * @property {string} id unique on the page, such as "efficiency"
 * @property {string} title
 * @property {string} [note] a sentence below the title
 * @property {(colours: object, state: object, isNarrow: boolean) => object} option an ECharts option;
 *   series to switch on and off have names. `state` has the value of each switch by its name.
 * @property {{name: string, label: string, choices: string[], value?: string}[]} [switches]
 * @property {{columns: import("./table.js").Column[], rows: any[][]}} table the chart's numbers
 * @property {number | ((state: object) => number)} [height] pixels
 * @property {boolean} [legend] false: none
 */

/**
 * All charts on the page, by id: {drawn, draw(), instance, spec, state}; scripts may use them too.
 */
export const charts = {};

const nearby = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      nearby.unobserve(entry.target);
      charts[entry.target.dataset.chart]?.draw();
    }
  },
  { rootMargin: "600px" },
);
const resized = new ResizeObserver((entries) => {
  for (const entry of entries) charts[entry.target.dataset.chart]?.resize();
});

function fileName(id) {
  return `isoscale-${id}`;
}

// The limit in pixels covers a telephone, and two charts side by side on a small screen.
const isNarrow = (width) => width < 520;

/**
 * Returns a text in which no "{name|" begins a style of rich text: an invisible character separates
 * brace and name.
 */
const plain = (text) => text?.replace(/\{(?=\w+\|)/g, "{\u2060");

/** Adds the options that all charts share. */
function complete(option, colours, narrow) {
  const axis = (own) => ({
    nameTextStyle: { color: colours.faint },
    axisLine: { lineStyle: { color: colours.line } },
    ...own,
    splitLine: { ...own.splitLine, lineStyle: { color: colours.line, opacity: 0.6, ...own.splitLine?.lineStyle } },
    axisLabel: { color: colours.faint, hideOverlap: true, ...own.axisLabel },
  });
  const axes = (given) => (Array.isArray(given) ? given.map(axis) : given && axis(given));
  const named = [option.xAxis].flat().some((own) => own?.name);
  return {
    animation: false,
    color: colours.series,
    textStyle: { color: colours.text, fontFamily: "system-ui, sans-serif" },
    ...option,
    // Series are drawn at once: a picture may be saved or removed before its last piece would be
    // drawn.
    series: option.series.map((own) => ({ progressive: 0, ...own })),
    xAxis: axes(option.xAxis),
    yAxis: axes(option.yAxis),
    grid: { left: narrow ? 8 : 12, right: narrow ? 14 : 24, top: 34, bottom: named ? 34 : 14, containLabel: true, ...option.grid },
    tooltip: {
      backgroundColor: colours.background,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 },
      confine: true,
      // Tooltips have names from run files, which must be shown as text and never as markup.
      renderMode: "richText",
      ...option.tooltip,
      formatter: option.tooltip?.formatter && ((...of) => plain(option.tooltip.formatter(...of))),
    },
    legend: { show: false, selected: option.legend?.selected },
  };
}

/** Replaces the control characters that XML does not allow, not even escaped. */
const forXml = (text) => text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd");

/** Returns how many lines a legend of these names takes in a saved picture. */
function linesOf(names, width) {
  let lines = names.length > 0 ? 1 : 0;
  let used = 0;
  for (const name of names) {
    const item = 45 + 7 * name.length;
    if (used > 0 && used + item > width) {
      ++lines;
      used = 0;
    }
    used += item;
  }
  return lines;
}

/** Returns a grid moved down by `above` pixels; tops in percent leave room by themselves. */
function lowered(grid, above) {
  const lower = (at) => (typeof at.top === "number" ? { ...at, top: at.top + above } : at);
  return Array.isArray(grid) ? grid.map(lower) : lower(grid);
}

class Chart {
  constructor(spec) {
    this.spec = spec;
    this.state = Object.fromEntries((spec.switches ?? []).map((s) => [s.name, s.value ?? s.choices[0]]));
    this.hidden = new Set();
    this.instance = null;
    this.canvas = el("div", {
      class: "canvas",
      "data-chart": spec.id,
      tabindex: 0,
      role: "img",
      "aria-label": spec.title,
      on: { keydown: (event) => this.onKey(event) },
    });
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "series" });
    this.element = this.frame();
    charts[spec.id] = this;
  }

  get drawn() {
    return this.instance !== null;
  }

  frame() {
    const { spec } = this;
    this.showAll = el("button", { type: "button", class: "quiet", hidden: true, on: { click: () => this.reset() } }, "show all");
    const actions = el("div", { class: "actions" }, this.showAll,
      el("button", { type: "button", class: "quiet", on: { click: () => this.saveSvg() } }, "SVG"),
      el("button", { type: "button", class: "quiet", on: { click: () => this.savePng() } }, "PNG"));
    const numbers = el("details", { class: "numbers" }, el("summary", {}, "table"));
    // The table is filled only when it is opened, since it is long with many ranks.
    numbers.addEventListener("toggle", () => this.fillTable(numbers), { once: true });
    return el("figure", { class: "chart", id: spec.id },
      el("figcaption", {}, el("h3", {}, spec.title), spec.note ? el("p", { class: "note" }, spec.note) : null),
      el("div", { class: "controls" }, (spec.switches ?? []).map((s) => this.switchOf(s)), actions),
      this.legend, this.canvas, numbers);
  }

  fillTable(into) {
    const { columns, rows } = this.spec.table;
    into.append(table(columns, rows, { caption: this.spec.title }));
  }

  switchOf({ name, label, choices }) {
    const buttons = choices.map((choice) =>
      el("button", {
        type: "button",
        "aria-pressed": String(choice === this.state[name]),
        on: {
          click: () => {
            this.state[name] = choice;
            for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === choice));
            this.refresh();
          },
        },
      }, choice));
    return el("div", { class: "switch", role: "group", "aria-label": label }, el("span", {}, label), buttons);
  }

  height() {
    const { height = 320 } = this.spec;
    return typeof height === "function" ? height(this.state) : height;
  }

  option(width) {
    const option = complete(this.spec.option(theme(), this.state, isNarrow(width)), theme(), isNarrow(width));
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

  names() {
    const series = this.instance?.getOption().series ?? [];
    return [...new Set(series.map((s) => s.name).filter((name) => name && !name.startsWith("\0")))];
  }

  fillLegend() {
    if (this.spec.legend === false) return;
    const names = this.names();
    const series = this.instance.getOption().series;
    this.legend.replaceChildren(...(names.length < 2 ? [] : names.map((name) => {
      const index = series.findIndex((s) => s.name === name);
      const colour = this.instance.getVisual({ seriesIndex: index }, "color");
      return el("button", {
        type: "button",
        "aria-pressed": String(!this.hidden.has(name)),
        title: name,
        on: { click: (event) => this.toggle(name, event.currentTarget) },
      }, el("i", { style: `background:${colour}` }), name);
    })));
  }

  toggle(name, button) {
    const hide = !this.hidden.has(name);
    if (hide) this.hidden.add(name);
    else this.hidden.delete(name);
    button.setAttribute("aria-pressed", String(!hide));
    this.instance.dispatchAction({ type: hide ? "legendUnSelect" : "legendSelect", name });
  }

  reset() {
    this.instance?.dispatchAction({ type: "dataZoom", start: 0, end: 100 });
  }

  /** Returns the part of the data that is shown, in percent; null without zoom. */
  window() {
    const zoom = this.instance?.getOption().dataZoom?.[0];
    return zoom ? { start: zoom.start, end: zoom.end } : null;
  }

  onKey(event) {
    const shown = this.window();
    if (!shown) return;
    const width = shown.end - shown.start;
    const middle = (shown.start + shown.end) / 2;
    const around = (at, of) => {
      const start = Math.min(Math.max(0, at - of / 2), 100 - of);
      return { start, end: start + of };
    };
    const moves = {
      "+": () => around(middle, width / 2),
      "=": () => around(middle, width / 2),
      "-": () => around(middle, Math.min(100, width * 2)),
      0: () => ({ start: 0, end: 100 }),
      ArrowLeft: () => around(middle - width / 5, width),
      ArrowRight: () => around(middle + width / 5, width),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.instance.dispatchAction({ type: "dataZoom", ...move() });
  }

  /** Draws a separate picture, 1000 pixels wide, with the title. */
  picture(renderer) {
    const width = 1000;
    const names = this.spec.legend === false || this.names().length < 2 ? [] : this.names();
    const above = 34 + 22 * linesOf(names, width - 40);
    const height = Math.max(420, this.height()) + above;
    const colours = theme();
    const instance = init(renderer === "svg" ? null : el("div"), null, { renderer, ssr: renderer === "svg", width, height });
    const option = complete(this.spec.option(colours, this.state, false), colours, false);
    option.title = { text: this.spec.title, left: 12, top: 8, textStyle: { color: colours.text, fontSize: 16 } };
    option.legend = {
      show: names.length > 0,
      top: 34,
      left: 12,
      width: width - 40,
      type: "plain",
      data: names,
      textStyle: { color: colours.text },
      selected: Object.fromEntries([...this.hidden].map((name) => [name, false])),
    };
    option.backgroundColor = colours.background;
    option.grid = lowered(option.grid, above);
    const zoom = this.window();
    if (zoom && option.dataZoom) option.dataZoom = option.dataZoom.map((z) => ({ ...z, ...zoom, show: false }));
    instance.setOption(option);
    const result = renderer === "svg" ? forXml(instance.renderToSVGString()) : instance.getDataURL({ type: "png", pixelRatio: 2 });
    instance.dispose();
    return result;
  }

  saveSvg() {
    download(`${fileName(this.spec.id)}.svg`, "image/svg+xml", this.picture("svg"));
  }

  savePng() {
    const base64 = this.picture("canvas").split(",")[1];
    const binary = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    download(`${fileName(this.spec.id)}.png`, "image/png", binary);
  }
}

/** Makes a figure with a chart. */
export function chart(spec) {
  const made = new Chart(spec);
  nearby.observe(made.canvas);
  return made.element;
}

/** Draws the charts that have not come near the window yet: for paper, and for scripts. */
export function drawAll() {
  for (const made of Object.values(charts)) {
    try {
      made.draw();
    } catch (error) {
      // A chart that cannot be drawn does not keep the others from being drawn.
      console.error(made.spec.id, error);
    }
  }
}

onThemeChange(() => {
  for (const made of Object.values(charts)) made.refresh();
});
window.addEventListener("beforeprint", () => {
  setPrinting(true);
  drawAll();
  leavePaper();
  for (const made of Object.values(charts)) toPaper(made);
});
window.addEventListener("afterprint", () => {
  leavePaper();
  setPrinting(false);
});
