// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "results/calibration_data.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// Fits all that the rows of a run tell of its parts. Counted are rows that are ok and not known to
/// be wrong; of points whose ranks share cores or GPUs only where no other tells; of collectives
/// those that sum (or reduce nothing), with the library's own choice of algorithm and buffers that
/// were not registered, all_reduce in place and others out of place where both are, and where
/// groups ran both alone and all at once the latter; of pairs latency and bandwidth, as the op
/// "p2p" with 2 members, the median over a class.
[[nodiscard]] results::CalibrationData calibrate(const results::RunData& run);

/// The calibration stored with a run, or fitted where there is none. Its ceilings are those of the
/// run's rows wherever it has any, since files may store ceilings by an older rule.
[[nodiscard]] results::CalibrationData calibration_of(const results::RunData& run);

/// On how many nodes ranks of a point are; 0 = not known.
[[nodiscard]] int nodes_of(const results::RunData& run, const results::PointData& point,
                           const std::vector<int>& ranks);

}  // namespace isoscale::analysis
