// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "results/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/robust.hpp"

/// The steps of a point that count, the confidence its step time was judged with, and what tracing
/// adds to a step.
namespace isoscale::analysis {

/// Steps of one block that count; the first of the block, which began from a standstill, does not.
struct StepBlock {
  enum class Kind : std::uint8_t { untraced, traced } kind = Kind::untraced;
  std::vector<double> times{};  ///< seconds, slowest rank
};

/// The blocks that follow warm-up, in order; those without a step that counts are left out. A step
/// without a time of every rank counts for nothing.
[[nodiscard]] std::vector<StepBlock> step_blocks(const results::PointData& point);

/// The share by which tracing makes steps longer: the Hodges-Lehmann centre of traced / untraced -
/// 1 over pairs of neighbouring blocks, one of each kind, taken by their medians. The interval
/// exists from 6 pairs on. Of more than 256 pairs, 256 are used, evenly spread. Absent without a
/// pair.
[[nodiscard]] std::optional<statistics::Located> instrumentation_overhead(
    std::span<const StepBlock> blocks);

/// "0.4%", and with an interval "0.4% (0.1% to 0.8%)"; "—" when there is none.
[[nodiscard]] std::string overhead_text(const std::optional<statistics::Located>& overhead);

/// A sentence when tracing takes more than 1% for certain (all of the interval lies above), or
/// seems to while there is no interval; else "".
[[nodiscard]] std::string overhead_warning(const std::optional<statistics::Located>& overhead);

/// The confidence with which to estimate a point's step time, as the loop that measured it did.
[[nodiscard]] double confidence_of(const results::PointData& point);

/// The same for many points, which mostly were looked at alike: each is worked out once.
class Confidences {
 public:
  double of(const results::PointData& point);

 private:
  std::map<std::pair<int, double>, double> known_;  ///< by planned looks and growth
};

/// A remark on a point that ran out of time: "out of time at ±2.3%"; "" for one that did not.
[[nodiscard]] std::string out_of_time(const results::PointData& point,
                                      const std::optional<statistics::Estimate>& step_time);

}  // namespace isoscale::analysis
