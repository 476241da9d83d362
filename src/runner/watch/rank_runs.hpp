// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

/// Ranks in few words: groups of a mesh are runs of ranks at equal distances.
namespace isoscale::runner {

struct RankRun {
  int first = 0, count = 1, distance = 1;
};

/// Of ascending ranks.
[[nodiscard]] std::vector<RankRun> runs_of(std::span<const int> ranks);
[[nodiscard]] std::vector<int> ranks_of(std::span<const RankRun> runs);

/// "0-3, 8", "0-56 by 8".
[[nodiscard]] std::string ranks_text(std::span<const int> ranks);

}  // namespace isoscale::runner
