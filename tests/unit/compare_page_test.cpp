// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compare_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::around;
using samples::Compared;
using samples::side;
using samples::with_gate;

TEST(ComparePage, HoldsTheComparisonOfTheSides) {
  // 2 ranks: 50 ms against 60 ms, so 5/6 of the throughput.
  const Compared of{{side("a", around(1)), side("b", around(1.2))}, with_gate(0.05)};
  const auto data = page_data(*of);
  EXPECT_EQ(data["kind"], "compare");
  EXPECT_TRUE(data["notes"].empty());
  const auto& compared = data["compare"];
  ASSERT_EQ(compared["sides"].size(), 2U);
  EXPECT_EQ(compared["sides"][1]["launches"].size(), 3U);
  ASSERT_EQ(compared["differences"].size(), 3U);
  for (const auto& at : compared["differences"]) {
    EXPECT_NEAR(at["throughput"]["ratio"].get<double>(), 1 / 1.2, 1e-9);
    EXPECT_EQ(at["verdict"], "regression");
  }
  EXPECT_EQ(compared["gate"]["verdict"], "failed");
}

}  // namespace
}  // namespace isoscale::analysis
