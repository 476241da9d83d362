// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/causes/step_costs.hpp"

namespace isoscale::analysis {

/// What one cause added to a step, against ideal scaling from the baseline.
struct LostTime {
  std::string cause;   ///< "GEMMs", "dp transfer", ...
  double seconds = 0;  ///< below 0 where the point has less of it than its share of the baseline
};

/// From the ideal step to the measured one: ideal + the sum of all lost = measured, exactly but for
/// rounding.
struct Waterfall {
  double ideal = 0;                  ///< seconds: the baseline's step, scaled by work and ranks
  double measured = 0;               ///< seconds
  std::vector<LostTime> lost;        ///< in order of DESIGN's causes, zeros included
  std::vector<std::string> missing;  ///< what could not be separated, one sentence each
  /// False where the causes say little of the loss: the untraced steps, which the loss is of,
  /// differ from the traced ones by more than a tenth of the measured step, or fewer steps count
  /// than an interval needs. Reports then give no shares of causes.
  bool explains = true;
};

/// What the waterfall takes of a point.
struct StepLoss {
  double step = 0;     ///< seconds, median of untraced steps
  double traced = 0;   ///< seconds, what `costs` sum to: mean over ranks
  double slowest = 0;  ///< seconds, traced steps as long as their slowest rank
  double work = 0;     ///< work_per_step
  int ranks = 1;
  StepCosts costs;
};

/// Ideal step = baseline step * (work / its work) * (its ranks / ranks); each cause's part of the
/// baseline is scaled alike, and what the point has more of it is lost. Differences between traced
/// and untraced steps are a cause of their own.
[[nodiscard]] Waterfall waterfall(const StepLoss& point, const StepLoss& baseline);

}  // namespace isoscale::analysis
