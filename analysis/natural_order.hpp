// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace isoscale::analysis {

/// Whether `a` comes before `b` where numbers in names count as numbers: node2 before node10.
[[nodiscard]] bool before_naturally(std::string_view a, std::string_view b);

}  // namespace isoscale::analysis
