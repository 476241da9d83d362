// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/coarse_play.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "made_outlines.hpp"
#include "simulate/noise_delay.hpp"

namespace isoscale::simulate {
namespace {

using program::OpKind;

constexpr auto tp = mesh::Axis::tp, dp = mesh::Axis::dp;

CoarseSet coarse(const mesh::Shape& mesh, const std::vector<MadeOp>& ops) {
  const Made one = made(ops);
  const std::vector<std::uint32_t> first(static_cast<std::size_t>(mesh.size()));
  return coarsen({.mesh = mesh, .outlines = {one.outline}, .outline_of_rank = first},
                 {.tables = {one.costs}, .table_of_rank = first});
}

const std::vector<MadeOp> layers{
    {.nanoseconds = 30},
    {.nanoseconds = 40},
    {.kind = OpKind::all_reduce, .nanoseconds = 10, .axes = tp},
    {.nanoseconds = 50},
    {.kind = OpKind::all_reduce, .nanoseconds = 10, .axes = tp},
    {.kind = OpKind::copy, .nanoseconds = 5},
    {.kind = OpKind::all_reduce, .nanoseconds = 20, .axes = dp},
};

// Work before a collective goes into its chain; another group begins another chain.
TEST(Coarse, JoinsWhatOnlyTheirRankSees) {
  const CoarseSet set = coarse({.tp = 2, .dp = 2}, layers);
  const std::vector<CoarseOp>& ops = set.programs.at(0).lanes.at(0);
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_EQ(ops[0].kind, CoarseKind::chain);
  EXPECT_EQ(ops[0].count, 2U);
  EXPECT_DOUBLE_EQ(set.programs[0].links[0].before.compute, 70);
  EXPECT_DOUBLE_EQ(set.programs[0].links[0].before.spread, 50);  // 30^2 + 40^2 = 50^2
  EXPECT_EQ(ops[1].kind, CoarseKind::work);
  EXPECT_DOUBLE_EQ(ops[1].work.fixed, 5);
  EXPECT_EQ(ops[2].kind, CoarseKind::chain);
}

// Alone, a rank's collectives are work of their time.
TEST(Coarse, CollectivesOfOneAreWork) {
  const CoarseSet set = coarse({}, layers);
  ASSERT_EQ(set.programs.at(0).lanes.at(0).size(), 1U);
  EXPECT_DOUBLE_EQ(set.programs[0].lanes[0][0].work.compute, 120);
  EXPECT_DOUBLE_EQ(set.programs[0].lanes[0][0].work.fixed, 45);
}

// Rank 1 computes twice as long, so all wait for it at every link: 2 x 120, and 45.
TEST(Coarse, ASlowRankIsWaitedFor) {
  const CoarseSet set = coarse({.tp = 2, .dp = 2}, layers);
  const auto steps =
      play_coarse(set, {.factor = [](int rank, int) { return rank == 1 ? 2.0 : 1.0; }});
  for (const CoarseStep& rank : steps.at(0)) EXPECT_DOUBLE_EQ(rank.end, 285);
}

TEST(Coarse, ACollectiveWithoutItsPartnersIsADeadlock) {
  const Made with = made({{.kind = OpKind::all_reduce, .nanoseconds = 10, .axes = dp}});
  const Made none = made({{.nanoseconds = 10}});
  const CoarseSet set = coarsen(
      {.mesh = {.dp = 2}, .outlines = {with.outline, none.outline}, .outline_of_rank = {0, 1}},
      {.tables = {with.costs, none.costs}, .table_of_rank = {0, 1}});
  EXPECT_THROW((void)play_coarse(set, {}), base::Error);
}

// The draws of ops add up by their squares: over 4000 steps of one op of 1000 and four of 500, the
// deviation is 0.1 * 1000 * sqrt 2.
TEST(Coarse, OpNoiseAddsUpByVariance) {
  const CoarseSet set = coarse({}, {{.nanoseconds = 1000},
                                    {.nanoseconds = 500},
                                    {.nanoseconds = 500},
                                    {.nanoseconds = 500},
                                    {.nanoseconds = 500}});
  constexpr int plays = 4000;
  double sum = 0, squares = 0;
  for (const auto& step : play_coarse(set, {.plays = plays, .op_noise = 0.1})) {
    const double time = step.at(0).end - step.at(0).begin;
    sum += time;
    squares += time * time;
  }
  const double mean = sum / plays;
  EXPECT_NEAR(mean, 3000, 10);  // 4.5 standard errors
  EXPECT_NEAR(std::sqrt(squares / plays - mean * mean), 141.4, 7);
}

mesh::AxisSet tight(const std::vector<MadeOp>& ops) {
  const AllAlike ranks = all_alike({.tp = 2, .dp = 2}, ops);
  return tight_axes(ranks.set.mesh, ranks.classes.outline, ranks.costs);
}

// tp's longest stretch is 70 of 120, dp meets once a step.
TEST(Synchrony, TightAxesMeetAllThroughAStep) {
  EXPECT_EQ(tight(layers), mesh::AxisSet{});
  EXPECT_EQ(tight({{.nanoseconds = 50},
                   {.kind = OpKind::all_reduce, .nanoseconds = 10, .axes = tp},
                   {.nanoseconds = 50},
                   {.kind = OpKind::all_reduce, .nanoseconds = 10, .axes = tp},
                   {.kind = OpKind::all_reduce, .nanoseconds = 20, .axes = dp}}),
            mesh::AxisSet{tp});
}

// On another stream a meeting counts when the computing one waits for it; the wait at the end, and
// another right after it, are one meeting.
TEST(Synchrony, MeetingsOnOtherStreamsCountWhereTheyAreWaitedFor) {
  const auto with_waits = [](std::vector<program::Wait> in_the_middle) {
    return tight(
        {{.nanoseconds = 50},
         {.kind = OpKind::all_gather, .stream = 1, .nanoseconds = 10, .axes = dp},
         {.nanoseconds = 50, .waits = std::move(in_the_middle)},
         {.kind = OpKind::all_gather, .stream = 1, .nanoseconds = 10, .axes = dp},
         {.kind = OpKind::update, .nanoseconds = 0, .waits = {{.stream = 1, .count = 2}}}});
  };
  EXPECT_EQ(with_waits({}), mesh::AxisSet{});
  EXPECT_EQ(with_waits({{.stream = 1, .count = 1}}), mesh::AxisSet{dp});
}

}  // namespace
}  // namespace isoscale::simulate
