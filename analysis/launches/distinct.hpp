// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What a file holds, as far as it takes to tell copies apart.
struct FileContent {
  std::string id, file;
  std::size_t ok_points = 0, points = 0;
  bool complete = false;
  std::string ended;
};

/// Which files are to be kept, ascending in where their run was first met, and a sentence for each
/// that is not.
struct Distinct {
  std::vector<std::size_t> kept;
  std::vector<std::string> warnings;
};

/// Without those that hold a launch a second time, which would count as a launch more: of files
/// with one run id the most complete is kept, else the first.
[[nodiscard]] Distinct distinct(const std::vector<FileContent>& files);

/// What run files hold, each a launch, beside the names they were read from.
struct RunFiles {
  std::vector<results::RunData> runs;
  std::vector<std::string> files;     ///< of each
  std::vector<std::string> warnings;  ///< a sentence for each file that was left out
};

/// The distinct ones.
[[nodiscard]] RunFiles without_copies(RunFiles given);

}  // namespace isoscale::analysis
