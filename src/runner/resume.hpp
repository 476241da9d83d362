// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/run_data.hpp"
#include "runner/plan/plan.hpp"

/// Going on with a run that ended early: what it lacks, and whether this launch may measure that.
namespace isoscale::runner {

/// True if a point is to be measured (again): it failed, or there was no time for it. Other skipped
/// points would be skipped again.
[[nodiscard]] bool lacks_result(const results::PointData& point);

/// Indices of the plan's points that `earlier` does not have, or that lack a result.
[[nodiscard]] std::set<int> missing_points(const results::RunData& earlier, const Plan& plan);

/// Lists in what the program, the machine, its ranks and the settings of their libraries
/// (machine::recorded_settings) of `now` differ from the run, a clause each: "3 nodes, not 4",
/// "NCCL_ALGO 'Ring', not unset". Points of both would be no curve. Names of hosts may differ, and
/// which of their devices are visible.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const results::RunData& now);

/// Where a point of the run is not that of the plan, as differences(): another workload, model,
/// rank count or mesh.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const Plan& plan);

/// Throws base::UsageError with all of the differences, unless there are none.
void require_no_differences(const std::string& file, std::span<const std::string> found);

/// Throws base::UsageError unless the run was of so many ranks: without them there is not even a
/// plan to compare.
void require_ranks(const results::RunData& earlier, const std::string& file, int ranks);

/// Returns the warning that the file keeps: which points are of another launch, and the hosts where
/// they differ.
[[nodiscard]] std::string resumption_warning(const results::RunData& earlier,
                                             const results::RunData& now,
                                             const std::set<int>& missing);

}  // namespace isoscale::runner
