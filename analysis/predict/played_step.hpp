// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "results/run_data.hpp"
#include "simulate/classes.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// A step that has been played, with what it takes to trace it: some tens of bytes an op, much less
/// than its programs.
struct PlayedStep {
  simulate::Classes classes;
  simulate::Costs costs{};                               ///< before overlap stretched them
  simulate::ClassStep step{};                            ///< without spans
  std::vector<double> flop_of_rank{}, memory_of_rank{};  ///< of the classes; bytes
  bool folded = false;                                   ///< all streams were played as one
};

/// How many ops it holds; classes that play one program share them.
[[nodiscard]] std::size_t op_count(const PlayedStep& played);

/// The same classes as a machine plays them that has one thread for all streams.
[[nodiscard]] simulate::Classes as_folded(const simulate::Classes& classes);

/// The step as a point of a run file: one traced step, as all are in the steady state, of one rank
/// a class. `ranks` and `outline` are of the classes; `mesh` is of the request, so that
/// communication along axes that all ranks of a class share keeps its name.
[[nodiscard]] results::PointData trace(const workloads::Workload& workload,
                                       const workloads::Request& request, PlayedStep played);

}  // namespace isoscale::analysis
