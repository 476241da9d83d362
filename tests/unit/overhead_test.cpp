// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/tracing_overhead.hpp"
#include "results/records/counted_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "series.hpp"

namespace isoscale::analysis {
namespace {

using results::StepBlock;
using Kind = StepBlock::Kind;
using testing::ElementsAre;

TEST(StepBlocks, BeginWithADroppedStepAndEndWithTheirKind) {
  results::PointData point;
  point.warm_up_steps = 1;
  const auto add = [&](std::vector<double> of_rank, int traced, int dropped) {
    point.step_times.push_back(std::move(of_rank));
    point.traced.push_back(static_cast<std::uint8_t>(traced));
    point.dropped.push_back(static_cast<std::uint8_t>(dropped));
  };
  add({9, 9}, 0, 0);  // warm-up
  add({8, 8}, 0, 1);
  add({1, 2}, 0, 0);
  add({3, 1}, 0, 0);
  add({8, 8}, 1, 1);
  add({4, 1}, 1, 0);
  add({8, 8}, 1, 1);  // a block that follows one of its kind
  add({5, std::numeric_limits<double>::quiet_NaN()}, 1, 0);
  add({5, 6}, 1, 0);
  add({8, 8}, 0, 1);  // nothing of it counts
  const auto blocks = step_blocks(point);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].kind, Kind::untraced);
  EXPECT_THAT(blocks[0].times, ElementsAre(2, 3));
  EXPECT_EQ(blocks[1].kind, Kind::traced);
  EXPECT_THAT(blocks[1].times, ElementsAre(4));
  EXPECT_EQ(blocks[2].kind, Kind::traced);
  EXPECT_THAT(blocks[2].times, ElementsAre(6));
}

/// Pairs whose order is swapped, traced steps longer by `overhead`, on a machine that drifts.
std::vector<StepBlock> pairs(std::size_t count, double overhead, double drift_per_block) {
  std::vector<StepBlock> blocks;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const bool traced = (i % 4 == 1) || (i % 4 == 2);
    const double time =
        (1 + drift_per_block * static_cast<double>(i)) * (traced ? 1 + overhead : 1);
    blocks.push_back({.kind = traced ? Kind::traced : Kind::untraced, .times = {time, time, time}});
  }
  return blocks;
}

TEST(Overhead, IsTheCentreOfThePairs) {
  struct Case {
    std::size_t pairs;
    double drift_per_block, tolerance;
  };
  // A subset is used where there are many pairs; drift does not move what swapped pairs show.
  for (const auto& [count, drift, tolerance] :
       {Case{6, 0, 1e-12}, Case{5000, 0, 1e-12}, Case{8, 0.01, 0.002}}) {
    const auto found = instrumentation_overhead(pairs(count, 0.02, drift));
    ASSERT_TRUE(found && found->lower && found->upper);
    EXPECT_NEAR(found->value, 0.02, tolerance);
    EXPECT_LE(*found->lower, 0.02 + 1e-12);
    EXPECT_GE(*found->upper, 0.02 - 1e-12);
    if (drift > 0) continue;
    EXPECT_NEAR(*found->lower, 0.02, tolerance);
    EXPECT_NEAR(*found->upper, 0.02, tolerance);
  }
  const auto few = instrumentation_overhead(pairs(5, 0.02, 0));
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->lower);
  EXPECT_FALSE(instrumentation_overhead({}));
  const StepBlock alone{.kind = Kind::untraced, .times = {1, 1}};
  EXPECT_FALSE(instrumentation_overhead(std::vector{alone, alone}));
}

TEST(OverheadWarning, IsGivenAboveOnePercentAndTheTextHasTheInterval) {
  EXPECT_EQ(overhead_warning(std::nullopt), "");
  EXPECT_EQ(overhead_warning(statistics::Located{.value = 0.02, .lower = 0.005, .upper = 0.03}),
            "");
  EXPECT_EQ(
      overhead_warning(statistics::Located{.value = 0.02, .lower = 0.012, .upper = 0.03}),
      "tracing makes steps 2.0% longer (1.2% to 3.0%), so the breakdown is of disturbed steps");
  EXPECT_EQ(overhead_warning(statistics::Located{.value = 0.009}), "");
  EXPECT_THAT(overhead_warning(statistics::Located{.value = 0.02}),
              testing::HasSubstr("too few blocks"));
  EXPECT_EQ(overhead_text(std::nullopt), "—");
  EXPECT_EQ(overhead_text(statistics::Located{.value = 0.004}), "0.4%");
  EXPECT_EQ(overhead_text(statistics::Located{.value = 0.004, .lower = 0.001, .upper = 0.008}),
            "0.4% (0.1% to 0.8%)");
}

}  // namespace
}  // namespace isoscale::analysis
