// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace isoscale::base {
namespace {

TEST(ParallelFor, ThrowsWhatTheFirstThrew) {
  std::vector<int> done(100, 0);
  base::parallel_for(done.size(), [&](std::size_t i) { done[i] = 1; });
  EXPECT_EQ(std::ranges::count(done, 1), 100);
  try {
    base::parallel_for(done.size(), [](std::size_t i) {
      if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
}

TEST(ParallelInOrder, BeginsTheSameItemsOnAnyNumberOfThreads) {
  for (const std::size_t ahead : {1U, 3U, 8U, 100U}) {
    std::vector<int> value(60, 0);
    std::size_t asked = 0;
    const std::size_t begun = base::parallel_in_order(
        value.size(), ahead,
        [&](std::size_t item, std::size_t ended) {
          EXPECT_EQ(item, asked++);
          EXPECT_EQ(ended, item + 1 > ahead ? item + 1 - ahead : 0);
          return std::accumulate(value.begin(), value.begin() + static_cast<long>(ended), 0) < 20;
        },
        [&](std::size_t item) { value[item] = 1; });
    EXPECT_EQ(begun, std::min(value.size(), 19 + ahead));
    EXPECT_EQ(std::ranges::count(value, 1), static_cast<long>(begun));
  }
  EXPECT_EQ(base::parallel_in_order(
                0, 2, [](auto, auto) { return true; }, [](auto) {}),
            0U);
  EXPECT_THROW(base::parallel_in_order(
                   5, 2, [](auto, auto) { return true; },
                   [](std::size_t item) {
                     if (item == 3) throw std::runtime_error("three");
                   }),
               std::runtime_error);
}

}  // namespace
}  // namespace isoscale::base
