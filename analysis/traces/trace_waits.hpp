// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/run_data.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// How long the communication ops of a point's traces waited for the last of their partners.
class TraceWaits {
 public:
  /// `point` has no outline_problem and outlives this object.
  explicit TraceWaits(const results::PointData& point);

  /// Of op `op` of a trace of the point, never longer than its span; 0 where it waited no longer
  /// than the clocks of the ranks may be apart. Absent for all but communication, where a partner
  /// was not traced or a clock is not aligned, and in steps that do not count (step_counts).
  [[nodiscard]] std::optional<units::Nanoseconds> of(const timeline::StepTrace& trace,
                                                     std::uint32_t op) const;

 private:
  const results::PointData& point_;
  TracedSteps steps_;
  std::map<const timeline::StepTrace*, const TracedStep*> step_of_;
};

}  // namespace isoscale::analysis
