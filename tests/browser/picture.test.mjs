// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The picture that README.md shows can be taken anew from a page.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { urlOf } from "./pages.mjs";

const folder = mkdtempSync(path.join(os.tmpdir(), "picture-"));
after(() => rmSync(folder, { recursive: true }));

test("a picture of a page shows its curves", () => {
  const target = path.join(folder, "page.png");
  const script = fileURLToPath(new URL("picture.mjs", import.meta.url));
  const source = fileURLToPath(urlOf("rich"));
  const { charts, ...size } = JSON.parse(execFileSync("node", [script, source, target], { encoding: "utf8" }));
  const picture = readFileSync(target);
  assert.equal(picture.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  assert.deepEqual({ width: picture.readUInt32BE(16), height: picture.readUInt32BE(20) }, size);
  assert.ok(charts.includes("efficiency"), `charts: ${charts}`);
  // An empty page of this size takes less than 10 kB.
  assert.ok(picture.length > 50_000 && picture.length < 500_000, `${picture.length} bytes`);
});
