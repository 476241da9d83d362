// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// Seconds that the ops of each kind ("gemm", "cast", "all_reduce", ...) take together in a step,
/// mean over ranks and traced steps. Ops on different streams overlap, so the sum may exceed the
/// step. Empty without traces.
[[nodiscard]] std::map<std::string, double> op_times(const results::PointData& point);

}  // namespace isoscale::analysis
