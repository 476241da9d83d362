// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/progress.hpp"

#include <gtest/gtest.h>

namespace isoscale::runner {
namespace {

using units::Seconds;

TEST(ExpectedLeft, IsWhatIsPlannedUntilPointsHaveEnded) {
  EXPECT_FALSE(expected_left(Seconds{10}, {}, {}, {}, {}).has_value());
  EXPECT_EQ(expected_left(Seconds{0}, {}, {}, Seconds{40}, {}), Seconds{40});
  EXPECT_EQ(expected_left(Seconds{10}, {}, {}, Seconds{40}, {}), Seconds{30});
}

TEST(ExpectedLeft, GoesAtThePaceOfThePointsThatHave) {
  // Twice as long as planned; of the next point, 4 s have passed.
  EXPECT_EQ(expected_left(Seconds{24}, Seconds{20}, Seconds{10}, Seconds{30}, {}), Seconds{56});
  EXPECT_EQ(expected_left(Seconds{20}, Seconds{20}, Seconds{10}, Seconds{0}, {}), Seconds{0});
}

TEST(ExpectedLeft, EndsWithTheBudget) {
  const auto left = [](double until) {
    return expected_left(Seconds{10}, Seconds{10}, Seconds{10}, Seconds{40}, Seconds{until});
  };
  EXPECT_EQ(left(9), Seconds{9});
  EXPECT_EQ(left(100), Seconds{40});
  EXPECT_EQ(left(-1), Seconds{0});
}

}  // namespace
}  // namespace isoscale::runner
