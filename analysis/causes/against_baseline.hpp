// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "analysis/report.hpp"

namespace isoscale::analysis {

/// What the waterfall takes of a point; absent without traces and step times.
[[nodiscard]] std::optional<StepLoss> step_loss(const PointReport& point);

/// Fills what the points of a curve lost against `baseline`, one of them, their speed-ups'
/// intervals, and the laws that the curve follows. The errors of a point's time t and the
/// baseline's t0 are independent, so the ratio's 95% interval has, as logarithms, the half-widths
///   below: sqrt(ln(t.upper / t)^2 + ln(t0 / t0.lower)^2)
///   above: sqrt(ln(t / t.lower)^2 + ln(t0.upper / t0)^2)
/// and that of the baseline against itself is the ratio, 1.
void add_losses(Curve& curve, const PointReport& baseline);

}  // namespace isoscale::analysis
