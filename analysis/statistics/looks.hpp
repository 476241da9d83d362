// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/statistics/statistics.hpp"
#include "results/run_data.hpp"

/// The price of looking at samples while they come in.
namespace isoscale::analysis {

/// Confidence that the interval at each look must have, so that with 95% the true median lies in
/// all of at most `planned` of them, and so in the one that measuring stopped at (Pocock's constant
/// boundary: Biometrika 64, 1977). From one look to the next the number of samples grows by the
/// factor `growth` >= 1; standardised, the median's statistics then are a stationary Gaussian chain
/// with correlation sqrt(1 / growth), whose probability to stay within the boundary is integrated
/// look by look (Armitage, McPherson, Rowe: J. R. Stat. Soc. A 132, 1969). One look: 0.95.
/// `growth` below 1.02 counts as looks at the same samples: 0.95 as well.
[[nodiscard]] double nominal_confidence(int planned, double growth);

/// What the estimate of a point's step time is to be asked with, as the loop that measured it was.
[[nodiscard]] double confidence_of(const results::PointData& point);

/// The same for many points, which mostly were looked at alike: each is worked out once.
class Confidences {
 public:
  double of(const results::PointData& point);

 private:
  std::map<std::pair<int, double>, double> known_;  ///< by planned looks and growth
};

/// What is said of a point that ran out of time: "out of time at ±2.3%"; "" for one that did not.
[[nodiscard]] std::string out_of_time(const results::PointData& point,
                                      const std::optional<Estimate>& step_time);

}  // namespace isoscale::analysis
