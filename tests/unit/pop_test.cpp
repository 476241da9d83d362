// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/losses.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <utility>

namespace isoscale::analysis {
namespace {

constexpr double rounding = 1e-12;

/// Ranks 0 and 1 are useful for 6 (5 of them compute) and 8 of 10 seconds.
BreakdownResult two_ranks() {
  const Breakdown first{.compute = 5, .copies = 1, .wait = 4, .step = 10};
  const Breakdown second{.compute = 8, .transfer = 2, .step = 10};
  BreakdownResult result;
  result.mean = Breakdown{.compute = 6.5, .copies = 0.5, .transfer = 1, .wait = 2, .step = 10};
  result.ranks = {0, 1};
  result.of_rank = {first, second};
  result.free_network_step = 9;
  return result;
}

results::PointData point_of(int ranks, double work, double flop_of_rank) {
  results::PointData point;
  point.ranks = ranks;
  point.work_per_step = work;
  point.flop_of_rank.assign(static_cast<std::size_t>(ranks), flop_of_rank);
  return point;
}

void expect_products(const Pop& pop) {
  EXPECT_NEAR(pop.parallel, pop.load_balance * pop.communication, rounding);
  if (pop.serialisation && pop.transfer) {
    EXPECT_NEAR(pop.communication, *pop.serialisation * *pop.transfer, rounding);
  }
  if (pop.global) {
    EXPECT_NEAR(*pop.global, pop.parallel * *pop.computation_scalability, rounding);
  }
  if (pop.work_scalability) {
    EXPECT_NEAR(*pop.computation_scalability, *pop.work_scalability * *pop.speed_scalability,
                rounding);
  }
}

TEST(Pop, IsATreeOfProducts) {
  const auto result =
      pop(point_of(2, 100, 50), two_ranks(), UsefulWork{.useful = 7, .work = 100, .flop = 80});
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->load_balance, 7.0 / 8, rounding);    // mean of 6 and 8 over 8
  EXPECT_NEAR(result->communication, 8.0 / 10, rounding);  // 8 of 10 seconds
  EXPECT_NEAR(*result->serialisation, 8.0 / 9, rounding);
  EXPECT_NEAR(*result->transfer, 9.0 / 10, rounding);
  EXPECT_NEAR(result->parallel, 0.7, rounding);
  EXPECT_NEAR(*result->computation_scalability, 7.0 / 14, rounding);
  EXPECT_NEAR(*result->work_scalability, 80.0 / 100, rounding);  // 20% of the FLOP are new
  EXPECT_NEAR(*result->speed_scalability, 0.625, rounding);      // 80/7 and 100/14 FLOP a second
  EXPECT_NEAR(*result->global, 0.35, rounding);
  expect_products(*result);
}

TEST(Pop, OfStrongScalingComparesWholeUsefulTime) {
  // One rank works 12 s on the same batch that two ranks spend 14 s on together.
  const auto result =
      pop(point_of(2, 100, 50), two_ranks(), UsefulWork{.useful = 12, .work = 100, .flop = 100});
  EXPECT_NEAR(*result->computation_scalability, 12.0 / 14, rounding);
  EXPECT_NEAR(*result->work_scalability, 1, rounding);
  EXPECT_NEAR(*result->speed_scalability, 12.0 / 14, rounding);
  expect_products(*result);
}

TEST(Pop, OfWeakScalingComparesByUnitOfWork) {
  // One rank works 6 s on half of what two ranks spend 14 s on.
  const auto result =
      pop(point_of(2, 100, 50), two_ranks(), UsefulWork{.useful = 6, .work = 50, .flop = 50});
  EXPECT_NEAR(*result->computation_scalability, 6.0 / 7, rounding);
  EXPECT_NEAR(*result->work_scalability, 1, rounding);
  EXPECT_NEAR(*result->global, 0.6, rounding);
  expect_products(*result);
}

TEST(Pop, IsAllOnesForTheBaselineItself) {
  const auto point = point_of(1, 100, 50);
  BreakdownResult alone;
  alone.mean = Breakdown{.compute = 10, .step = 10};
  alone.ranks = {0};
  alone.of_rank = {*alone.mean};
  alone.free_network_step = 10;
  const auto result = pop(point, alone, useful_work(point, alone));
  EXPECT_DOUBLE_EQ(*result->global, 1);
  EXPECT_DOUBLE_EQ(result->parallel, 1);
  EXPECT_DOUBLE_EQ(*result->speed_scalability, 1);
}

TEST(Pop, HasNothingAboveParallelWithoutABaseline) {
  const auto result = pop(point_of(2, 100, 50), two_ranks(), std::nullopt);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->parallel, 0.7, rounding);
  EXPECT_FALSE(result->computation_scalability);
  EXPECT_FALSE(result->work_scalability);
  EXPECT_FALSE(result->speed_scalability);
  EXPECT_FALSE(result->global);
}

TEST(Pop, DoesNotDivideComputationWithoutFlop) {
  for (const auto& [mine, base] : {std::pair{0.0, 80.0}, std::pair{50.0, 0.0}}) {
    const auto result = pop(point_of(2, 100, mine), two_ranks(),
                            UsefulWork{.useful = 7, .work = 100, .flop = base});
    EXPECT_TRUE(result->global);
    EXPECT_FALSE(result->work_scalability);
    EXPECT_FALSE(result->speed_scalability);
  }
}

TEST(Pop, DoesNotDivideCommunicationWithoutAReplay) {
  BreakdownResult parts = two_ranks();
  parts.free_network_step.reset();
  const auto result = pop(point_of(2, 100, 50), parts, std::nullopt);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->communication, 0.8, rounding);
  EXPECT_FALSE(result->serialisation);
  EXPECT_FALSE(result->transfer);
}

TEST(Pop, OfRanksThatWereNotTracedNeedsTheirOpSums) {
  results::PointData point = point_of(4, 100, 50);
  EXPECT_FALSE(useful_work(point, two_ranks()));
  EXPECT_FALSE(pop(point, two_ranks(), std::nullopt));
  for (std::uint32_t step = 0; step < 2; ++step) {
    point.op_sums.push_back({.step = step,
                             .gemm = {5, 6, 7, 3},
                             .other_compute = {1, 1, 0, 1},
                             .copies = {0, 1, 1, 0},
                             .communication = {9, 9, 9, 9}});
  }
  const auto useful = useful_work(point, two_ranks());
  ASSERT_TRUE(useful);
  EXPECT_NEAR(useful->useful, 6 + 8 + 8 + 4, rounding);
  EXPECT_DOUBLE_EQ(useful->flop, 200);
  const auto result = pop(point, two_ranks(), UsefulWork{.useful = 13, .work = 100, .flop = 200});
  EXPECT_NEAR(result->load_balance, 6.5 / 8, rounding);
  EXPECT_NEAR(*result->computation_scalability, 0.5, rounding);
  expect_products(*result);
}

TEST(Pop, IsAbsentWithoutTracesOrUsefulTime) {
  EXPECT_FALSE(pop(point_of(2, 100, 50), {}, std::nullopt));
  EXPECT_FALSE(useful_work(point_of(2, 100, 50), {}));
  BreakdownResult idle;
  idle.mean = Breakdown{.gap = 10, .step = 10};
  idle.ranks = {0};
  idle.of_rank = {*idle.mean};
  EXPECT_FALSE(pop(point_of(1, 100, 50), idle, std::nullopt));
}

}  // namespace
}  // namespace isoscale::analysis
