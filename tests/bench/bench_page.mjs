// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// How large a page is, and how long a browser takes to draw it. Run by hand, on a machine that does
// nothing else; build/bench/make_page_run makes a run of 10 curves on 64 ranks with traces.
//
//   build/bench/make_page_run rich.h5 && build/isoscale report rich.h5 --html rich.html
//   npm ci --prefix tests/browser && node tests/bench/bench_page.mjs rich.html [REPEATS]
//
// Environment: that of tests/browser/chromium.mjs. Goal: below 8 MB, all visible charts within 2 s.
import { stat } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launched } from "../browser/chromium.mjs";

const [file, repeats = "5"] = process.argv.slice(2);

const browser = await launched();

/** Seconds from navigation until what is in sight is painted, and until all is; number of charts. */
async function measured() {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(pathToFileURL(path.resolve(file)).href, { waitUntil: "commit" });
  await page.waitForFunction(() => window.isoscale && [...document.querySelectorAll(".canvas")]
    .filter((at) => at.getBoundingClientRect().top < innerHeight)
    .every((at) => window.isoscale.charts[at.dataset.chart].drawn));
  const painted = () => page.evaluate(() => new Promise((settle) => {
    requestAnimationFrame(() => requestAnimationFrame(() => settle(performance.now() / 1000)));
  }));
  const visible = await painted();
  const charts = await page.evaluate(() => {
    window.isoscale.drawAll();
    return Object.keys(window.isoscale.charts).length;
  });
  const all = await painted();
  await page.close();
  return { visible, all, charts };
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const rounds = [];
for (let i = 0; i < Number(repeats); ++i) rounds.push(await measured());
await browser.close();
const { size } = await stat(file);
console.log(`${path.basename(file)}: ${(size / 1e6).toFixed(2)} MB, ${rounds[0].charts} charts`);
for (const [what, key] of [["charts in sight drawn", "visible"], ["all charts drawn", "all"]]) {
  const times = rounds.map((round) => round[key]);
  console.log(`${what}: median ${median(times).toFixed(2)} s, ${Math.min(...times).toFixed(2)} to ${Math.max(...times).toFixed(2)} s, ${times.length} times`);
}
