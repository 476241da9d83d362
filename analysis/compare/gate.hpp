// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis {

/// Puts each difference to two one-sided Welch tests on the logarithms of the launches' throughput:
/// that the loss is larger than `loss` (against: at most), and that it is smaller (against: at
/// least). The probabilities of either are adjusted for the number of points by Holm, over all
/// curves and sides, and the verdicts are given at 2.5%, the level of either end of the 95%
/// interval: a point whose verdict is `regression` has an interval below the gate. Points of fewer
/// than 3 launches on a side are not tested.
[[nodiscard]] Gate pass_through_gate(std::span<Difference> differences, double loss,
                                     CompareOptions::Untold untold);

}  // namespace isoscale::analysis
