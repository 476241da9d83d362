// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Texts of run files that try to be more than text stand on the page as text, and run nothing.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { assertDrawn, close, drawAll, named, open, urlOf } from "./pages.mjs";

after(close);

/** Hostile texts (tests/support/hostile_run.py) look like this where they are shown. */
const signs = [
  "</script><img src=x", "\"><svg onload", "owned", "=cmd|' /C calc'!A0", "gnp.exe", "bad \ufffd\ufffd",
  "{{constructor.constructor", "{a}{b}{c}{@[1]}|{style|rich}%s%n{0}", "__proto__", "javascript:window.hacked=1//",
  "|`x`|[x](javascript:alert(1))", "<!--<script>", "x=1,</script><b>",
];

const seen = new Set();

/** Returns what no text may have made: elements, attributes, globals. */
const foreign = () => {
  const all = [...document.querySelectorAll("*")];
  return {
    tags: [...new Set(all.map(({ tagName }) => tagName))].sort(),
    scripts: document.scripts.length,
    handlers: all.flatMap((at) => at.getAttributeNames().filter((name) => name.startsWith("on"))),
    links: [...document.querySelectorAll("[href], [src]")].map((at) => at.getAttribute("href") ?? at.getAttribute("src"))
      .filter((to) => !to.startsWith("#")),
    hacked: window.hacked,
    prototype: Object.getOwnPropertyNames(Object.prototype).sort().join() === window.before && Object.keys({}).length === 0,
  };
};
const clean = { scripts: 2, handlers: [], links: [], hacked: undefined, prototype: true };
const before = () => { window.before = Object.getOwnPropertyNames(Object.prototype).sort().join(); };

/** Holds the tags of pages of the same runs without hostile texts: a page may have these. */
const usual = new Set();

async function assertClean(page, when) {
  const { tags, ...found } = await page.evaluate(foreign);
  assert.deepEqual(found, clean, when);
  assert.deepEqual(tags.filter((tag) => !usual.has(tag)), [], when);
}

/** Every list, switch, legend, table and header once. */
async function useAll(page) {
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  // Tables are filled by an event of their own.
  await page.waitForFunction(() => [...document.querySelectorAll("details.numbers")].every((at) => at.children.length > 1));
  await page.evaluate(() => {
    for (const list of document.querySelectorAll("section select")) {
      list.selectedIndex = list.options.length - 1;
      list.dispatchEvent(new Event("change", { bubbles: true }));
    }
    window.isoscale.drawAll();
    for (const button of document.querySelectorAll(".switch button, .legend button, th button")) button.click();
    for (const button of document.querySelectorAll(".legend button")) button.click();
    window.isoscale.drawAll();  // another choice of ranks puts new charts on the page
  });
}

/** Returns the texts of the tooltips of the first item of each series of each chart. */
const tooltips = (page) => page.evaluate(() => {
  const texts = [];
  for (const { instance } of Object.values(window.isoscale.charts)) {
    const said = () => instance.getZr().storage.getDisplayList(true).map(({ style }) => style?.text ?? "").filter(Boolean);
    instance.getOption().series.forEach((series, seriesIndex) => {
      if (!series.data?.length || series.silent) return;
      instance.dispatchAction({ type: "showTip", seriesIndex, dataIndex: 0 });
      texts.push(said().join("\n"));
      instance.dispatchAction({ type: "hideTip" });
    });
  }
  return texts.join("\n");
});

test("pages without hostile texts have no foreign elements", async () => {
  for (const name of named("sample", "run", "predict")) {
    const { page, said, close: leave } = await open(name, { before });
    await drawAll(page);
    await useAll(page);
    const { tags, ...found } = await page.evaluate(foreign);
    assert.deepEqual(found, clean, name);
    for (const tag of tags) {
      assert.ok(!["IMG", "SVG", "IFRAME", "OBJECT", "EMBED", "BASE", "FORM", "LINK"].includes(tag.toUpperCase()), `${name}: ${tag}`);
      usual.add(tag);
    }
    assert.deepEqual(said, []);
    await leave();
  }
});

const marks = "{a}{b}{c}{@[1]}|{style|rich}%s%n{0}";
let withMarks = 0;

/** Names with the marks of templates and rich text stand in tooltips as they are. */
async function assertMarksStay(page) {
  const texts = await page.evaluate((text) => Object.values(window.isoscale.charts).flatMap(({ instance }) => {
    const { series, tooltip } = instance.getOption();
    return series.filter((at) => at.name?.includes(text) && at.data?.length).map((at) => {
      const [data] = at.data;
      return tooltip[0].formatter({ seriesName: at.name, data, value: data?.value ?? data, name: at.name, dataIndex: 0 });
    });
  }), marks);
  for (const text of texts) {
    ++withMarks;
    assert.equal(text.replaceAll("\u2060", "").includes(marks), true, text);
    // zrender takes this pattern for a style and its text, so no text may hold it.
    assert.doesNotMatch(text, /\{([a-zA-Z0-9_]+)\|([^}]*)\}/);
  }
}

/** Saved pictures are pictures alone. */
async function assertPictures(page, ids) {
  for (const id of ids) {
    const bad = await page.evaluate((of) => {
      const source = window.isoscale.charts[of].picture("svg");
      const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
      const all = [...parsed.querySelectorAll("*")];
      return [...all.map(({ tagName }) => tagName).filter((tag) => /script|foreignObject|iframe|img|parsererror/i.test(tag)),
        ...all.flatMap((at) => at.getAttributeNames().filter((attribute) => attribute.startsWith("on")))];
    }, id);
    assert.deepEqual(bad, [], id);
  }
}

for (const name of named("hostile")) {
  test(`${name}: texts stay texts`, async () => {
    const opened = await open(name, { before });
    const ids = await drawAll(opened.page);
    if (!name.startsWith("sample")) assert.ok(ids.length > 0, "no charts");
    await assertDrawn(opened.page);
    await assertClean(opened.page, "as it opens");
    if (name.startsWith("run-")) await assertMarksStay(opened.page);
    if (/run-hostile-0[04]$/.test(name)) await assertPictures(opened.page, ids);
    await useAll(opened.page);
    const tips = await tooltips(opened.page);
    await assertClean(opened.page, "after all was used");
    // On paper charts are SVG in the page.
    const paper = await opened.page.evaluate(() => {
      window.dispatchEvent(new Event("beforeprint"));
      const all = [...document.querySelectorAll(".paper *")];
      // Patterns of hatched boxes are images within the page.
      const outside = (to) => !to.startsWith("#") && !to.startsWith("data:image/png");
      return all.filter((at) => /^(script|foreignObject|a)$/i.test(at.tagName) ||
        at.getAttributeNames().some((name) => /^on/.test(name) || (/href/.test(name) && outside(at.getAttribute(name))))).map((at) => at.outerHTML.slice(0, 100));
    });
    assert.deepEqual(paper, []);
    await opened.page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    await assertClean(opened.page, "after printing");
    const body = await opened.page.evaluate(() => document.body.textContent.slice(0, 20_000_000));
    const title = await opened.page.title();
    const found = signs.filter((sign) => body.includes(sign) || tips.includes(sign) || title.includes(sign));
    found.forEach((sign) => seen.add(sign));
    assert.ok(found.length > 0, "none of its texts is shown");
    assert.deepEqual(opened.said, []);
    assert.deepEqual(opened.asked, [urlOf(name)]);
    await opened.close();
  });
}

test("every kind of text was shown somewhere", () => {
  assert.deepEqual(signs.filter((sign) => !seen.has(sign)), []);
  assert.ok(withMarks > 0, "no chart had a name with marks");
});
