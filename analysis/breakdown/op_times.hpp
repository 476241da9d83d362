// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"

/// Times of ops in traced steps: by kind, and of matrix multiplications by shape.
namespace isoscale::analysis::breakdown {

/// Returns the seconds that the ops of each kind ("gemm", "cast", "all_reduce", ...) take together
/// in a step, mean over ranks and traced steps. Ops on different streams overlap, so the sum may
/// exceed the step. Empty without traces.
[[nodiscard]] std::map<std::string, double> op_times(const results::PointData& point);

/// The matrix multiplications of one shape in a step, mean over ranks and traced steps.
struct GemmTime {
  program::GemmShape shape;
  double calls = 0;    ///< per rank and step; a fraction where ranks play different programs
  double seconds = 0;  ///< all calls of a step together
  double flop = 0;     ///< all calls of a step together
};
/// Returns one entry for each shape, ordered by time, the largest first. Empty without traces, and
/// for files before schema 1.6, which have no shapes.
[[nodiscard]] std::vector<GemmTime> gemm_times(const results::PointData& point);

}  // namespace isoscale::analysis::breakdown
