// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Re-exports the modules from which sections are built.
export * from "./blocks.js";
export * from "./data.js";
export * from "./dom.js";
export * from "./format.js";
export * from "./line_charts.js";
export * from "./table.js";
export { partNames } from "./choices.js";
