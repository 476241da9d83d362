// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The browser that opens pages. Environment: ISOSCALE_CHROMIUM = its program [/usr/bin/chromium],
// ISOSCALE_BROWSER_PACKAGES = a folder with node_modules [this one].
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const packages = process.env.ISOSCALE_BROWSER_PACKAGES ?? path.dirname(fileURLToPath(import.meta.url));
const { chromium } = createRequire(path.resolve(packages, "package.json"))("playwright-core");

/** Pages are of this machine's files alone; the sandbox does not start for root. */
export const launched = () => chromium.launch({
  executablePath: process.env.ISOSCALE_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
