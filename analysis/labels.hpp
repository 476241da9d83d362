// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace isoscale::analysis {

/// Labels of points whose times are not those of the machine: ranks that share cores or a GPU, and
/// faults that were put in on purpose.
inline constexpr std::array<std::string_view, 3> unsound_labels{"oversubscribed", "shared-gpu",
                                                                "injected"};

[[nodiscard]] inline bool is_scaling_result(const std::vector<std::string>& labels) {
  return std::ranges::find_first_of(labels, unsound_labels) == labels.end();
}

}  // namespace isoscale::analysis
