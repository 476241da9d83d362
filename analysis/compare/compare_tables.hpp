// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

/// What comparisons for people say, piece by piece; all text is escaped. Text and markdown only
/// arrange it.
namespace isoscale::analysis {

/// How each side does over all points; the first lines of every comparison.
[[nodiscard]] std::vector<std::string> overall_sentences(const Comparison& of);
/// Launches, dates and files of the sides, and their machines where these differ.
[[nodiscard]] TitledTable sides_table(const Comparison& of);
/// What differs between the machines; no rows where nothing does.
[[nodiscard]] TitledTable machines_table(const Comparison& of);
/// Points of all sides of a curve; what differs; rates over what the machines have. What has no
/// rows is left out.
[[nodiscard]] std::vector<TitledTable> curve_tables(const Comparison& of, std::size_t curve);
/// Why; what rates were divided by; launches that do not count.
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
