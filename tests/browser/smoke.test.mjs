// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// By default these are tried on pages of simulated runs: all charts, one table, one filter, the page's
// policy, one picture.
import "./charts.test.mjs";
import "./tables.test.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertSaved, drawAll, onPage } from "./pages.mjs";

for (const [name, id] of [["run", "efficiency"], ["index", "over-time-0"]]) {
  test(`a chart of ${name} is saved as SVG and PNG`, onPage(name, async ({ page, said }) => {
    await drawAll(page);
    await assertSaved(page, id, "side_0_0.h5");
    assert.deepEqual(said, []);
  }));
}
