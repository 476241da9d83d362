// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// FLOP/s that MFU is a share of: the best that a multiplication with operands of this precision
/// reached where some were measured, else the sheet's peak; absent where neither says.
[[nodiscard]] std::optional<double> peak_rate(const simulate::Machine& machine,
                                              workloads::Precision precision);

}  // namespace isoscale::analysis
