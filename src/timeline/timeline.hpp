// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "units/quantity.hpp"

/// A timeline is the only thing that measurement hands on; the arithmetic on its times is here too.
namespace isoscale::timeline {

/// Op number `op` of a program ran at this time on one rank.
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

/// A half-open interval of time.
struct Interval {
  units::Nanoseconds begin, end;
  bool operator==(const Interval&) const = default;
};

/// Sorted, disjoint, none empty.
using IntervalSet = std::vector<Interval>;

/// Sorts, merges what overlaps or touches, drops what is empty.
[[nodiscard]] IntervalSet normalise(std::vector<Interval> intervals);
[[nodiscard]] IntervalSet unite(const IntervalSet& a, const IntervalSet& b);
[[nodiscard]] IntervalSet intersect(const IntervalSet& a, const IntervalSet& b);
[[nodiscard]] IntervalSet subtract(const IntervalSet& a, const IntervalSet& b);
[[nodiscard]] units::Nanoseconds total(const IntervalSet& set);

/// Returns the median of at least one duration, and changes their order. It is the mean of the two
/// in the middle where their number is even: the larger one would make sums of medians exceed sums
/// of means.
[[nodiscard]] units::Nanoseconds median(std::vector<units::Nanoseconds>& durations);

}  // namespace isoscale::timeline
