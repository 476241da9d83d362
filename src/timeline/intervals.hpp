// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "units/quantity.hpp"

/// Arithmetic on sets of half-open time intervals.
namespace isoscale::timeline {

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

}  // namespace isoscale::timeline
