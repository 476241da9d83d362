// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/rank_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace isoscale::runner {
namespace {

std::string text_of(const RankRun& run) {
  const int last = run.first + (run.count - 1) * run.distance;
  if (run.count == 1) return std::to_string(run.first);
  if (run.distance == 1) return fmt::format("{}-{}", run.first, last);
  return fmt::format("{}-{} by {}", run.first, last, run.distance);
}

}  // namespace

std::vector<RankRun> runs_of(std::span<const int> ranks) {
  std::vector<RankRun> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    const std::size_t begin = i++;
    if (i == ranks.size()) {
      runs.push_back({.first = ranks[begin]});
      break;
    }
    const int distance = ranks[i] - ranks[begin];
    while (i < ranks.size() && ranks[i] - ranks[i - 1] == distance) ++i;
    // Two ranks at a distance are two ranks: the second may begin a longer run.
    if (distance != 1 && i - begin == 2) --i;
    const auto count = static_cast<int>(i - begin);
    runs.push_back({.first = ranks[begin], .count = count, .distance = count == 1 ? 1 : distance});
  }
  return runs;
}

std::vector<int> ranks_of(std::span<const RankRun> runs) {
  std::vector<int> ranks;
  for (const RankRun& run : runs) {
    for (int i = 0; i < run.count; ++i) ranks.push_back(run.first + i * run.distance);
  }
  return ranks;
}

std::string ranks_text(std::span<const int> ranks) {
  std::vector<std::string> parts;
  for (const RankRun& run : runs_of(ranks)) parts.push_back(text_of(run));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace isoscale::runner
