// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

/// Comparisons as text; no renderer computes anything that another could disagree with.
namespace isoscale::analysis {

[[nodiscard]] std::string render_text(const Comparison& comparison);
[[nodiscard]] std::string render_json(const Comparison& comparison);
/// A row for each point of each side, with what it is against the first side.
[[nodiscard]] std::string render_csv(const Comparison& comparison);
/// A test case for each difference; of what is unlike, and so was refused, an error.
[[nodiscard]] std::string render_junit(const Comparison& comparison);
/// Begins with the gate's table, for a comment under a change.
[[nodiscard]] std::string render_markdown(const Comparison& comparison);

/// The comparison as docs/comparing.md describes it. Texts of files are as they stand there: dump
/// it as ASCII, with bytes that are not UTF-8 replaced.
[[nodiscard]] nlohmann::ordered_json compare_json(const Comparison& comparison);

// The pieces of which text and markdown are arranged; all text is escaped.

/// How each side does over all points; the first lines of every comparison.
[[nodiscard]] std::vector<std::string> overall_sentences(const Comparison& of);
/// Launches, dates and files of the sides, and their machines where these differ.
[[nodiscard]] TitledTable sides_table(const Comparison& of);
/// The differences between the machines; no rows where there are none.
[[nodiscard]] TitledTable machines_table(const Comparison& of);
/// Points of all sides of a curve, differences, and rates over what the machines have. A table
/// without rows is left out.
[[nodiscard]] std::vector<TitledTable> curve_tables(const Comparison& of, std::size_t curve);
/// Causes of the differences, what rates were divided by, and launches that do not count.
[[nodiscard]] Facts curve_facts(const Comparison& of, std::size_t curve);
/// The differing settings, the points of one side alone, labels, warnings and missing rates.
[[nodiscard]] Facts comparison_facts(const Comparison& of);
/// Title and "unlike: dtype" of a curve.
[[nodiscard]] std::string curve_title(const Comparison& of, std::size_t curve);
/// A row a point. Only with a gate.
[[nodiscard]] TitledTable gate_table(const Comparison& of);
/// How the numbers are to be read, one sentence a line.
[[nodiscard]] std::vector<std::string> comparison_key(const Comparison& of);

}  // namespace isoscale::analysis
