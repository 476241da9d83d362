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

/// The steps of one block that count; the first step of a block starts from idle ranks and does not
/// count.
struct StepBlock {
  enum class Kind : std::uint8_t { untraced, traced } kind = Kind::untraced;
  std::vector<double> times{};  ///< seconds, slowest rank
};

/// Returns the blocks that follow warm-up, in order; blocks without a step that counts are left
/// out. A step that lacks the time of some rank does not count.
[[nodiscard]] std::vector<StepBlock> step_blocks(const results::PointData& point);

/// Returns the share by which tracing makes steps longer: the Hodges-Lehmann centre of traced /
/// untraced - 1 over pairs of neighbouring blocks, one traced and one untraced, each represented by
/// its median. The interval exists from 6 pairs on. Of more than 256 pairs, 256 are used, evenly
/// spread. Absent without a pair.
[[nodiscard]] std::optional<statistics::Located> instrumentation_overhead(
    std::span<const StepBlock> blocks);

/// Returns "0.4%", with an interval "0.4% (0.1% to 0.8%)"; "—" when there is none.
[[nodiscard]] std::string overhead_text(const std::optional<statistics::Located>& overhead);

/// Returns a warning if tracing certainly takes more than 1% (the whole interval lies above it), or
/// seems to and there is no interval; else "".
[[nodiscard]] std::string overhead_warning(const std::optional<statistics::Located>& overhead);

/// Returns the confidence level for a point's step time: the one that the measuring loop used.
[[nodiscard]] double confidence_of(const results::PointData& point);

/// Caches confidence_of() for many points, since most of them had the same interim analyses
/// planned.
class Confidences {
 public:
  double of(const results::PointData& point);

 private:
  std::map<std::pair<int, double>, double> known_;  ///< by planned interim analyses and growth
};

/// Returns a remark on a point that ran out of time, "out of time at ±2.3%"; "" for other points.
[[nodiscard]] std::string out_of_time(const results::PointData& point,
                                      const std::optional<statistics::Estimate>& step_time);

}  // namespace isoscale::analysis
