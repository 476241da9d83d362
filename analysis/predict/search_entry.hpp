// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/predict/whole_step.hpp"
#include "workloads/stack/pipeline.hpp"
#include "workloads/workload.hpp"

/// What a search knows of one request, and how far its estimates are off.
namespace isoscale::analysis {

/// A request on its way through the search.
struct SearchEntry {
  const workloads::Request* request = nullptr;
  double seconds = 0;   ///< by what was last asked
  double estimate = 0;  ///< by a play with one op a pass
  workloads::stack::Schedule schedule{};
  int largest_stage = 0;     ///< that needs most memory, by estimate
  bool is_needless = false;  ///< it was not simulated: it cannot be among the best
  std::optional<WholeStep> whole{};
};

/// Whether its whole programs were played: it fits.
[[nodiscard]] bool is_played(const SearchEntry& entry);

/// Relative, of those played, of one schedule or of all; an estimate that is too high is above 0.
[[nodiscard]] std::vector<double> errors_of(
    std::span<const SearchEntry> known,
    std::optional<workloads::stack::Schedule> schedule = std::nullopt);

/// What is allowed for in the estimate of `entry`: no more than estimates of the same schedule were
/// too high by so far, and a margin; search_slack while they are too few to tell.
[[nodiscard]] double slack_of(const SearchEntry& entry, std::span<const SearchEntry> known);

}  // namespace isoscale::analysis
