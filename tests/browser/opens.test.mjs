// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What a page draws has ink, its policy keeps it from the network, and it says that it needs JavaScript.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, drawAll, onPage } from "./pages.mjs";

after(close);

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
