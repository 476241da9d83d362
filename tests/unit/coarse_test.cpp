// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Programs as chains of work and meetings, one rank of each class, and the draws of their noise.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.hpp"
#include "made_outlines.hpp"
#include "program/builder.hpp"
#include "simulate/classes.hpp"
#include "simulate/coarse_play.hpp"
#include "simulate/noise.hpp"
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

ClassStep play(const std::vector<MadeOp>& ops, const Overlap& overlap) {
  const AllAlike ranks = all_alike({.dp = 4}, ops);
  return play_classes(ranks.classes, ranks.costs, overlap, Record::spans);
}

double length(const ClassStep& step, std::size_t op) {
  const timeline::Span& span = step.timeline.ranks.at(0).spans.at(op);
  return static_cast<double>((span.end - span.start).value());
}

// A GEMM of 1000 beside an all-reduce of 600, from the same instant. All of the reduction is beside
// it: at half speed it takes 1200. For those the GEMM does 1200 / 1.5 = 800 of its work, and 200
// are left: 1400.
TEST(Overlap, OpsBesideTheOtherKindTakeTheirShareLonger) {
  const ClassStep step =
      play({{.nanoseconds = 1000},
            {.kind = OpKind::all_reduce, .stream = 1, .nanoseconds = 600, .axes = dp}},
           {.compute = 1.5, .communication = 2});
  EXPECT_NEAR(length(step, 0), 1400, 2);
  EXPECT_NEAR(length(step, 1), 1200, 2);
  EXPECT_NEAR(step.seconds, 1400e-9, 2e-9);
  EXPECT_LT(step.error, 1e-3);
}

// No op runs beside another: the reduction waits for the GEMM, and the second GEMM for the
// reduction.
TEST(Overlap, OpsAloneTakeTheirTime) {
  const ClassStep step = play({{.nanoseconds = 1000},
                               {.kind = OpKind::all_reduce,
                                .stream = 1,
                                .nanoseconds = 600,
                                .axes = dp,
                                .waits = {{.stream = 0, .count = 1}}},
                               {.nanoseconds = 500, .waits = {{.stream = 1, .count = 1}}}},
                              {.compute = 1.5, .communication = 2});
  EXPECT_DOUBLE_EQ(step.seconds, 2100e-9);
  EXPECT_EQ(step.error, 0);
}

// Copies are neither kind.
TEST(Overlap, CopiesStretchNothing) {
  const ClassStep step =
      play({{.nanoseconds = 1000}, {.kind = OpKind::copy, .stream = 1, .nanoseconds = 600}},
           {.compute = 1.5, .communication = 2});
  EXPECT_DOUBLE_EQ(step.seconds, 1000e-9);
}

// Only the second half of the GEMM has the reduction beside it, which outlasts it: of the GEMM's
// 500 left, at 2/3 speed: 750. The reduction has then done 375 of its 600, and ends 225 later.
TEST(Overlap, CountsOnlyTheTimeBeside) {
  const ClassStep step = play({{.nanoseconds = 500},
                               {.nanoseconds = 500},
                               {.kind = OpKind::all_reduce,
                                .stream = 1,
                                .nanoseconds = 600,
                                .axes = dp,
                                .waits = {{.stream = 0, .count = 1}}}},
                              {.compute = 1.5, .communication = 2});
  EXPECT_NEAR(length(step, 0), 500, 2);
  EXPECT_NEAR(length(step, 1), 750, 3);
  EXPECT_NEAR(length(step, 2), 975, 3);
  EXPECT_NEAR(step.seconds, 1475e-9, 4e-9);
}

/// A rank whose step is one fill.
program::RankProgram filling(const mesh::Shape& mesh, std::uint64_t elements) {
  program::Builder builder{mesh};
  builder.begin(program::Section::setup);
  builder.begin(program::Section::step);
  const program::BufferId buffer =
      builder.allocate({.dtype = program::DType::f32, .count = elements});
  builder.emit(0, program::Fill{.dst = builder.whole(buffer)});
  return builder.finish();
}

// Every third of twelve ranks along dp differs: two coordinates are enough, and without messages
// along dp they are kept.
TEST(Classes, KeepOneCoordinateOfThoseThatAreAlike) {
  const mesh::Shape mesh{.tp = 2, .dp = 12};
  program::ProgramSet set{
      .mesh = mesh, .programs = {filling(mesh, 8), filling(mesh, 16)}, .program_of_rank = {}};
  for (int rank = 0; rank < mesh.size(); ++rank) {
    set.program_of_rank.push_back(mesh::coordinates(mesh, rank).dp % 3 == 2 ? 1 : 0);
  }
  const Classes classes = classes_of(set, program::Section::step);
  EXPECT_EQ(classes.kept, mesh::AxisSet{dp});
  EXPECT_EQ(classes.outline.mesh, (mesh::Shape{.dp = 2}));
  EXPECT_EQ(classes.program, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(classes.rank, (std::vector<int>{0, 4}));
  for (int rank = 0; rank < mesh.size(); ++rank) {
    EXPECT_EQ(classes.class_of_rank[static_cast<std::size_t>(rank)],
              set.program_of_rank[static_cast<std::size_t>(rank)]);
  }
}

// Tables of the normal distribution.
TEST(Normal, QuantilesAreThoseOfTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-9);
  EXPECT_NEAR(normal_quantile(1e-6), -4.753424308822899, 1e-8);
  for (const double p : {1e-5, 0.01, 0.2, 0.6, 0.99}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, 1e-12);
  }
}

// Closed forms of two and three draws; Harter 1961 for more.
TEST(Normal, LargestOfManyDraws) {
  const double pi = std::numbers::pi;
  EXPECT_NEAR(largest_normal(1).mean, 0, 1e-6);
  EXPECT_NEAR(largest_normal(1).variance, 1, 1e-5);
  EXPECT_NEAR(largest_normal(2).mean, 1 / std::sqrt(pi), 1e-6);
  EXPECT_NEAR(largest_normal(2).variance, 1 - 1 / pi, 1e-5);
  EXPECT_NEAR(largest_normal(3).mean, 1.5 / std::sqrt(pi), 1e-6);
  EXPECT_NEAR(largest_normal(10).mean, 1.53875, 1e-5);
  EXPECT_NEAR(largest_normal(100).mean, 2.50759, 1e-5);
  EXPECT_NEAR(largest_normal(1000).mean, 3.24144, 1e-5);
}

TEST(Normal, QuickDrawsHaveTheDistributionsMoments) {
  double sum = 0, squares = 0, within = 0;
  constexpr int count = 100000;
  for (std::uint64_t key = 0; key < count; ++key) {
    const double draw = quick_normal(mixed(key));
    sum += draw;
    squares += draw * draw;
    within += std::abs(draw) < 1.96 ? 1 : 0;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
  EXPECT_NEAR(within / count, 0.95, 0.003);
}

TEST(Normal, KeysGiveEvenDraws) {
  double sum = 0, squares = 0;
  constexpr int count = 100000;
  for (std::uint64_t key = 0; key < count; ++key) {
    const double draw = uniform(key);
    ASSERT_GT(draw, 0);
    ASSERT_LT(draw, 1);
    sum += draw;
    squares += draw * draw;
  }
  EXPECT_NEAR(sum / count, 1.0 / 2, 0.005);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.005);
}

}  // namespace
}  // namespace isoscale::simulate
