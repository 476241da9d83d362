// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis {

/// The differences between the machines that the compared curves were measured on: their entries
/// (see machine.hpp), and of points of as many ranks how these lie on nodes and whether streams
/// were played as one. It is what is compared, and so never refused.
[[nodiscard]] std::vector<MachineDifference> machine_differences(
    const std::vector<ComparedCurve>& curves, const std::vector<Side>& sides);

}  // namespace isoscale::analysis
