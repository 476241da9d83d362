// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis {

/// The comparison as docs/comparing.md describes it. Texts of files are as they stand there: dump
/// it as ASCII, with bytes that are not UTF-8 replaced.
[[nodiscard]] nlohmann::ordered_json compare_json(const Comparison& comparison);

}  // namespace isoscale::analysis
