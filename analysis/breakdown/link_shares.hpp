// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"

/// Compares the transfer times of collectives within steps with the same calls alone.
namespace isoscale::analysis::breakdown {

/// The transfer time of one kind of collective within steps, and of the same calls while nothing
/// else runs.
struct LinkShare {
  std::string op, axes;  ///< "all_reduce", "dp"
  std::string link_class;
  double alone = 0;     ///< seconds predicted by the calibration for its calls in one step
  double measured = 0;  ///< seconds of transfer in one step, without the waiting for members
  double share = 0;     ///< alone / measured: 1 = as fast as alone
};

/// Returns one entry for each kind of collective and its axes in the traced steps; times are means
/// over ranks and steps. The time of a call alone comes from the run's calibration curve for the
/// communication library with the same numbers of members and nodes, preferably for the point's
/// element type. A collective is left out if some call has no such curve, if its curves are of
/// several link classes, or if a member was not traced, since waiting for this member would count
/// as transfer.
[[nodiscard]] std::vector<LinkShare> link_shares(const results::RunData& run,
                                                 const results::PointData& point,
                                                 const TracedSteps& traced,
                                                 const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::breakdown
