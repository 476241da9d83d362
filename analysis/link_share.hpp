// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/calibration_data.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// How a kind of collective ran inside of a step against the same calls alone.
struct LinkShare {
  std::string op, axes;  ///< "all_reduce", "dp"
  std::string link_class;
  double alone = 0;     ///< seconds that the calibration predicts for its calls of one step
  double measured = 0;  ///< seconds that they transferred for, waiting for members left out
  double share = 0;     ///< alone / measured: 1 = all that the link gives
};

/// For each kind of collective and its axes in the traced steps, mean over ranks and steps. A call
/// is predicted by the run's curve for the library, as many members on as many nodes, the point's
/// element type or else any other one. Kinds of which some call has no such curve are left out, as
/// are those that curves of several link classes could be meant for, and those with a member that
/// was not traced: waiting for it would count.
[[nodiscard]] std::vector<LinkShare> link_shares(const results::RunData& run,
                                                 const results::PointData& point,
                                                 const TracedSteps& traced,
                                                 const results::CalibrationData& calibration);

}  // namespace isoscale::analysis
