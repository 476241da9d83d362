// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// node picture.mjs PAGE.html FILE.png: the picture of a page that README.md shows, its first screen
// and its curves. Environment: that of chromium.mjs. Prints the size of the picture and the charts on
// it as JSON.
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launched } from "./chromium.mjs";

const [source, target] = process.argv.slice(2);
const sections = ["overview", "curves", "breakdown"]; // those of the page that the picture shows

const browser = await launched();
try {
  const page = await browser.newPage({
    viewport: { width: 1280, height: 1180 },
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  await page.goto(pathToFileURL(path.resolve(source)).href, { waitUntil: "load" });
  await page.waitForFunction(() => window.isoscale !== undefined);
  await page.evaluate((kept) => {
    for (const section of document.querySelectorAll("#page > section")) {
      section.hidden = !kept.includes(section.id);
    }
    window.isoscale.drawAll();
  }, sections);
  const charts = await page.evaluate(() => Object.entries(window.isoscale.charts)
    .filter(([, made]) => {
      const { bottom, width, height } = made.canvas.getBoundingClientRect();
      return made.drawn && width > 0 && height > 0 && bottom <= window.innerHeight;
    })
    .map(([id]) => id));
  await page.screenshot({ path: target });
  console.log(JSON.stringify({ ...page.viewportSize(), charts }));
} finally {
  await browser.close();
}
