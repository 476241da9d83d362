// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// `node bundle.mjs PACKAGES PAGE.html` makes the page, with its script and its style, from the
// files in src/. PACKAGES is a folder that contains node_modules.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [packages, target] = process.argv.slice(2);
const sources = path.join(path.dirname(fileURLToPath(import.meta.url)), "src");
const esbuild = createRequire(path.resolve(packages, "package.json"))("esbuild");

const inPackages = (name) => path.resolve(packages, "node_modules", name);

// Returns the licence notices of other projects whose code the page contains; the bundler drops the
// comments of ECharts, so a link to its licence is added.
async function notices() {
  const text = (name) => readFile(inPackages(name), "utf8");
  const parts = [
    await text("echarts/NOTICE"),
    "Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0",
    `Parts of d3 within it:\n${await text("echarts/licenses/LICENSE-d3")}`,
    `ZRender:\n${await text("zrender/LICENSE")}`,
  ];
  return `/*!\n${parts.join("\n\n").replaceAll("*/", "* /")}\n*/`;
}

async function bundled(entry, banner = {}) {
  const result = await esbuild.build({
    entryPoints: [path.join(sources, entry)], nodePaths: [inPackages("")], banner, bundle: true, minify: true, write: false,
    charset: "ascii", format: "iife", target: "es2020", legalComments: "inline",
  });
  return result.outputFiles[0].text;
}

const template = await readFile(path.join(sources, "page.html"), "utf8");
const style = await bundled("style.css");
// A script in a page must not contain "</script", which would end it.
const script = (await bundled("main.js", { js: await notices() })).replaceAll("</script", "<\\/script");
await writeFile(target, template.replace("/* style */", () => style).replace("/* script */", () => script));
