// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/records/run_data.hpp"
#include "statistics/estimate.hpp"

/// Selects the steps that count for the step time of a point, and computes the confidence level of
/// its interval.
namespace isoscale::results {

/// Consecutive steps that are all traced or all untraced. The first step of a block does not count,
/// since it starts from idle ranks.
struct StepBlock {
  enum class Kind : std::uint8_t { untraced, traced } kind = Kind::untraced;
  std::vector<double> times{};  ///< seconds on the slowest rank, for the steps that count
};

/// Returns the blocks that follow warm-up, in order; blocks without a step that counts are left
/// out. A step does not count if the time of some rank is missing, not finite or not above 1e-12 s.
[[nodiscard]] std::vector<StepBlock> step_blocks(const PointData& point);

/// Returns the times of the untraced steps that count, in order.
[[nodiscard]] std::vector<double> untraced_times(const PointData& point);

/// Returns the confidence level for a point's step time: the same that the measuring loop used.
[[nodiscard]] double confidence_of(const PointData& point);

/// Returns the point's step time, which every report and prediction takes: the median of the
/// untraced steps that count, with its interval; absent if no step counts.
[[nodiscard]] std::optional<statistics::Estimate> step_time(const PointData& point);

/// Returns a remark on a point whose measurement ended because its time (--max-time) was over: "out
/// of time at ±2.3%", with half the width of the interval of `step_time`, or "time ran out before
/// an interval was known". Returns "" for other points.
[[nodiscard]] std::string out_of_time(const PointData& point,
                                      const std::optional<statistics::Estimate>& step_time);

}  // namespace isoscale::results
