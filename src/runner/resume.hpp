// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/run_data.hpp"
#include "runner/plan/plan.hpp"

/// Resuming a run that ended early: finds the points that it lacks, and decides whether this launch
/// may measure them.
namespace isoscale::runner {

/// True if a point must be measured (again), because it failed or was left out for lack of time. A
/// point that was skipped for another reason would be skipped again.
[[nodiscard]] bool lacks_result(const results::PointData& point);

/// Returns the indices of the plan's points that `earlier` does not have or that have no result in
/// it.
[[nodiscard]] std::set<int> missing_points(const results::RunData& earlier, const Plan& plan);

/// Returns the differences of this launch (`now`) from the earlier run, a clause each: "3 nodes,
/// not 4", "NCCL_ALGO 'Ring', not unset". It compares the program, the machine, its ranks and the
/// settings of their libraries (machine::recorded_settings), since points of two different setups
/// form no curve. Names of hosts and visible devices may differ.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const results::RunData& now);

/// Returns the points of the earlier run that differ from those of the plan in workload, model,
/// rank count or mesh, a clause each.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const Plan& plan);

/// Throws base::UsageError with all of the differences in `found`; does nothing if there are none.
void require_no_differences(const std::string& file, std::span<const std::string> found);

/// Throws base::UsageError unless the earlier run had `ranks` ranks. With another count, the plans
/// could not even be compared.
void require_ranks(const results::RunData& earlier, const std::string& file, int ranks);

/// Returns the warning for the file that says which points come from another launch, and on which
/// hosts if these differ.
[[nodiscard]] std::string resumption_warning(const results::RunData& earlier,
                                             const results::RunData& now,
                                             const std::set<int>& missing);

}  // namespace isoscale::runner
