// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "system/preflight/job_facts.hpp"

namespace isoscale::system {

/// What ranks found, as one job: ranks by number, each once; nodes by index, each as the first part
/// tells it that has it. Parts that tell of the same node add GPUs that the first could not see, or
/// knew of by the PCI bus alone, and what NVLinks of theirs join. What describes the job is that of
/// the first part.
[[nodiscard]] JobFacts merge(std::vector<JobFacts> parts);

}  // namespace isoscale::system
