// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What the tests share: the pages that make_pages.py made, and a browser to open them in.
//
// Environment, beside that of chromium.mjs: ISOSCALE_PAGES = their folder.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launched } from "./chromium.mjs";

const folder = process.env.ISOSCALE_PAGES;

/** @type {{name: string, kind: string}[]} */
export const pages = JSON.parse(readFileSync(path.join(folder, "pages.json"), "utf8"));

/** Names of the pages of these kinds; of none if none are given: of all. */
export const named = (...kinds) =>
  pages.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind)).map(({ name }) => name);

export const kindOf = (name) => pages.find((page) => page.name === name).kind;

/** The JSON report of a page's files. */
export const reportOf = (name) => JSON.parse(readFileSync(path.join(folder, `${name}.json`), "utf8"));

/** What the checkers of charts compare the charts of an open page with. */
export const factsOf = async (name, page) => ({
  report: reportOf(name),
  details: await page.evaluate(() => window.isoscale.data.details ?? []),
});

export const urlOf = (name) => pathToFileURL(path.join(folder, `${name}.html`)).href;

let browser = null;

export async function close() {
  await browser?.close();
  browser = null;
  opened.clear();
}

/** Opens a page with the network off, in a browser context with the options `how`; a function
 * `before` runs in the page before anything else does. `said` collects what the console said and
 * what was thrown, `asked` all requests. */
export async function open(name, { before = null, ...how } = {}) {
  browser ??= await launched();
  const context = await browser.newContext({
    offline: true,
    viewport: { width: 1280, height: 800 },
    reducedMotion: "reduce",
    acceptDownloads: true,
    ...how,
  });
  context.setDefaultTimeout(60_000);
  if (before) await context.addInitScript(before);
  const page = await context.newPage();
  const said = [], asked = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) said.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => said.push(`thrown: ${error.stack ?? error}`));
  page.on("request", (request) => asked.push(request.url()));
  page.on("dialog", (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  await context.route("**", (route) =>
    (route.request().url() === urlOf(name) ? route.continue() : route.abort()));
  await page.goto(urlOf(name), { waitUntil: "load" });
  if (how.javaScriptEnabled !== false) await page.waitForFunction(() => window.isoscale !== undefined);
  return { context, page, said, asked, close: () => context.close() };
}

/** Makes a test work(opened page) of a page of its own, which is closed however the test ends. */
export const onPage = (name, work, how) => async () => {
  const made = await open(name, how);
  try {
    await work(made);
  } finally {
    await made.close();
  }
};

const opened = new Map();

/** Returns the same page for all tests of a file that change nothing which another one looks at. */
export async function shared(name) {
  if (!opened.has(name)) opened.set(name, await open(name));
  return opened.get(name);
}

/** Draws every chart and gives their ids. */
export async function drawAll(page) {
  return page.evaluate(() => {
    window.isoscale.drawAll();
    return Object.keys(window.isoscale.charts);
  });
}

/** Every chart was drawn: it has series and stands on the page. */
export async function assertDrawn(page) {
  const drawn = await page.evaluate(() => Object.entries(window.isoscale.charts).map(([id, made]) => ({
    id,
    drawn: made.drawn,
    series: made.instance?.getOption().series.length ?? 0,
    width: made.canvas.querySelector("canvas, svg")?.clientWidth ?? 0,
    height: made.canvas.querySelector("canvas, svg")?.clientHeight ?? 0,
  })));
  for (const at of drawn) {
    assert.ok(at.drawn && at.series > 0, `${at.id} is not drawn`);
    assert.ok(at.width > 100 && at.height > 100, `${at.id} is ${at.width} x ${at.height}`);
  }
}

export const figure = (page, id) => page.locator(`figure[id="${id}"]`);

/** Opens the table of a chart's numbers and gives it. */
export async function openTable(page, id) {
  await figure(page, id).locator("details.numbers summary").click();
  return figure(page, id).locator(".table");
}

/** The bytes of the picture that a chart's button saves. */
async function saved(page, id, format) {
  // A busy browser drops one of many downloads in a row now and then: that one is asked for again.
  const ask = async (tries) => {
    const coming = page.waitForEvent("download", { timeout: 20_000 }).catch(() => null);
    await figure(page, id).getByRole("button", { name: format, exact: true }).click();
    return (await coming) ?? (tries > 1 ? ask(tries - 1) : null);
  };
  const file = await ask(3);
  assert.ok(file, `${id}: no ${format} came`);
  assert.equal(file.suggestedFilename(), `isoscale-${id}.${format.toLowerCase()}`);
  return readFile(await file.path());
}

/** A chart is saved as SVG, with its texts and the name of the run's file, and as PNG. */
export async function assertSaved(page, id, source) {
  const svg = (await saved(page, id, "SVG")).toString("utf8");
  const [root, text] = await page.evaluate((given) => {
    const parsed = new DOMParser().parseFromString(given, "image/svg+xml");
    return [parsed.documentElement.nodeName, parsed.documentElement.textContent];
  }, svg);
  assert.equal(root, "svg", id);
  assert.ok(!/<script|<foreignObject|\son\w+=/i.test(svg), `${id}: scripts`);
  const title = await figure(page, id).locator("h3").innerText();
  assert.ok(text.includes(title), `${id}: the title`);
  assert.ok(text.includes(source), `${id}: the file`);
  for (const series of await figure(page, id).locator(".legend button").allInnerTexts()) {
    assert.ok(text.includes(series), `${id}: ${series}`);
  }
  const png = await saved(page, id, "PNG");
  assert.equal(png.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n", id);
  assert.equal(png.readUInt32BE(16), 2000, `${id}: width`);
  assert.ok(png.readUInt32BE(20) >= 840, `${id}: height`);
  assert.ok(png.length > 5000, `${id}: ${png.length} B`);
}

/** The series of a chart, as data: functions left out, typed arrays as arrays. `chosen` is what the
 * lists of the chart's section say, `chosenIndex` their places; `marks` are the lines across it. */
export async function optionOf(page, id) {
  return page.evaluate((of) => {
    const { instance, state, spec, element } = window.isoscale.charts[of];
    const lists = [...(element.closest("section")?.querySelectorAll("select") ?? [])]
      .filter((list) => list.closest(".choices").parentElement.contains(element));
    const { series, xAxis, yAxis, dataZoom } = instance.getOption();
    const plain = (value) => JSON.parse(JSON.stringify(value ?? null, (key, at) =>
      (ArrayBuffer.isView(at) ? [...at] : typeof at === "function" ? undefined : at)));
    const axis = ({ type, name, min, max, data }) => ({ type, name, min, max, data });
    return plain({
      state,
      title: spec.title,
      chosen: lists.map((list) => list.selectedOptions[0].textContent),
      chosenIndex: lists.map((list) => list.selectedIndex),
      marks: series.flatMap((at) => at.markLine?.data ?? []),
      series: series.map(({ type, name, data, stack, dimensions }) => ({ type, name, data, stack, dimensions })),
      xAxis: xAxis?.map(axis),
      yAxis: yAxis?.map(axis),
      dataZoom,
    });
  }, id);
}
