// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// By default these are tried on pages of simulated runs: all charts, one table, one filter, one picture.
import "./charts.test.mjs";
import "./tables.test.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertSaved, drawAll, onPage } from "./pages.mjs";

test("a chart is saved as SVG and PNG", onPage("run", async ({ page, said }) => {
  await drawAll(page);
  await assertSaved(page, "efficiency", "side_0_0.h5");
  assert.deepEqual(said, []);
}));
