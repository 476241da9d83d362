// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/step_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace isoscale::analysis {
namespace {

constexpr double shortest_step = 1e-12;  ///< seconds; less is no time that was measured

}  // namespace

std::vector<StepBlock> step_blocks(const results::PointData& point) {
  const auto flag = [](const std::vector<std::uint8_t>& flags, std::size_t step) {
    return step < flags.size() && flags[step] != 0;
  };
  std::vector<StepBlock> blocks;
  const auto first = static_cast<std::size_t>(std::max<std::int64_t>(0, point.warm_up_steps));
  for (std::size_t step = first; step < point.step_times.size(); ++step) {
    const auto kind =
        flag(point.traced, step) ? StepBlock::Kind::traced : StepBlock::Kind::untraced;
    if (blocks.empty() || flag(point.dropped, step) || kind != blocks.back().kind) {
      blocks.push_back({.kind = kind});
    }
    const std::vector<double>& of_rank = point.step_times[step];
    const bool known = !of_rank.empty() && std::ranges::all_of(of_rank, [](double time) {
      return std::isfinite(time) && time > shortest_step;
    });
    if (known && !flag(point.dropped, step)) {
      blocks.back().times.push_back(std::ranges::max(of_rank));
    }
  }
  std::erase_if(blocks, [](const StepBlock& block) { return block.times.empty(); });
  return blocks;
}

}  // namespace isoscale::analysis
