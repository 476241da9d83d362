// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// node bundle.mjs PACKAGES PAGE.html: one page out of src/, script and style within it. PACKAGES is
// a folder with node_modules.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [packages, target] = process.argv.slice(2);
const sources = path.join(path.dirname(fileURLToPath(import.meta.url)), "src");
const esbuild = createRequire(path.resolve(packages, "package.json"))("esbuild");

async function bundled(entry) {
  const result = await esbuild.build({
    entryPoints: [path.join(sources, entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    format: "iife",
    target: "es2020",
    legalComments: "inline",
    nodePaths: [path.resolve(packages, "node_modules")],
  });
  return result.outputFiles[0].text;
}

const template = await readFile(path.join(sources, "page.html"), "utf8");
const style = await bundled("style.css");
// A script must not contain what ends it.
const script = (await bundled("main.js")).replaceAll("</script", "<\\/script");
await writeFile(
  target,
  template.replace("/* style */", () => style).replace("/* script */", () => script),
);
