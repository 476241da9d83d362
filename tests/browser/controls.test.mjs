// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// What a reader can do with a chart: hide series, switch, zoom, save.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkerOf } from "./charts.mjs";
import { assertSaved, close, drawAll, factsOf, figure, onPage, optionOf, shared } from "./pages.mjs";

after(close);

/** Pages with all kinds of charts; the rich one has nearly all. */
const pages = ["rich", "sample"];

/** Names of the series that ECharts shows. */
const shown = (page, id) => page.evaluate((of) => {
  const names = [];
  window.isoscale.charts[of].instance.getModel().eachSeries((series) => names.push(series.name));
  return names;
}, id);

for (const name of pages) {
  test(`legends of ${name} hide and show series`, async () => {
    const { page } = await shared(name);
    let tried = 0;
    for (const id of await drawAll(page)) {
      const button = figure(page, id).locator(".legend button").first();
      if (await button.count() === 0) continue;
      ++tried;
      const series = await button.innerText();
      const before = await shown(page, id);
      assert.ok(before.includes(series), `${id}: ${series}`);
      await button.click();
      assert.equal(await button.getAttribute("aria-pressed"), "false");
      assert.deepEqual(await shown(page, id), before.filter((at) => at !== series), id);
      await button.press("Enter");
      assert.equal(await button.getAttribute("aria-pressed"), "true");
      assert.deepEqual(await shown(page, id), before, id);
    }
    assert.ok(name === "sample" || tried > 0, "no chart has a legend");
  });

  test(`switches of ${name} keep to the numbers`, async () => {
    const { page, said } = await shared(name);
    const from = await factsOf(name, page);
    let tried = 0;
    for (const id of await drawAll(page)) {
      const groups = figure(page, id).locator(".switch");
      for (let g = 0; g < await groups.count(); ++g) {
        const buttons = groups.nth(g).locator("button");
        for (let b = 0; b < await buttons.count(); ++b) {
          await buttons.nth(b).click();
          const pressed = await buttons.evaluateAll((all) => all.map((at) => at.getAttribute("aria-pressed")));
          assert.equal(pressed.filter((at) => at === "true").length, 1, id);
          assert.equal(pressed[b], "true", id);
          checkerOf(id)(await optionOf(page, id), from);
          ++tried;
        }
      }
    }
    assert.ok(name === "sample" || tried > 0, "no chart has a switch");
    assert.deepEqual(said, []);
  });
}

test("log and linear change the axes' types", onPage("run", async ({ page }) => {
  await drawAll(page);
  const types = async () => {
    const { xAxis, yAxis } = await optionOf(page, "speedup");
    return [xAxis[0].type, yAxis[0].type];
  };
  const press = (group, choice) =>
    figure(page, "speedup").getByRole("group", { name: group, exact: true }).getByRole("button", { name: choice }).click();
  assert.deepEqual(await types(), ["log", "log"]);
  await press("ranks", "linear");
  assert.deepEqual(await types(), ["value", "log"]);
  await press("values", "linear");
  assert.deepEqual(await types(), ["value", "value"]);
  await press("ranks", "log");
  assert.deepEqual(await types(), ["log", "value"]);
}));

// Without the series, which are long, and are asked for often.
const zoomOf = (page, id) => page.evaluate((of) => {
  const { dataZoom } = window.isoscale.charts[of].instance.getOption();
  return dataZoom?.length ? [dataZoom[0].start, dataZoom[0].end] : null;
}, id);

const close2 = (actual, wanted, what) =>
  actual.forEach((at, i) => assert.ok(Math.abs(at - wanted[i]) < 0.01, `${what}: ${actual}, wanted ${wanted}`));

for (const name of pages) {
  test(`charts of ${name} zoom by key and wheel`, async () => {
    const { page } = await shared(name);
    let tried = 0;
    for (const id of await drawAll(page)) {
      const before = await zoomOf(page, id);
      if (before === null) continue;
      ++tried;
      const canvas = figure(page, id).locator(".canvas");
      await canvas.focus();
      for (const [key, ...wanted] of [["0", 0, 100], ["+", 25, 75], ["ArrowRight", 35, 85], ["ArrowLeft", 25, 75], ["-", 0, 100]]) {
        await canvas.press(key);
        close2(await zoomOf(page, id), wanted, `${id} ${key}`);
      }
      await canvas.press("+");
      await figure(page, id).getByRole("button", { name: "show all" }).click();
      close2(await zoomOf(page, id), [0, 100], `${id} show all`);
      // The wheel alone scrolls the page; with ctrl it zooms.
      await canvas.scrollIntoViewIfNeeded();
      const box = await canvas.boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + Math.min(box.height / 2, 150));
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -200);
      await page.waitForFunction((of) => {
        const [zoom] = window.isoscale.charts[of].instance.getOption().dataZoom;
        return zoom.end - zoom.start < 99;
      }, id);
      await page.keyboard.up("Control");
      await canvas.press("0");
      close2(await zoomOf(page, id), [0, 100], `${id} after the wheel`);
    }
    assert.ok(name === "sample" || tried > 0, "no chart zooms");
  });

  test(`charts of ${name} are saved as SVG and PNG`, async () => {
    const { page, said } = await shared(name);
    for (const id of await drawAll(page)) await assertSaved(page, id, `${name}.h5`);
    assert.deepEqual(said, []);
  });
}
