// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "analysis/compare/comparison.hpp"

/// Rates over what the machine has, so that machines of different size can be compared.
namespace isoscale::analysis {

/// Fills of_peak, per_link and per_watt of the points of as many ranks. All sides are divided by
/// the same kind of figure wherever all have it:
///   peak   the GPU's datasheet for the element type, else the best multiplication of the run
///   link   of points on one node the GPU's datasheet (NVLink, one direction), else bandwidth that
///          the run's calibration measured between ranks: of several nodes for points that span
///          nodes, else of one; of pairs where there are any, else busbw of collectives; the
///          slowest
///   watt   the median over launches of what the computing devices took
/// `sides` may hold null for a side without a curve.
void normalise(std::span<SideCurve* const> sides, int ranks);

}  // namespace isoscale::analysis
