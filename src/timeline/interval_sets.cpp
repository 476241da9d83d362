// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "timeline/timeline.hpp"

#include <algorithm>

namespace isoscale::timeline {
namespace {

/// Adds an interval that begins no earlier than the last one of `set`, and joins the two if they
/// overlap or touch. An empty interval is not added.
void append(IntervalSet& set, Interval next) {
  if (next.end <= next.begin) return;
  if (!set.empty() && next.begin <= set.back().end) {
    set.back().end = std::max(set.back().end, next.end);
  } else {
    set.push_back(next);
  }
}

}  // namespace

IntervalSet normalise(std::vector<Interval> intervals) {
  // Spans of one stream arrive in order, so most calls need no sort.
  if (!std::ranges::is_sorted(intervals, {}, &Interval::begin)) {
    std::ranges::sort(intervals, {}, &Interval::begin);
  }
  IntervalSet set;
  set.reserve(intervals.size());
  for (const Interval& interval : intervals) append(set, interval);
  return set;
}

IntervalSet intersect(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet set;
  auto from_a = a.begin();
  auto from_b = b.begin();
  while (from_a != a.end() && from_b != b.end()) {
    const Interval common{.begin = std::max(from_a->begin, from_b->begin),
                          .end = std::min(from_a->end, from_b->end)};
    if (common.begin < common.end) set.push_back(common);
    if (from_a->end < from_b->end) {
      ++from_a;
    } else {
      ++from_b;
    }
  }
  return set;
}

IntervalSet subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet set;
  auto hole = b.begin();
  for (Interval rest : a) {
    while (hole != b.end() && hole->end <= rest.begin) ++hole;
    // An interval of `b` may reach into the next one of `a`, so `hole` is not moved past it.
    for (auto cut = hole; cut != b.end() && cut->begin < rest.end; ++cut) {
      if (rest.begin < cut->begin) set.push_back({.begin = rest.begin, .end = cut->begin});
      rest.begin = std::min(cut->end, rest.end);
      hole = cut;
    }
    if (rest.begin < rest.end) set.push_back(rest);
  }
  return set;
}

units::Nanoseconds covered(const IntervalSet& set, Interval interval) {
  auto at = std::ranges::upper_bound(set, interval.begin, {}, &Interval::end);
  units::Nanoseconds sum;
  for (; at != set.end() && at->begin < interval.end; ++at) {
    sum += std::min(at->end, interval.end) - std::max(at->begin, interval.begin);
  }
  return sum;
}

units::Nanoseconds median(std::vector<units::Nanoseconds>& durations) {
  const auto half = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), half, durations.end());
  if (durations.size() % 2 == 1) return *half;
  return (*std::max_element(durations.begin(), half) + *half) / 2;
}

units::Nanoseconds total(const IntervalSet& set) {
  units::Nanoseconds sum;
  for (const Interval& interval : set) sum += interval.end - interval.begin;
  return sum;
}

}  // namespace isoscale::timeline
