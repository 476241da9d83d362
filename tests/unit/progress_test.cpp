// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/progress.hpp"

#include <gtest/gtest.h>

namespace isoscale::runner {
namespace {

using units::Seconds;

TEST(ExpectedLeft, IsAsLongForEachPointAsForThoseBefore) {
  EXPECT_FALSE(expected_left(Seconds{10}, 0, 4, {}).has_value());
  EXPECT_EQ(expected_left(Seconds{10}, 1, 4, {}), Seconds{30});
  EXPECT_EQ(expected_left(Seconds{10}, 4, 4, {}), Seconds{0});
}

TEST(ExpectedLeft, EndsWithTheBudget) {
  EXPECT_EQ(expected_left(Seconds{31}, 2, 10, Seconds{9}), Seconds{9});
  EXPECT_EQ(expected_left(Seconds{10}, 1, 2, Seconds{100}), Seconds{10});
  EXPECT_EQ(expected_left(Seconds{41}, 2, 10, Seconds{-1}), Seconds{0});
}

}  // namespace
}  // namespace isoscale::runner
