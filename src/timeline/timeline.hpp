// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "units/quantity.hpp"

/// Defines the timeline, which says when each op of a step ran on each rank, and the arithmetic on
/// its times.
namespace isoscale::timeline {

/// The interval of time in which op number `op` of a program ran on one rank.
struct Span {
  std::uint32_t op = 0;
  units::Nanoseconds start, end;
  bool operator==(const Span&) const = default;
};

/// One execution of a step on one rank. It begins when all streams of the rank are idle and ends
/// when all are idle again.
struct StepTrace {
  int rank = 0;            ///< the rank in the point (one measured configuration)
  std::uint32_t step = 0;  ///< number among all steps of the point
  /// These times and those of the spans are at first on the rank's own clock. Once the traces of
  /// all ranks are gathered, they are on the clock of rank 0 of the point.
  units::Nanoseconds begin, end;
  std::vector<Span> spans;  ///< in program order, one per op
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

/// Intervals that are sorted, disjoint and not empty.
using IntervalSet = std::vector<Interval>;

/// Sorts the intervals, merges those that overlap or touch, and drops empty ones.
[[nodiscard]] IntervalSet normalise(std::vector<Interval> intervals);
[[nodiscard]] IntervalSet intersect(const IntervalSet& a, const IntervalSet& b);
[[nodiscard]] IntervalSet subtract(const IntervalSet& a, const IntervalSet& b);
[[nodiscard]] units::Nanoseconds total(const IntervalSet& set);
/// Returns how much of the interval the set covers.
[[nodiscard]] units::Nanoseconds covered(const IntervalSet& set, Interval interval);

/// Returns the median of the durations (at least one) and changes their order. For an even number
/// of durations it is the mean of the middle two. The larger of the two would be too long on
/// average, which would add up in sums of medians.
[[nodiscard]] units::Nanoseconds median(std::vector<units::Nanoseconds>& durations);

}  // namespace isoscale::timeline
