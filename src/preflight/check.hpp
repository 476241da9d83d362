// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/records/check_result.hpp"

/// Judges the setup of a job before it measures, with pure functions of the job's facts.
namespace isoscale::preflight {

using results::CheckResult;
using results::Verdict;

struct JobFacts;

struct Check {
  std::string_view name;
  std::string_view about;  ///< one clause for people: what it checks
};
/// Returns all checks, in the order of a report.
[[nodiscard]] std::span<const Check> all_checks();

/// Runs every check. Results that differ only in the host are joined into one that names all hosts.
/// Stops of the checks named in `allowed` are marked as allowed and do not stop the run. Throws
/// base::UsageError for a name that no check has.
[[nodiscard]] std::vector<CheckResult> check_job(const JobFacts& job,
                                                 const std::vector<std::string>& allowed);

}  // namespace isoscale::preflight
