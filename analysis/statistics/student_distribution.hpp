// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

/// Student's t distribution for any degrees of freedom > 0, whole or not.
namespace isoscale::analysis {

/// P(T > t), from the regularised incomplete beta function I_x(f/2, 1/2), x = f / (f + t^2)
/// (Abramowitz and Stegun 26.7.1).
[[nodiscard]] double student_tail(double t, double freedom);
/// The t that T exceeds with probability `tail`, 0 < tail < 1.
[[nodiscard]] double student_quantile(double tail, double freedom);

}  // namespace isoscale::analysis
