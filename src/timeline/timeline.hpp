// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "units/quantity.hpp"

/// The only thing that measurement hands on.
namespace isoscale::timeline {

/// When op number `op` of a program ran on one rank.
struct Span {
  std::uint32_t op = 0;
  units::Nanoseconds start, end;
  bool operator==(const Span&) const = default;
};

/// One play of a step on one rank: from its streams free to all of them drained.
struct StepTrace {
  int rank = 0;                   ///< in the point
  std::uint32_t step = 0;         ///< number among all steps of the point
  units::Nanoseconds begin, end;  ///< on the clock of rank 0 of the point, offset applied
  std::vector<Span> spans;        ///< in program order, one per op
};

/// One step on many ranks (not necessarily all).
struct Timeline {
  std::vector<StepTrace> ranks;
};

}  // namespace isoscale::timeline
