// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace isoscale::analysis {

/// Labels of points whose times are not those of the machine: ranks that share cores or a GPU, and
/// faults that were put in on purpose.
inline constexpr std::array<std::string_view, 3> unsound_labels{"oversubscribed", "shared-gpu",
                                                                "injected"};

/// True if ranks of the point shared cores or a GPU: its time says nothing about scaling.
[[nodiscard]] inline bool shares_hardware(const std::vector<std::string>& labels) {
  return std::ranges::any_of(labels, [](const std::string& label) {
    return label == "oversubscribed" || label == "shared-gpu";
  });
}

/// The label of points of which fewer steps count than an interval needs: their time is unreliable,
/// and so is everything derived from it. The analysis sets it; it is not stored.
inline constexpr std::string_view few_steps = "few-steps";
inline constexpr std::size_t fewest_steps = 6;

[[nodiscard]] inline bool has_label(const std::vector<std::string>& labels,
                                    std::string_view label) {
  return std::ranges::find(labels, label) != labels.end();
}

[[nodiscard]] inline bool is_scaling_result(const std::vector<std::string>& labels) {
  return std::ranges::find_first_of(labels, unsound_labels) == labels.end();
}

/// Those of `labels` that are unsound, in the order of their list.
[[nodiscard]] inline std::vector<std::string> unsound(const std::vector<std::string>& labels) {
  std::vector<std::string> found;
  for (const std::string_view label : unsound_labels) {
    if (has_label(labels, label)) found.emplace_back(label);
  }
  return found;
}

}  // namespace isoscale::analysis
