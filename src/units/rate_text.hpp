// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "units/quantity.hpp"

/// Rates of work from text.
namespace isoscale::units {

/// "20GFLOP/s", "1.5 TFLOP/s": k, M, G, T, P or no prefix (10^3). Throws std::invalid_argument with
/// a sentence for a person.
[[nodiscard]] FlopsPerSecond parse_flops_per_second(std::string_view text);

}  // namespace isoscale::units
