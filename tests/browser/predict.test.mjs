// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The page of a prediction beside its charts: headline, tables and what is said, against the JSON.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { near, rowsOfCsv } from "./expected.mjs";
import { close, drawAll, named, onPage, optionOf, reportOf } from "./pages.mjs";

after(close);

/** A table as it is copied: the page's own rows, by the text that the clipboard gets. */
async function copied(page, id) {
  await page.evaluate(() => {
    window.copied = undefined;
    Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text) => { window.copied = text; } } });
  });
  await page.locator(`#${id}`).getByRole("button", { name: "copy as CSV" }).evaluate((button) => button.click());
  await page.waitForFunction(() => window.copied !== undefined, undefined, { polling: 50 });
  const rows = rowsOfCsv(await page.evaluate(() => window.copied));
  return rows.slice(1).map((row) => Object.fromEntries(rows[0].map((name, i) => [name, row[i]])));
}

const meshText = (mesh) => Object.entries(mesh).filter(([, extent]) => extent > 1).map(([axis, extent]) => `${axis}=${extent}`).join(",") || "1";

/** The columns that are of a predicted point, and what the JSON has for each. */
const numbers = [
  ["step time / s", (at) => at.step_time.value], ["step time, lower / s", (at) => at.step_time.lower], ["step time, upper / s", (at) => at.step_time.upper],
  ["throughput", (at) => at.throughput.value], ["throughput, lower", (at) => at.throughput.lower], ["throughput, upper", (at) => at.throughput.upper],
  ["speed-up", (at) => at.speedup.value],
  ["efficiency", (at) => at.efficiency.value], ["efficiency, lower", (at) => at.efficiency.lower], ["efficiency, upper", (at) => at.efficiency.upper],
  ["noise", (at) => at.uncertainty.noise], ["launch", (at) => at.uncertainty.launch], ["model", (at) => at.uncertainty.fit],
  ["simulated / s", (at) => at.simulated], ["delay by noise / s", (at) => at.delay], ["memory per rank / B", (at) => at.memory_per_rank],
  ["MFU", (at) => at.mfu],
];

const pages = named("predict");

for (const name of pages) {
  test(`the table of ${name} has the numbers of the JSON report`, onPage(name, async ({ page, said }) => {
    const report = reportOf(name);
    const rows = await copied(page, "predict-numbers");
    const wanted = [
      ...report.measured.map((point) => ({ curve: "measured", point })),
      ...[report.curve, ...report.what_if].flatMap((curve) => [
        ...curve.points.filter((point) => point.refused === null), ...curve.points.filter((point) => point.refused !== null),
      ].map((point) => ({ curve: curve.title, point }))),
    ];
    assert.equal(rows.length, wanted.length);
    wanted.forEach(({ curve, point }, i) => {
      const what = `${curve} on ${point.ranks} ranks`;
      assert.equal(rows[i].curve, curve);
      assert.equal(Number(rows[i].ranks), point.ranks);
      assert.equal(Number(rows[i].nodes), point.nodes);
      if (point.refused) {
        assert.equal(rows[i].notes, point.refused);
        return;
      }
      assert.equal(rows[i].mesh, meshText(point.mesh), what);
      if (curve === "measured") {
        near(Number(rows[i]["step time / s"]), point.step_time, what);
        near(Number(rows[i].throughput), point.throughput, what);
        assert.equal(rows[i].efficiency === "" ? null : Number(rows[i].efficiency), point.efficiency, what);
        return;
      }
      for (const [column, of] of numbers) {
        // One rank count alone has nothing that efficiency would be against.
        const isBlank = !report.has_efficiency && /^(speed-up|efficiency)/.test(column);
        if (isBlank || of(point) === null) assert.equal(rows[i][column], "", `${column} of ${what}`);
        else near(Number(rows[i][column]), of(point), `${column} of ${what}`);
      }
      assert.equal(rows[i].limit, point.limit ?? "", what);
      assert.equal(rows[i].notes.includes("extrapolated"), point.extrapolated, what);
      assert.equal(rows[i].notes.includes("does not fit"), point.fits === false, what);
    });
    assert.deepEqual(said, []);
  }));

  test(`the first screen of ${name} says what would be reached`, onPage(name, async ({ page }) => {
    const report = reportOf(name);
    const curves = [report.curve, ...report.what_if];
    const shown = await page.locator("#overview article.card").evaluateAll((cards) => cards.map((card) => ({
      title: card.querySelector("h3").textContent, value: card.querySelector(".huge").textContent, text: card.textContent, badges: card.querySelector(".badges")?.textContent ?? "",
    })));
    assert.deepEqual(shown.map((card) => card.title), curves.map((curve) => curve.title));
    curves.forEach((curve, i) => {
      const point = curve.points.at(-1);
      const percent = (value) => (100 * value).toFixed(1);
      assert.ok(shown[i].text.includes(`${report.throughput_unit}/rank`), shown[i].text);
      assert.equal(shown[i].text.includes(`efficiency ${percent(point.efficiency.value)}%`), report.has_efficiency);
      assert.equal(shown[i].badges.includes("extrapolated"), point.extrapolated);
      assert.equal(shown[i].badges.includes("does not fit"), point.fits === false);
    });
    const text = await page.evaluate(() => document.getElementById("page").textContent);
    for (const said of [report.machine, report.source, ...report.warnings, ...report.limits, ...(report.next ? [report.next.what, report.next.command] : [])]) {
      assert.ok(text.includes(said), said);
    }
    assert.ok((await page.title()).includes("predicted on"));
  }));
}

for (const name of pages.filter((at) => reportOf(at).best.length > 0)) {
  test(`${name} says why each candidate loses`, onPage(name, async ({ page }) => {
    const { best } = reportOf(name);
    const rows = await copied(page, "best-table");
    assert.equal(rows.length, best.length);
    best.forEach((at, i) => {
      assert.equal(Number(rows[i].place), i + 1);
      assert.equal(rows[i].mesh, meshText(at.mesh));
      near(Number(rows[i]["step time / s"]), at.step_time, "step time");
      near(Number(rows[i]["memory per rank / B"]), at.memory_per_rank, "memory");
      assert.equal(rows[i]["why it loses to the first"], at.why_not ?? "");
      assert.equal(rows[i].microbatch, at.options.microbatch ?? "");
    });
  }));
}

for (const name of pages.filter((at) => reportOf(at).what_if.length > 0)) {
  test(`${name} shows intervals of all curves when asked to`, onPage(name, async ({ page }) => {
    await drawAll(page);
    const bands = async () => (await optionOf(page, "predict-efficiency")).series.filter(({ type }) => type === "custom").length;
    const of = (curve) => (curve.points.some(({ efficiency: at }) => at && at.lower < at.upper) ? 1 : 0);
    const report = reportOf(name);
    assert.equal(await bands(), of(report.curve));
    await page.locator("#predict-efficiency").getByRole("button", { name: "all", exact: true }).click();
    assert.equal(await bands(), [report.curve, ...report.what_if].reduce((sum, curve) => sum + of(curve), 0));
  }));
}
