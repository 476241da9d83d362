// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Computes when each op of each rank's program runs, from given op times instead of hardware. The
/// result depends on nothing but the arguments.
namespace isoscale::simulate {

/// The time of each op on each rank: tables[table_of_rank[r]][op]. The time of communication counts
/// from the arrival of the last partner to the end.
struct Costs {
  std::vector<std::vector<units::Nanoseconds>> tables;
  std::vector<std::uint32_t> table_of_rank;
};

struct Options {
  int plays = 1;  ///< repeated plays of the step; each begins when the rank's streams have drained
  /// The time at which each rank begins its first play; empty = all at 0.
  std::vector<units::Nanoseconds> begin{};
};

/// Returns one timeline per play, with all ranks. Throws base::Error, which names the ranks and
/// ops, when the programs deadlock or do not match.
[[nodiscard]] std::vector<timeline::Timeline> simulate(const program::OutlineSet& set,
                                                       const Costs& costs, Options options = {});

/// Returns the same programs with every op on stream 0, in program order, as an executor with one
/// thread for all streams plays them: no ops overlap, and each op waits only for the op before. Ops
/// keep their indices.
[[nodiscard]] program::OutlineSet folded(program::OutlineSet set);

}  // namespace isoscale::simulate
