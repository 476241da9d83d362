// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>
#include <vector>

#include "results/records/run_data.hpp"
#include "runner/plan/plan.hpp"

/// Resumes a run that ended early: finds out which points it lacks, and whether this launch is
/// similar enough to measure them.
namespace isoscale::runner {

/// The points of a plan for which an earlier run has no result, by index in the plan. `never_begun`
/// also has the points that were skipped because the budget was used up or a signal asked the run
/// to end. Points that were skipped for other reasons are left out: they would be skipped again.
struct Missing {
  std::set<int> never_begun{}, failed{};
  /// Points that hung and so ended their job; measured again, they may end the next job, too.
  std::set<int> hung{};

  bool operator==(const Missing&) const = default;
};
[[nodiscard]] Missing missing_points(const results::RunData& earlier, const plan::Plan& plan);

/// Returns how this launch (`now`) differs from the earlier one, with a clause for each difference:
/// "3 nodes, not 4", "NCCL_ALGO 'Ring', not unset". It compares the build of Isoscale, the MPI
/// library, the ranks with their hardware and nodes, and the environment variables that affect
/// libraries (machine::recorded_settings). If any of these differ, the points of both launches do
/// not form one curve. Names of hosts and the visible devices may differ.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const results::RunData& now);

/// Returns how points of the earlier run differ from those of the plan in workload, model, rank
/// count or mesh, with a clause for each point that differs, or that the plan does not have. The
/// mesh is compared only if the point was measured and the plan does not skip it.
[[nodiscard]] std::vector<std::string> differences(const results::RunData& earlier,
                                                   const plan::Plan& plan);

/// Throws base::UsageError unless the earlier run had `ranks` ranks. `file` is its run file, for
/// the message. This is checked first, since plans for different rank counts cannot be compared.
void require_ranks(const results::RunData& earlier, const std::string& file, int ranks);

/// Returns a warning for the run file. It says that this launch (`now`) measures the points whose
/// indices are in `missing`. If the two launches ran on different hosts, it names up to 4 of each.
[[nodiscard]] std::string resumption_warning(const results::RunData& earlier,
                                             const results::RunData& now,
                                             const std::set<int>& missing);

}  // namespace isoscale::runner
