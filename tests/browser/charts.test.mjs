// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Every page opens from disk without a network and without a complaint, and draws all its charts;
// every chart shows the numbers of the file: what ECharts holds against the JSON report and h5py.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkerOf, registry } from "./charts.mjs";
import { assertDrawn, close, drawAll, factsOf, kindOf, named, onPage, optionOf, shared, urlOf } from "./pages.mjs";

after(close);

const seen = new Set();

// Those with hostile texts are opened in hostile.test.mjs, with the same questions.
for (const name of named().filter((at) => kindOf(at) !== "hostile")) {
  test(`${name} draws all its charts, which show the file's numbers`, async (context) => {
    const { page, said, asked } = await shared(name);
    const ids = await drawAll(page);
    if (!["sample", "index", "rich"].includes(kindOf(name))) assert.ok(ids.length > 0, "no charts");
    await assertDrawn(page);
    assert.deepEqual(said, []);
    assert.deepEqual(asked, [urlOf(name)]);
    const from = await factsOf(name, page);
    for (const id of ids) {
      await context.test(id, async () => {
        checkerOf(id)(await optionOf(page, id), from);
        seen.add(id);
      });
    }
    const tables = await page.evaluate(() => Object.entries(window.isoscale.charts).map(([id, { spec: { table } }]) =>
      ({ id, rows: table?.items.map((item) => table.columns.map((column) => column.value(item) ?? null)) ?? [] })));
    for (const { id, rows } of tables) {
      assert.ok(rows.length > 0, `${id} has no table`);
      // A row of a chart's numbers has a number, or says why it has none.
      for (const row of rows) assert.ok(row.some((value) => value !== null), `${id}: an empty row`);
    }
  });
}

// Only where there are all pages there are all charts.
test("each checker had a chart to check", { skip: named("hostile").length === 0 }, () => {
  for (const [pattern] of registry) {
    assert.ok([...seen].some((id) => pattern.test(id)), `no page has a chart ${pattern}`);
  }
});

test("a checker sees a number that is not the file's", onPage("run", async ({ page }) => {
  await drawAll(page);
  const from = await factsOf("run", page);
  const option = await optionOf(page, "efficiency");
  const line = option.series.find(({ type, data }) => type === "line" && data.length > 0);
  line.data[0].value[1] *= 1 + 1e-6;
  assert.throws(() => checkerOf("efficiency")(option, from), assert.AssertionError);
  assert.throws(() => checkerOf("a chart of tomorrow"), /no checker/);
}));
