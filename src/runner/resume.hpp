// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>
#include <vector>

#include "results/records/run_data.hpp"
#include "runner/plan/plan.hpp"

/// Resuming a run that ended early: finds the points that it lacks, and decides whether this launch
/// may measure them.
namespace isoscale::runner {

/// The points of a plan for which an earlier run has no result, by index. A point that was skipped
/// for another reason than lack of time is in none of these sets, since it would be skipped again.
struct Missing {
  std::set<int> never_begun{}, failed{};
  std::set<int> hung{};  ///< points that hung and ended their job; they may end the next one, too

  bool operator==(const Missing&) const = default;
};
[[nodiscard]] Missing missing_points(const results::RunData& earlier, const plan::Plan& plan);

/// Returns the differences of this launch (`now`) from the earlier run, a clause each: "3 nodes,
/// not 4", "NCCL_ALGO 'Ring', not unset". It compares the program, the machine, its ranks and the
/// settings of their libraries (machine::recorded_settings), since points of two different setups
/// form no curve. Names of hosts and visible devices may differ.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const results::RunData& now);

/// Returns the points of the earlier run that differ from those of the plan in workload, model,
/// rank count or mesh, a clause each.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const plan::Plan& plan);

/// Throws base::UsageError unless the earlier run had `ranks` ranks. With another count, the plans
/// could not even be compared.
void require_ranks(const results::RunData& earlier, const std::string& file, int ranks);

/// Returns the warning for the file that says which points come from another launch, and on which
/// hosts if these differ.
[[nodiscard]] std::string resumption_warning(const results::RunData& earlier,
                                             const results::RunData& now,
                                             const std::set<int>& missing);

}  // namespace isoscale::runner
