// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Tables sort, and one filter holds in all sections. Beside these: what a page draws has ink, its
// policy keeps it from the network, and without JavaScript it says that it needs it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, drawAll, onPage, openTable } from "./pages.mjs";

after(close);

/** The cells of a table's column, as shown. */
const column = (page, index) => page.locator("#efficiency table tbody tr").evaluateAll(
  (rows, at) => rows.map((row) => row.cells[at].textContent), index);

test("tables sort by a click on a header and by key", onPage("run", async ({ page }) => {
  const table = await openTable(page, "efficiency");
  const at = (await table.locator("thead th").allInnerTexts()).indexOf("ranks");
  const header = table.locator("thead th").nth(at);
  const button = header.getByRole("button");
  const before = (await column(page, at)).map(Number);
  const ascending = before.toSorted?.((a, b) => a - b) ?? [...before].sort((a, b) => a - b);
  assert.notDeepEqual(before, ascending);
  await button.click();
  assert.equal(await header.getAttribute("aria-sort"), "ascending");
  assert.deepEqual((await column(page, at)).map(Number), ascending);
  await button.press("Enter");
  assert.equal(await header.getAttribute("aria-sort"), "descending");
  assert.deepEqual((await column(page, at)).map(Number), [...ascending].reverse());
  // Another column takes over.
  await table.locator("thead th").nth(0).getByRole("button").press("Space");
  assert.equal(await header.getAttribute("aria-sort"), null);
  assert.equal(await table.locator("thead th").nth(0).getAttribute("aria-sort"), "ascending");
}));

test("one filter holds in all sections, and the address keeps it", onPage("run", async ({ page, said }) => {
  await drawAll(page);
  const list = page.locator("#ranks .choices select").nth(1);
  const smallest = await list.locator("option").first().textContent();
  await list.selectOption({ index: 0 });
  const chosen = () => page.evaluate(() => [...document.querySelectorAll("section")].flatMap((section) => {
    const lists = section.querySelectorAll(".choices select");
    return ["timeline", "ranks", "steps", "devices"].includes(section.id) && lists.length === 2 ? [lists[1].selectedOptions[0].textContent] : [];
  }));
  assert.deepEqual([...new Set(await chosen())], [smallest]);
  assert.equal(new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get("ranks"), smallest);
  const followed = await page.evaluate(() => Object.values(window.isoscale.charts)
    .filter(({ spec }) => spec.switches?.some(({ name, choices }) => name === "ranks" && choices.includes(new URLSearchParams(location.hash.split("?")[1]).get("ranks"))))
    .map(({ state }) => state.ranks));
  assert.deepEqual(followed.filter((ranks) => ranks !== smallest), []);
  // A link to a section keeps the choice, and so does loading the page anew.
  await page.locator("nav a[href='#steps']").click();
  await page.waitForFunction(() => location.hash.startsWith("#steps?"));
  await page.reload({ waitUntil: "load" });
  await page.waitForFunction(() => window.isoscale !== undefined);
  assert.deepEqual([...new Set(await chosen())], [smallest]);
  assert.deepEqual(said, []);
}));

test("a picture that is on the page has ink on it", onPage("run", async ({ page }) => {
  const ids = await drawAll(page);
  const colours = await page.evaluate((all) => all.map((id) => {
    const canvas = window.isoscale.charts[id].canvas.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  }), ids);
  colours.forEach((count, i) => assert.ok(count > 8, `${ids[i]}: ${count} colours`));
}));

test("what a page may not do, the browser keeps it from doing", onPage("run", async ({ page, said }) => {
  const done = await page.evaluate(async () => {
    const fetched = await fetch("https://example.org/").then(() => "fetched", () => "kept");
    const image = await new Promise((settle) => {
      const made = new Image();
      made.onload = () => settle("loaded");
      made.onerror = () => settle("kept");
      made.src = "https://example.org/x.png";
    });
    const script = await new Promise((settle) => {
      const made = document.createElement("script");
      made.onload = () => settle("loaded");
      made.onerror = () => settle("kept");
      made.src = "https://example.org/x.js";
      document.head.append(made);
    });
    let evaluated = "kept";
    try {
      evaluated = (0, eval)("'evaluated'");
    } catch { /* as it should */ }
    return { fetched, image, script, evaluated };
  });
  assert.deepEqual(done, { fetched: "kept", image: "kept", script: "kept", evaluated: "kept" });
  // It was the page's own policy, before the network was asked.
  assert.equal(said.filter((line) => line.includes("Content Security Policy")).length, said.length);
  for (const what of ["x[.]png", "x[.]js", "example[.]org/"]) {
    assert.ok(said.some((line) => new RegExp(what, "i").test(line)), `${what}: ${said.join("; ")}`);
  }
}));

test("without JavaScript the page says what it needs", onPage("run", async ({ page }) => {
  assert.match(await page.locator("main").innerText(), /JavaScript/);
}, { javaScriptEnabled: false }));
