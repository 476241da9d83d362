// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Computes when each op of each rank's program would run, from given op times and without
/// hardware. The result depends only on the arguments.
namespace isoscale::simulate {

/// The time of each op on each rank r: tables[table_of_rank[r]][op]. The time of communication
/// counts from the arrival of the last partner.
struct Costs {
  std::vector<std::vector<units::Nanoseconds>> tables;
  std::vector<std::uint32_t> table_of_rank;
};

struct Options {
  /// Number of steps. A rank begins a step when all of its streams have ended the step before.
  int plays = 1;
  /// The time at which each rank begins its first step; empty = all at 0.
  std::vector<units::Nanoseconds> begin{};
};

/// Returns one timeline, with the spans of all ranks, for each step. Throws base::Error, which
/// names the ranks and ops, if the programs deadlock or do not match, and std::invalid_argument if
/// `options.begin` is not empty and has not one time for each rank.
[[nodiscard]] std::vector<timeline::Timeline> simulate(const program::OutlineSet& set,
                                                       const Costs& costs, Options options = {});

/// Returns the same programs with every op on stream 0, in program order. A rank that runs all its
/// streams on one thread executes them in this way: no ops overlap, and no op waits for another
/// stream. Ops keep their indices.
[[nodiscard]] program::OutlineSet folded(program::OutlineSet set);

}  // namespace isoscale::simulate
