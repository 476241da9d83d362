// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// node picture.mjs PAGE.html FILE.png: the picture of a page that README.md shows, its first screen
// and its curves. ISOSCALE_CHROMIUM is the browser, ISOSCALE_BROWSER_PACKAGES a folder with
// node_modules. Prints the size of the picture and the charts on it as JSON.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [source, target] = process.argv.slice(2);
const packages = createRequire(path.resolve(process.env.ISOSCALE_BROWSER_PACKAGES, "package.json"));
const { chromium } = packages("playwright-core");
const sections = ["overview", "curves", "breakdown"]; // those of the page that the picture shows

const browser = await chromium.launch({
  executablePath: process.env.ISOSCALE_CHROMIUM,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
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
