// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Re-exports the modules from which sections are built.
export * from "./blocks_and_choices.js";
export * from "./data.js";
export * from "./page_elements.js";
export * from "./format.js";
export * from "./line_charts.js";
export * from "./table.js";
export { partNames } from "./theme_and_filter.js";
