// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "analysis/compare/comparison.hpp"

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

}  // namespace isoscale::analysis
