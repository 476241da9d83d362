// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"

/// Collectives within steps, compared with the same calls alone.
namespace isoscale::analysis::breakdown {

/// The transfer of one kind of collective within steps, compared with the same calls alone.
struct LinkShare {
  std::string op, axes;  ///< "all_reduce", "dp"
  std::string link_class;
  double alone = 0;     ///< seconds that the calibration predicts for its calls of one step
  double measured = 0;  ///< seconds that they transferred for, without waiting for members
  double share = 0;     ///< alone / measured: 1 = as fast as alone
};

/// Returns one entry for each kind of collective and its axes in the traced steps, mean over ranks
/// and steps. The time of a call alone comes from the run's curve for the library with the same
/// numbers of members and nodes, for the point's element type or else any other one. Three kinds of
/// collectives are left out: those with a call that has no such curve, those with curves of several
/// link classes, and those with a member that was not traced, since waiting for it would count as
/// transfer.
[[nodiscard]] std::vector<LinkShare> link_shares(const results::RunData& run,
                                                 const results::PointData& point,
                                                 const TracedSteps& traced,
                                                 const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::breakdown
