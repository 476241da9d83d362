// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "results/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// The calibration of a run as a machine has it. Cold multiplications where there are any; the
/// library's own collectives, of the element type `dtype` where that was measured; messages from
/// pairs or from a ring, whichever was measured at more sizes.
[[nodiscard]] simulate::Measured calibrated(const results::RunData& run,
                                            const results::CalibrationData& calibration,
                                            const std::string& dtype);

}  // namespace isoscale::analysis
