// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Every chart shows the numbers of the file: what ECharts holds against the JSON report and h5py.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkerOf, registry } from "./charts.mjs";
import { close, drawAll, kindOf, named, onPage, optionOf, rawOf, reportOf, shared } from "./pages.mjs";

after(close);

const seen = new Set();

for (const name of named("sample", "run", "launches", "index", "rich", "compare", "predict")) {
  test(`charts of ${name} show the file's numbers`, async (context) => {
    const { page } = await shared(name);
    const ids = await drawAll(page);
    const from = {
      name,
      report: reportOf(name),
      raw: ["compare", "index", "predict"].includes(kindOf(name)) ? [] : rawOf(name),
      details: await page.evaluate(() => window.isoscale.data.details ?? []),
    };
    for (const id of ids) {
      await context.test(id, async () => {
        const check = checkerOf(id);
        check(await optionOf(page, id), from);
        seen.add(id);
      });
    }
  });
}

test("each checker had a chart to check", () => {
  for (const [pattern] of registry) {
    assert.ok([...seen].some((id) => pattern.test(id)), `no page has a chart ${pattern}`);
  }
});

test("a checker sees a number that is not the file's", onPage("run", async ({ page }) => {
  await drawAll(page);
  const from = { name: "run", report: reportOf("run"), raw: rawOf("run"), details: [] };
  const option = await optionOf(page, "efficiency");
  const line = option.series.find(({ type, data }) => type === "line" && data.length > 0);
  line.data[0].value[1] *= 1 + 1e-6;
  assert.throws(() => checkerOf("efficiency")(option, from), assert.AssertionError);
  assert.throws(() => checkerOf("a chart of tomorrow"), /no checker/);
}));

for (const name of named("sample", "run", "launches", "index", "rich", "compare", "predict")) {
  test(`tables of ${name} have the numbers of their charts`, async () => {
    const { page } = await shared(name);
    const tables = await page.evaluate(() => Object.entries(window.isoscale.charts).map(([id, { spec: { table } }]) =>
      ({ id, rows: table?.items.map((item) => table.columns.map((column) => column.value(item) ?? null)) ?? [] })));
    for (const { id, rows } of tables) {
      assert.ok(rows.length > 0, `${id} has no table`);
      // A row of a chart's numbers has a number, or says why it has none.
      for (const row of rows) assert.ok(row.some((value) => value !== null), `${id}: an empty row`);
    }
  });
}
