// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/measured_step_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "units/quantity_text.hpp"

namespace isoscale::results {

std::vector<StepBlock> step_blocks(const PointData& point) {
  const auto flag = [](const std::vector<std::uint8_t>& flags, std::size_t step) {
    return step < flags.size() && flags[step] != 0;
  };
  constexpr double shortest_step = 1e-12;  // seconds; a shorter time cannot have been measured
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

std::vector<double> untraced_times(const PointData& point) {
  std::vector<double> times;
  for (const StepBlock& block : step_blocks(point)) {
    if (block.kind == StepBlock::Kind::traced) continue;
    times.insert(times.end(), block.times.begin(), block.times.end());
  }
  return times;
}

double confidence_of(const PointData& point) {
  return statistics::nominal_confidence(point.looks.planned, point.looks.growth);
}

std::optional<statistics::Estimate> step_time(const PointData& point) {
  return statistics::estimate(untraced_times(point), confidence_of(point));
}

std::string out_of_time(const PointData& point,
                        const std::optional<statistics::Estimate>& step_time) {
  if (point.stopped_because != "max-time") return "";
  const auto width = step_time ? statistics::relative_half_width(*step_time) : std::nullopt;
  if (!width) return "time ran out before an interval was known";
  return fmt::format("out of time at ±{}", units::format_percent(*width));
}

}  // namespace isoscale::results
