// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/run_data.hpp"
#include "runner/plan/plan.hpp"

/// Resuming a run that ended early: which points it lacks, and whether this launch may measure
/// them.
namespace isoscale::runner {

/// True if a point must be measured (again), since it failed or there was no time for it. A point
/// that was skipped for another reason would be skipped again.
[[nodiscard]] bool lacks_result(const results::PointData& point);

/// Returns the indices of the plan's points that `earlier` does not have or that lack a result.
[[nodiscard]] std::set<int> missing_points(const results::RunData& earlier, const Plan& plan);

/// Lists the differences of `now` from the earlier run, a clause each: "3 nodes, not 4", "NCCL_ALGO
/// 'Ring', not unset". It compares the program, the machine, its ranks and the settings of their
/// libraries (machine::recorded_settings), since points of two different setups form no curve. The
/// names of hosts may differ, and which of their devices are visible.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const results::RunData& now);

/// Lists the points of the run that differ from the plan's, in the form of the other differences():
/// another workload, model, rank count or mesh.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const Plan& plan);

/// Throws base::UsageError with all of the differences if there are any.
void require_no_differences(const std::string& file, std::span<const std::string> found);

/// Throws base::UsageError unless the run had `ranks` ranks: with another count there is not even a
/// plan to compare.
void require_ranks(const results::RunData& earlier, const std::string& file, int ranks);

/// Returns the warning that the file keeps: which points come from another launch, and the hosts if
/// they differ.
[[nodiscard]] std::string resumption_warning(const results::RunData& earlier,
                                             const results::RunData& now,
                                             const std::set<int>& missing);

}  // namespace isoscale::runner
