// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/stop_rule.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace isoscale::runner {
namespace {

constexpr int most_looks = 40;  // 1.5^40 samples are never taken

/// One at the beginning, one for each growth until `most`, one more should steps turn out shorter,
/// and one when time is up: that alone where time is up before there are `first` samples.
int looks_until(double first, double most) {
  if (most < first) return 1;
  const double ratio = std::max(1.0, most / first);
  const double grown = std::ceil(std::log(ratio) / std::log(StopRule::growth) - 1e-9);
  return std::min(most_looks, 3 + static_cast<int>(std::min(grown, 1.0 * most_looks)));
}

}  // namespace

StopRule::StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal)
    : precision_(goal.precision),
      half_width_(std::move(half_width)),
      planned_(looks_until(static_cast<double>(goal.first), goal.most)),
      confidence_(nominal ? nominal(planned_, growth) : plain_confidence),
      next_look_(goal.first) {}

bool StopRule::suffices(std::span<const double> samples) {
  ++made_;
  next_look_ = static_cast<std::size_t>(std::ceil(growth * static_cast<double>(samples.size())));
  reached_ = half_width_(samples, confidence_);
  return reached_ && *reached_ <= precision_;
}

}  // namespace isoscale::runner
