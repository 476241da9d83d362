// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The page around the charts: tables, colours, paper, small screens, the keyboard.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { drawnCurves, near, rowsOfCsv } from "./expected.mjs";
import { close, drawAll, named, onPage, openTable, reportOf, shared } from "./pages.mjs";

after(close);

const full = "rich";

for (const clipboard of ["the clipboard", "no clipboard"]) {
  test(`copy as CSV gives the numbers as they are (${clipboard})`, onPage("run", async ({ page }) => {
    await page.evaluate((how) => {
      const write = how === "the clipboard"
        ? async (text) => { window.copied = text; }
        : async () => { throw new Error("not allowed"); };
      Object.defineProperty(navigator, "clipboard", { value: { writeText: write } });
      document.addEventListener("copy", () => { window.copied = document.activeElement.value; });
    }, clipboard);
    const table = await openTable(page, "efficiency");
    await table.getByRole("button", { name: "copy as CSV" }).click();
    await page.waitForFunction(() => window.copied !== undefined);
    const { columns, rows } = await page.evaluate(() => {
      const { table: of } = window.isoscale.charts.efficiency.spec;
      return {
        columns: of.columns.map(({ title, csv }) => csv ?? title),
        rows: of.items.map((item) => of.columns.map((column) => column.value(item) ?? null)),
      };
    });
    const parsed = rowsOfCsv(await page.evaluate(() => window.copied));
    assert.deepEqual(parsed[0], columns);
    // Cells on the page name their unit; numbers alone need it in their heading.
    assert.ok(parsed[0].includes("step time / s"));
    assert.equal(await table.getByRole("columnheader", { name: "step time", exact: true }).count(), 1);
    assert.deepEqual(parsed.slice(1), rows.map((row) => row.map((value) => (value === null ? "" : String(value)))));
    assert.ok(rows.flat().some((value) => typeof value === "number" && !Number.isInteger(value)));
  }));
}

/** Calls edit(data) with the page's data before the page's script reads it. */
function changeData(edit) {
  const watch = new MutationObserver(() => {
    let data;
    try {
      data = JSON.parse(document.getElementById("data").textContent);
    } catch {
      return; // it is not all there yet
    }
    watch.disconnect();
    edit(data);
    document.getElementById("data").textContent = JSON.stringify(data);
  });
  watch.observe(document, { childList: true, subtree: true, characterData: true });
}
const changedBy = (edit) => `(${changeData})(${edit})`;

/** Adds a metric to the table of the page's data, as one line of point_metrics.cpp does. */
function addMetric(data) {
  data.metrics.point.one_line = { heading: "one line", form: "seconds", unit: "s", sentence: "a metric in one line", shown: true };
  const points = data.report?.runs[0].points ?? data.compare.curves.flatMap(({ sides }) => sides.flatMap((side) => side.points));
  for (const point of points) point.one_line = point.ranks;
}

for (const [name, id] of [["run", "efficiency"], ["compare", "compare-efficiency"]]) {
  test(`a metric that is added in one line has a column (${name})`, onPage(name, async ({ page, said }) => {
    const table = await openTable(page, id);
    const header = table.getByRole("columnheader", { name: "one line" });
    assert.equal(await header.getAttribute("title"), "a metric in one line");
    const headers = await table.locator("thead th").allInnerTexts();
    const rows = await table.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.ok(rows.length > 1);
    for (const row of rows) assert.equal(row[headers.indexOf("one line")], `${row[headers.indexOf("ranks")]}.00 s`);
    assert.deepEqual(said, []);
  }, { before: changedBy(addMetric) }));
}

const loss = 0.9; // far beyond the differences of the page's points
test("the line of a gate lies inside its chart", onPage("compare", async ({ page }) => {
  await drawAll(page);
  const [gate, zero, isInside] = await page.evaluate((of) => {
    const { instance } = window.isoscale.charts["compare-differences"];
    const [gate, zero] = [-of, 0].map((x) => instance.convertToPixel({ xAxisIndex: 0 }, x));
    return [gate, zero, instance.containPixel("grid", [gate, instance.getHeight() / 2])];
  }, loss);
  assert.ok(gate < zero && isInside, `the gate is at ${gate}, zero at ${zero}`);
}, { before: changedBy(`(data) => { data.compare.gate = { loss: ${loss}, verdict: "passed", sentence: "passed" }; }`) }));

test("a warning of a comparison is seen at once", onPage("compare", async ({ page }) => {
  assert.ok(await page.locator("section").first().getByText("B did not finish").first().isVisible());
}, { before: changedBy('(data) => { data.compare.warnings.push("B did not finish"); }') }));

const themeOf = (page) => page.evaluate(() => ({
  theme: document.documentElement.dataset.theme,
  paper: getComputedStyle(document.body).backgroundColor,
  ink: window.isoscale.charts.efficiency.instance.getOption().textStyle.color,
}));

test("colours follow the system, and the button", onPage("run", async ({ page }) => {
  await drawAll(page);
  const light = await themeOf(page);
  assert.equal(light.theme, "light");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  const dark = await themeOf(page);
  assert.notEqual(dark.paper, light.paper);
  assert.notEqual(dark.ink, light.ink);
  const button = page.getByRole("button", { name: /^colours/ });
  const seen = [];
  for (let i = 0; i < 3; ++i) {
    await button.press("Enter");
    seen.push([await button.innerText(), (await themeOf(page)).theme]);
  }
  assert.deepEqual(seen, [["colours: light", "light"], ["colours: dark", "dark"], ["colours: auto", "dark"]]);
}, { colorScheme: "light" }));

for (const scheme of ["light", "dark"]) {
  test(`on paper all charts are there, on white (${scheme})`, onPage(full, async ({ page, said }) => {
    const before = await page.evaluate(() => Object.values(window.isoscale.charts).filter(({ drawn }) => !drawn).length);
    await page.evaluate(() => {
      window.addEventListener("beforeprint", () => {
        window.printed = Object.entries(window.isoscale.charts).map(([id, { drawn, element, instance }]) => ({
          id, drawn, ink: instance?.getOption().textStyle.color,
          shapes: element.querySelectorAll(".paper svg path, .paper svg text, .paper svg rect").length,
        }));
        window.printedTheme = document.documentElement.dataset.theme;
      });
    });
    const pdf = await page.pdf({ format: "A4" });
    assert.equal(pdf.subarray(0, 5).toString("latin1"), "%PDF-");
    const printed = await page.evaluate(() => window.printed);
    assert.equal(await page.evaluate(() => window.printedTheme), "light");
    assert.ok(before > 0, "nothing was left to draw for paper");
    for (const { id, drawn, ink, shapes } of printed) {
      assert.ok(drawn && shapes > 10, `${id}: ${shapes} shapes on paper`);
      assert.equal(ink, printed[0].ink, id);
    }
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => [...document.querySelectorAll(".controls button, header button")]
      .filter((at) => at.offsetHeight > 0).length), 0);
    await page.emulateMedia({ media: "screen" });
    assert.equal((await themeOf(page)).theme, scheme, "after printing");
    assert.deepEqual(said, []);
  }, { colorScheme: scheme }));
}

const narrow = named().filter((name) => !name.includes("hostile") || /-(?:00|08|kinds|long)$/.test(name));
for (const name of narrow) {
  test(`${name} fits 400 and 1280 pixels`, onPage(name, async ({ page }) => {
    await drawAll(page);
    await page.evaluate(() => document.querySelectorAll("details").forEach((at) => { at.open = true; }));
    for (const width of [400, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      // Charts follow their boxes a frame later.
      await page.evaluate(() => new Promise((settle) => { requestAnimationFrame(() => requestAnimationFrame(settle)); }));
      const { wide, culprits } = await page.evaluate(() => {
        const limit = window.innerWidth;
        const cut = (at) => at.parentElement !== null &&
          (getComputedStyle(at.parentElement).overflowX !== "visible" || cut(at.parentElement));
        return {
          wide: document.scrollingElement.scrollWidth,
          culprits: [...document.querySelectorAll("body *")]
            .filter((at) => at.getBoundingClientRect().right > limit + 0.5 && !cut(at))
            .slice(0, 5).map((at) => `${at.tagName}.${at.className}: ${at.textContent.slice(0, 60)}`),
        };
      });
      assert.ok(wide <= width, `${wide} of ${width} pixels wide because of ${culprits.join("; ")}`);
    }
  }, { viewport: { width: 400, height: 800 } }));
}

const controls = "a[href], button, select, input, summary, [tabindex='0']";

test("Tab reaches every control, in the order of the page, and each has a name", onPage(full, async ({ page }) => {
  await drawAll(page);
  await page.evaluate((which) => {
    // The content of closed details is laid out, but nobody can see or reach it.
    const closed = (at) => at.parentElement?.closest("details:not([open])");
    const visible = (at) => at.offsetParent !== null && at.getClientRects().length > 0 &&
      (!closed(at) || (at.tagName === "SUMMARY" && !closed(at.parentElement)));
    window.wanted = [...document.querySelectorAll(which)].filter((at) => visible(at) && !at.disabled);
    window.wanted.forEach((at, i) => { at.dataset.order = i; });
  }, controls);
  const count = await page.evaluate(() => window.wanted.length);
  assert.ok(count > 10);
  const order = [];
  for (let i = 0; i < count + 5; ++i) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const { activeElement: on } = document;
      const { outlineStyle, outlineWidth } = getComputedStyle(on);
      const name = on.getAttribute("aria-label") ?? (on.labels?.[0]?.textContent || on.textContent);
      return { order: on.dataset.order, name: name.trim(), outline: outlineStyle !== "none" && outlineWidth !== "0px",
        where: on.outerHTML.slice(0, 160) };
    });
    if (at.order === undefined) break;
    order.push(Number(at.order));
    assert.ok(at.name, `no name: ${at.where}`);
    assert.ok(at.outline, `no focus ring: ${at.where}`);
  }
  assert.deepEqual(order, [...Array(count).keys()]);
}));

test("headings, landmarks and ids are those of a document", async () => {
  const { page } = await shared(full);
  const found = await page.evaluate(() => {
    const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
    return {
      title: document.title,
      h1: document.querySelectorAll("h1").length,
      lang: document.documentElement.lang,
      twice: ids.filter((id, i) => ids.indexOf(id) !== i),
      broken: [...document.querySelectorAll("a[href^='#']")].map((at) => at.getAttribute("href").slice(1))
        .filter((id) => document.getElementById(id) === null),
      levels: [...document.querySelectorAll("h1, h2, h3, h4")].map(({ tagName }) => Number(tagName[1])),
    };
  });
  assert.match(found.title, /Isoscale/);
  assert.equal(found.h1, 1);
  assert.equal(found.lang, "en");
  assert.deepEqual(found.twice, []);
  assert.deepEqual(found.broken, []);
  found.levels.forEach((level, i) => assert.ok(i === 0 || level <= found.levels[i - 1] + 1, `h${level} after h${found.levels[i - 1]}`));
});

/** The number of a percentage as shown: "12.3%" */
const share = (text) => Number(text.replace("\u2212", "-").replace("%", "")) / 100;

const unsound = ["oversubscribed", "shared-gpu", "injected"];
const isSound = (point) => !point.labels.some((label) => unsound.includes(label)) && point.full.verified !== false;

/** The point that a curve is judged by: the largest without a label, else the largest. */
function headlineOf({ points }) {
  const sound = points.filter(isSound);
  return (sound.length > 0 ? sound : points).reduce((best, at) => (best.ranks >= at.ranks ? best : at));
}

for (const name of named("run", "launches", "rich")) {
  test(`each card of ${name} is of the largest point without a label`, async () => {
    const { page } = await shared(name);
    const cards = await page.locator("#overview article.card:has(.card-title h3[title])").evaluateAll((all) =>
      all.map((card) => [card.querySelector("h3").title, Number.parseInt(card.querySelector(".card-title span").textContent, 10)]));
    assert.deepEqual(cards, drawnCurves(reportOf(name))
      .map((curve) => [curve.title, headlineOf(curve).ranks]));
  });

  test(`the first causes of ${name} are the largest, against the baseline of their curve`, async () => {
    const { page } = await shared(name);
    const all = drawnCurves(reportOf(name)).flatMap((curve) => {
      const point = headlineOf(curve);
      if (!point.full.waterfall?.explains) return [];
      const { lost, measured } = point.full.waterfall;
      return Object.entries(lost).filter(([cause, seconds]) => cause !== "untraced" && seconds > 0)
        .map(([cause, seconds]) => ({ cause, share: seconds / measured, isSound: isSound(point) }));
    });
    const counted = all.some((at) => at.isSound) ? all.filter((at) => at.isSound) : all;
    const worst = new Map();
    for (const { cause, share: of } of counted.sort((a, b) => b.share - a.share)) if (!worst.has(cause)) worst.set(cause, of);
    const wanted = [...worst].slice(0, 3);
    const shown = await page.locator("#overview li.cause").evaluateAll((items) =>
      items.map((item) => [item.querySelector(":scope > div b").textContent, item.querySelector("b.big").textContent]));
    assert.deepEqual(shown.map(([cause]) => cause), wanted.map(([cause]) => cause));
    shown.forEach(([cause, text], i) => assert.ok(Math.abs(share(text) - wanted[i][1]) <= 0.0051, `${cause}: ${text}, wanted ${wanted[i][1]}`));
  });
}

/** "traced in launch 2 (1, 4 ranks), launch 3 (2 ranks)"; of one launch alone: "traced in launch 2" */
function tracedIn(points) {
  const launches = [...new Set(points.map(({ launch }) => launch))].sort((one, other) => one - other);
  if (launches.length === 1) return `traced in launch ${launches[0]}`;
  const parts = launches.map((launch) => {
    const ranks = points.filter((point) => point.launch === launch).map((point) => point.ranks);
    const isOne = ranks.length === 1 && ranks[0] === 1;
    return `launch ${launch} (${ranks.join(", ")} ${isOne ? "rank" : "ranks"})`;
  });
  return `traced in ${parts.join(", ")}`;
}

for (const name of named("launches")) {
  test(`efficiencies of ${name} are those of the joined curves`, async () => {
    const { page } = await shared(name);
    await drawAll(page);
    const report = reportOf(name);
    const points = report.curves.flatMap((curve) => curve.points.filter((point) => point.pop));
    assert.ok(points.length > 0);
    const rows = await page.locator("#pop details.numbers tbody tr").evaluateAll((all) =>
      all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.equal(rows.length, points.length);
    rows.forEach((row, i) => {
      assert.equal(Number(row[1]), points[i].ranks);
      for (const [at, key] of [[2, "global"], [3, "parallel"]]) {
        const value = points[i].pop[key];
        if (value === null) assert.doesNotMatch(row[at], /%/);
        else near(Math.round(1e4 * (share(row[at]) - value)) / 1e4 + 1, 1, `${key} of ${points[i].ranks} ranks`, 6e-4);
      }
      // Which launch its breakdown is of.
      const typical = report.runs.findIndex((run) => run.id === points[i].launches.find((at) => at.typical).run);
      assert.equal(points[i].launch, typical + 1);
    });
    // A note's own text: what stands next to it on the page is another element's.
    const notes = await page.locator("#pop .panel p.note").allTextContents();
    assert.deepEqual(notes.filter((text) => text.startsWith("traced in")), report.curves
      .map((curve) => curve.points.filter((point) => point.pop)).filter((all) => all.length > 0).map(tracedIn));
  });
}
