// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What run files hold, each a launch, beside the names they were read from.
struct RunFiles {
  std::vector<results::RunData> runs;
  std::vector<std::string> files;     ///< of each
  std::vector<std::string> warnings;  ///< a sentence for each file that was left out
};

/// Without those that hold a launch a second time, which would count as a launch more: of files
/// with one run id the most complete is kept, else the first.
[[nodiscard]] RunFiles without_copies(RunFiles given);

}  // namespace isoscale::analysis
