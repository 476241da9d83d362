// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/page/detail_limits.hpp"
#include "analysis/report.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// A traced step, as far as its traces are of use.
struct LaneStep {
  std::uint32_t step = 0;                      ///< number among all steps of the point
  std::vector<const timeline::StepTrace*> of;  ///< by rank of the point; null without. Not owned.
  units::Nanoseconds length;                   ///< of the slowest rank

  [[nodiscard]] std::size_t traced() const;
};

/// The step that counts whose length is nearest the median; of steps that differ in how many ranks
/// were traced only those with most. Absent without usable traces.
[[nodiscard]] std::optional<LaneStep> typical_traced_step(const results::PointData& point);

/// The ranks that get a lane (see lanes()), those first that matter most.
[[nodiscard]] std::vector<int> lane_ranks(const PointReport& point, const LaneStep& step,
                                          const DetailLimits& limits);

}  // namespace isoscale::analysis
