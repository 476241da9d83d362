// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"

/// Adds up the times of ops in traced steps by kind, and those of GEMMs by shape.
namespace isoscale::analysis::breakdown {

/// Returns for each kind of op ("gemm", "cast", "all_reduce", ...) the seconds that its ops take
/// together in a step; mean over ranks and traced steps. Ops on different streams overlap, so the
/// sum over all kinds may exceed the step. Empty without traces.
[[nodiscard]] std::map<std::string, double> op_times(const results::PointData& point);

/// The GEMMs of one shape in a step; mean over ranks and traced steps.
struct GemmTime {
  program::GemmShape shape;
  double calls = 0;    ///< per rank and step; not an integer if ranks run different programs
  double seconds = 0;  ///< all calls of a step together
  double flop = 0;     ///< all calls of a step together
};
/// Returns one entry for each shape of GEMM, ordered by falling time. Empty without traces, and for
/// files older than schema 1.6, which have no shapes.
[[nodiscard]] std::vector<GemmTime> gemm_times(const results::PointData& point);

}  // namespace isoscale::analysis::breakdown
