// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "runner/plan.hpp"

/// Which points tell most, for a run that may not have time for all.
namespace isoscale::runner {

/// 0 ... count - 1: the first, the last, then the middle of each gap, gap after gap.
[[nodiscard]] std::vector<std::size_t> ends_then_middles(std::size_t count);

/// Indices of all points of the plan. Those that are skipped anyway first. Of each experiment its
/// smallest count (the baseline), its largest, then the middle of each gap between those. First
/// both ends of the first curve, so that there is one however long calibrations take; then the ends
/// of every calibration, without which nothing has a ceiling; then the experiments take turns, one
/// point each, those that are ahead last.
[[nodiscard]] std::vector<int> most_telling_first(const Plan& plan);

}  // namespace isoscale::runner
