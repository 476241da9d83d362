// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The picture that README.md shows can be taken anew from a page, and the one it shows is one.
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

/** Width and height of a PNG. */
function sizeOf(picture) {
  assert.equal(picture.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  return { width: picture.readUInt32BE(16), height: picture.readUInt32BE(20) };
}

test("a picture of a page shows its curves", () => {
  const target = path.join(folder, "page.png");
  const script = fileURLToPath(new URL("picture.mjs", import.meta.url));
  const source = fileURLToPath(urlOf("rich"));
  const { charts, ...size } = JSON.parse(execFileSync("node", [script, source, target], { encoding: "utf8" }));
  const picture = readFileSync(target);
  assert.deepEqual(sizeOf(picture), size);
  assert.ok(charts.includes("efficiency"), `charts: ${charts}`);
  // An empty page of this size takes less than 10 kB.
  assert.ok(picture.length > 50_000 && picture.length < 500_000, `${picture.length} bytes`);
});

test("the picture in the documentation is a PNG of at most 300 kB", () => {
  const picture = readFileSync(fileURLToPath(new URL("../../docs/images/page.png", import.meta.url)));
  const { width, height } = sizeOf(picture);
  assert.ok(width >= 1000 && height >= 600, `${width} x ${height}`);
  assert.ok(picture.length > 50_000 && picture.length <= 300_000, `${picture.length} bytes`);
});
