// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "results/records/check_result.hpp"

/// Judges the setup of a job before it measures, with pure functions of the job's facts.
namespace isoscale::preflight {

using results::CheckResult;
using results::Verdict;

struct JobFacts;

/// Runs every check. Results that differ only in the host are joined into one that names all hosts.
/// Stops of the checks named in `allowed` are marked as allowed and do not stop the run. Throws
/// base::UsageError for a name that no check has.
[[nodiscard]] std::vector<CheckResult> check_job(const JobFacts& job,
                                                 const std::vector<std::string>& allowed);

}  // namespace isoscale::preflight
