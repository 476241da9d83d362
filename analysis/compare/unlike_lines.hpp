// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// What is unlike, in as few lines as it takes.
namespace isoscale::analysis {

/// What is the same of all curves that a side has once and first, "dtype: f32 in A (a.h5), bf16 in
/// B (b.h5); all 4 curves"; then what is left, curve by curve, with rank counts that say the same
/// on one line. Texts of files are escaped.
[[nodiscard]] std::vector<std::string> unlike_lines(const Comparison& of);

}  // namespace isoscale::analysis
