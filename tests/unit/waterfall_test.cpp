// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/losses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using mesh::AxisSet;
using testing::ElementsAre;
using testing::HasSubstr;

double sum(const efficiency::StepCosts& costs) {
  double result = costs.gemm + costs.other_compute + costs.copies + costs.bubble + costs.waiting +
                  costs.gap + costs.other;
  for (const auto& [axes, seconds] : costs.transfer) result += seconds;
  return result;
}

/// One rank, 10 s a step: 8 s of GEMMs, 2 s of other ops; tracing costs 0.5 s.
efficiency::StepLoss one_rank() {
  efficiency::StepLoss loss{.step = 10, .work = 100, .costs = {}};
  loss.costs.gemm_alone = 8;
  loss.costs.gemm_overlap = 0;
  loss.costs.gemm = 8;
  loss.costs.other_compute = 2;
  loss.costs.imbalance = loss.costs.noise = 0;
  loss.costs.other = 0.5;
  loss.traced = sum(loss.costs);
  loss.slowest = loss.traced;
  return loss;
}

/// Four ranks: 2 s of GEMMs would be ideal for the same work.
efficiency::StepLoss four_ranks() {
  efficiency::StepLoss loss{.step = 4.25, .work = 100, .ranks = 4, .costs = {}};
  loss.costs.gemm_alone = 2.1;
  loss.costs.gemm_overlap = 0.15;
  loss.costs.gemm = 2.25;
  loss.costs.other_compute = 0.6;
  loss.costs.copies = 0.05;
  loss.costs.transfer = {{Axis::dp, 0.5}, {Axis::tp, 0.25}};
  loss.costs.bubble = 0.2;
  loss.costs.imbalance = 0.3;
  loss.costs.noise = 0.1;
  loss.costs.waiting = 0.4;
  loss.costs.gap = 0.03;
  loss.costs.other = 0.02;
  loss.traced = sum(loss.costs);
  loss.slowest = loss.traced + 0.01;
  return loss;
}

std::optional<double> lost_to(const efficiency::Waterfall& waterfall, const std::string& cause) {
  const auto found = std::ranges::find(waterfall.lost, cause, &efficiency::LostTime::cause);
  return found == waterfall.lost.end() ? std::nullopt : std::optional{found->seconds};
}

std::vector<std::string> causes(const efficiency::Waterfall& waterfall) {
  std::vector<std::string> names;
  for (const efficiency::LostTime& lost : waterfall.lost) names.push_back(lost.cause);
  return names;
}

void expect_exact(const efficiency::Waterfall& waterfall) {
  double lost = 0;
  for (const efficiency::LostTime& at : waterfall.lost) lost += at.seconds;
  EXPECT_NEAR(waterfall.ideal + lost, waterfall.measured, 1e-12 * waterfall.measured);
}

void expect_lost(const efficiency::Waterfall& waterfall, const std::string& cause, double seconds) {
  const auto lost = lost_to(waterfall, cause);
  ASSERT_TRUE(lost) << cause;
  EXPECT_NEAR(*lost, seconds, 1e-12) << cause;
}

TEST(Waterfall, LeadsFromIdealToMeasured) {
  const efficiency::Waterfall found = efficiency::waterfall(four_ranks(), one_rank());
  EXPECT_DOUBLE_EQ(found.ideal, 2.5);
  EXPECT_DOUBLE_EQ(found.measured, 4.25);
  EXPECT_TRUE(found.missing.empty());
  EXPECT_THAT(causes(found), ElementsAre("GEMMs", "GEMM overlap", "other compute", "copies",
                                         "tp transfer", "dp transfer", "bubble", "imbalance",
                                         "noise", "gap", "other", "uneven steps", "untraced"));
  expect_lost(found, "GEMMs", 2.1 - 8.0 / 4);
  expect_lost(found, "GEMM overlap", 0.15);
  expect_lost(found, "other compute", 0.6 - 2.0 / 4);
  expect_lost(found, "copies", 0.05);
  expect_lost(found, "tp transfer", 0.25);
  expect_lost(found, "dp transfer", 0.5);
  expect_lost(found, "bubble", 0.2);
  expect_lost(found, "imbalance", 0.3);
  expect_lost(found, "noise", 0.1);
  expect_lost(found, "gap", 0.03);
  expect_lost(found, "other", 0.02 - 0.5 / 4);
  expect_lost(found, "uneven steps", 0.01);
  expect_lost(found, "untraced", (4.25 - 4.31) - (10 - 10.5) / 4);
  expect_exact(found);
}

TEST(Waterfall, ExplainsNothingWhereTracedStepsDifferByMoreThanATenth) {
  EXPECT_TRUE(efficiency::waterfall(four_ranks(), one_rank()).explains);
  // Traced steps of 4.31 s, of which the baseline's difference of 0.125 s is taken.
  efficiency::StepLoss point = four_ranks();
  point.step = (4.31 - 0.125) / 1.09;
  EXPECT_TRUE(efficiency::waterfall(point, one_rank()).explains);
  point.step = (4.31 - 0.125) / 1.11;
  EXPECT_FALSE(efficiency::waterfall(point, one_rank()).explains);
  point.step = (4.31 - 0.125) / 0.89;
  EXPECT_FALSE(efficiency::waterfall(point, one_rank()).explains);
}

TEST(Waterfall, OfWeakScalingHasTheBaselinesStepForIdeal) {
  efficiency::StepLoss point = four_ranks();
  point.work = 400;
  point.step = 12;
  point.costs.gemm_alone = 8.4;
  point.costs.gemm = 8.55;
  point.costs.other_compute = 2.2;
  point.traced = sum(point.costs);
  const efficiency::Waterfall found = efficiency::waterfall(point, one_rank());
  EXPECT_DOUBLE_EQ(found.ideal, 10);
  expect_lost(found, "GEMMs", 0.4);
  expect_lost(found, "other compute", 0.2);
  expect_exact(found);
}

TEST(Waterfall, TakesABaselineOfSeveralRanks) {
  // From 4 ranks to 8: half of each part is what ideal scaling leaves.
  efficiency::StepLoss eight = four_ranks();
  eight.ranks = 8;
  eight.step = 2.5;
  const efficiency::Waterfall found = efficiency::waterfall(eight, four_ranks());
  EXPECT_DOUBLE_EQ(found.ideal, 4.25 / 2);
  expect_lost(found, "dp transfer", 0.25);
  expect_lost(found, "imbalance", 0.15);
  expect_exact(found);
}

TEST(Waterfall, HasAxesThatOnlyOneEndUses) {
  constexpr AxisSet both{Axis::tp, Axis::dp};
  efficiency::StepLoss base = four_ranks();
  base.costs.transfer = {{Axis::tp, 0.4}};
  base.traced = sum(base.costs);
  efficiency::StepLoss point = four_ranks();
  point.ranks = 8;
  point.costs.transfer = {{Axis::dp, 0.5}, {both, 0.125}};
  point.traced = sum(point.costs);
  const efficiency::Waterfall found = efficiency::waterfall(point, base);
  expect_lost(found, "tp transfer", -0.2);
  expect_lost(found, "dp transfer", 0.5);
  expect_lost(found, mesh::to_string(both) + " transfer", 0.125);
  expect_exact(found);
}

TEST(Waterfall, DoesNotSeparateGemmsWithoutSoloRunsAtBothEnds) {
  for (const bool at_baseline : {false, true}) {
    efficiency::StepLoss base = one_rank(), point = four_ranks();
    efficiency::StepCosts& without = at_baseline ? base.costs : point.costs;
    without.gemm_alone.reset();
    without.gemm_overlap.reset();
    const efficiency::Waterfall found = efficiency::waterfall(point, base);
    EXPECT_FALSE(lost_to(found, "GEMM overlap"));
    expect_lost(found, "GEMMs", 2.25 - 8.0 / 4);
    EXPECT_THAT(found.missing, testing::ElementsAre(HasSubstr("solo")));
    expect_exact(found);
  }
}

TEST(Waterfall, DoesNotDivideWaitingWithoutTwoTracedStepsAtBothEnds) {
  for (const bool at_baseline : {false, true}) {
    efficiency::StepLoss base = one_rank(), point = four_ranks();
    efficiency::StepCosts& without = at_baseline ? base.costs : point.costs;
    without.imbalance.reset();
    without.noise.reset();
    point.costs.uneven = 0.05;
    point.costs.hiccups = 0.02;
    const efficiency::Waterfall found = efficiency::waterfall(point, base);
    expect_lost(found, "imbalance", 0.05);
    expect_lost(found, "noise", 0.02);
    expect_lost(found, "waiting", 0.4 - 0.07);
    EXPECT_THAT(found.missing, testing::ElementsAre(HasSubstr("more traced steps")));
    expect_exact(found);
  }
}

TEST(Waterfall, SaysAllThatIsMissing) {
  efficiency::StepLoss point = four_ranks();
  point.costs.gemm_alone.reset();
  point.costs.noise = point.costs.imbalance = std::nullopt;
  const efficiency::Waterfall found = efficiency::waterfall(point, one_rank());
  EXPECT_THAT(found.missing, testing::ElementsAre(HasSubstr("solo"), HasSubstr("imbalance")));
  expect_exact(found);
}

}  // namespace
}  // namespace isoscale::analysis
