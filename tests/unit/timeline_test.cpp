// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "timeline/timeline.hpp"

namespace isoscale::timeline {
namespace {

TEST(Total, AddsLengths) {
  const auto at = [](int begin, int end) {
    return Interval{.begin = units::Nanoseconds{begin}, .end = units::Nanoseconds{end}};
  };
  EXPECT_EQ(total({at(1, 4), at(10, 20)}).value(), 13);
  EXPECT_EQ(total({}).value(), 0);
}

/// Every operation against a plain array of flags, one per nanosecond, from no intervals to some
/// that overlap, touch, lie inside others, are empty or end before they begin.
TEST(Intervals, AgreeWithFlagsPerNanosecond) {
  constexpr std::size_t length = 120;
  using Flags = std::array<bool, length>;
  const auto flags_of = [](const IntervalSet& set) {
    Flags flags{};
    for (const Interval& interval : set) {
      for (auto t = interval.begin.value(); t < interval.end.value(); ++t) {
        flags[static_cast<std::size_t>(t)] = true;
      }
    }
    return flags;
  };
  const auto expect_canonical = [](const IntervalSet& set) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      ASSERT_LT(set[i].begin, set[i].end);
      if (i > 0) {
        ASSERT_LT(set[i - 1].end, set[i].begin);
      }
    }
  };
  std::mt19937 engine{20240917};
  const auto draw = [&engine](unsigned below) { return static_cast<int>(engine() % below); };
  for (int round = 0; round < 2000; ++round) {
    std::array<std::vector<Interval>, 2> raw;
    for (auto& intervals : raw) {
      for (int i = draw(12); i > 0; --i) {
        const int begin = draw(100);
        intervals.push_back(
            {.begin = units::Nanoseconds{begin}, .end = units::Nanoseconds{begin - 2 + draw(22)}});
      }
    }
    const Flags a = flags_of(raw[0]);
    const Flags b = flags_of(raw[1]);
    const IntervalSet x = normalise(raw[0]);
    const IntervalSet y = normalise(raw[1]);
    const std::array results{x, intersect(x, y), subtract(x, y)};
    std::array<Flags, 3> flags{};
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect_canonical(results[i]);
      flags[i] = flags_of(results[i]);
    }
    for (std::size_t t = 0; t < length; ++t) {
      ASSERT_EQ(flags[0][t], a[t]) << "round " << round << ", t " << t;
      ASSERT_EQ(flags[1][t], a[t] && b[t]) << "round " << round << ", t " << t;
      ASSERT_EQ(flags[2][t], a[t] && !b[t]) << "round " << round << ", t " << t;
    }
  }
}

}  // namespace
}  // namespace isoscale::timeline
