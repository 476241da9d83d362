// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Programs as work and meetings, one rank of each class, and the draws of their noise.

#include <numbers>

#include "base/error.hpp"
#include "made_programs.hpp"
#include "matchers.hpp"
#include "program/builder.hpp"
#include "simulate/noise.hpp"
#include "simulate/simulate.hpp"

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

MadeOp gemm(std::int64_t nanoseconds, std::vector<program::Wait> waits = {}) {
  return {.nanoseconds = nanoseconds, .waits = std::move(waits)};
}
MadeOp sum(std::int64_t nanoseconds, mesh::AxisSet axes) {
  return {.kind = OpKind::all_reduce, .nanoseconds = nanoseconds, .axes = axes};
}
/// A sum over dp on the second stream.
MadeOp beside(std::int64_t nanoseconds, std::vector<program::Wait> waits = {}) {
  MadeOp op = sum(nanoseconds, dp);
  op.stream = 1;
  op.waits = std::move(waits);
  return op;
}

const std::vector<MadeOp> layers{gemm(30),   gemm(40),    sum(10, tp),
                                 gemm(50),   sum(10, tp), {.kind = OpKind::copy, .nanoseconds = 5},
                                 sum(20, dp)};

// Work before a collective goes into its op.
TEST(Coarse, JoinsWhatOnlyTheirRankSees) {
  const CoarseSet coarsened = coarse({.tp = 2, .dp = 2}, layers);
  for (const program::OutlineOp& op : coarsened.programs.outlines.at(0).ops) {
    EXPECT_EQ(op.kind, OpKind::all_reduce);
  }
  // Compute, what is fixed, the spread (30^2 + 40^2 = 50^2), and the meeting.
  EXPECT_THAT(coarsened.times.at(0), ElementsAre(FieldsAre(70, 0, DoubleEq(50), 10),
                                                 FieldsAre(50, 0, 50, 10), FieldsAre(0, 5, 0, 20)));
  // Alone, a rank's collectives are work of their time.
  EXPECT_THAT(coarse({}, layers).times.at(0), ElementsAre(FieldsAre(120, 45, testing::_, 0)));
}

// Rank 1 computes twice as long, so all wait for it at every collective: 2 x 120, and 45.
TEST(Coarse, ASlowRankIsWaitedFor) {
  const CoarseSet set = coarse({.tp = 2, .dp = 2}, layers);
  const auto steps =
      play_coarse(set, {.factor = [](int rank, int) { return rank == 1 ? 2.0 : 1.0; }});
  for (const timeline::Interval& rank : steps.at(0)) EXPECT_EQ(rank.end.value(), 285);
}

TEST(Coarse, ACollectiveWithoutItsPartnersIsADeadlock) {
  const Made with = made({sum(10, dp)}), none = made({gemm(10)});
  const CoarseSet set = coarsen(
      {.mesh = {.dp = 2}, .outlines = {with.outline, none.outline}, .outline_of_rank = {0, 1}},
      {.tables = {with.costs, none.costs}, .table_of_rank = {0, 1}});
  EXPECT_THROW((void)play_coarse(set, {}), base::Error);
}

// The draws of ops add up by their squares: over 4000 steps of one op of 1000 and four of 500, the
// deviation is 0.1 * 1000 * sqrt 2.
TEST(Coarse, OpNoiseAddsUpByVariance) {
  const CoarseSet set = coarse({}, {gemm(1000), gemm(500), gemm(500), gemm(500), gemm(500)});
  constexpr int plays = 4000;
  double total = 0, squares = 0;
  for (const auto& step : play_coarse(set, {.plays = plays, .op_noise = 0.1})) {
    const auto time = static_cast<double>((step.at(0).end - step.at(0).begin).value());
    total += time;
    squares += time * time;
  }
  const double mean = total / plays;
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
  EXPECT_EQ(tight({gemm(50), sum(10, tp), gemm(50), sum(10, tp), sum(20, dp)}), mesh::AxisSet{tp});
}

// On another stream a meeting counts when the computing one waits for it; the wait at the end, and
// another right after it, are one meeting.
TEST(Synchrony, MeetingsOnOtherStreamsCountWhereTheyAreWaitedFor) {
  const auto with_waits = [](const std::vector<program::Wait>& in_the_middle) {
    return tight({gemm(50),
                  beside(10),
                  gemm(50, in_the_middle),
                  beside(10),
                  {.kind = OpKind::update, .waits = {{.stream = 1, .count = 2}}}});
  };
  EXPECT_EQ(with_waits({}), mesh::AxisSet{});
  EXPECT_EQ(with_waits({{.stream = 1, .count = 1}}), mesh::AxisSet{dp});
}

/// Beside the other kind, compute takes 1.5 times as long and communication twice.
ClassStep play(const std::vector<MadeOp>& ops) {
  const AllAlike ranks = all_alike({.dp = 4}, ops);
  return play_classes(ranks.classes, ranks.costs, {.compute = 1.5, .communication = 2},
                      Record::spans);
}

void expect_lengths(const ClassStep& step, const std::vector<double>& nanoseconds) {
  const auto& spans = step.timeline.ranks.at(0).spans;
  ASSERT_EQ(spans.size(), nanoseconds.size());
  for (std::size_t op = 0; op < spans.size(); ++op) {
    const auto length = static_cast<double>((spans[op].end - spans[op].start).value());
    EXPECT_NEAR(length, nanoseconds[op], 2) << op;
  }
}

// A GEMM of 1000 beside an all-reduce of 600, from the same instant. All of the reduction is beside
// it: at half speed it takes 1200. For those the GEMM does 1200 / 1.5 = 800 of its work, and 200
// are left: 1400.
TEST(Overlap, OpsBesideTheOtherKindTakeTheirShareLonger) {
  const ClassStep step = play({gemm(1000), beside(600)});
  expect_lengths(step, {1400, 1200});
  EXPECT_NEAR(step.seconds, 1400e-9, 2e-9);
}

// No op runs beside another: the reduction waits for the GEMM, and the second GEMM for the
// reduction. Copies are neither kind.
TEST(Overlap, OpsAloneTakeTheirTimeAndCopiesStretchNothing) {
  const ClassStep step = play({gemm(1000), beside(600, {{.stream = 0, .count = 1}}),
                               gemm(500, {{.stream = 1, .count = 1}})});
  EXPECT_DOUBLE_EQ(step.seconds, 2100e-9);
  const MadeOp copy{.kind = OpKind::copy, .stream = 1, .nanoseconds = 600};
  EXPECT_DOUBLE_EQ(play({gemm(1000), copy}).seconds, 1000e-9);
}

// Only the second half of the GEMM has the reduction beside it, which outlasts it: of the GEMM's
// 500 left, at 2/3 speed: 750. The reduction has then done 375 of its 600, and ends 225 later.
TEST(Overlap, CountsOnlyTheTimeBeside) {
  const ClassStep step = play({gemm(500), gemm(500), beside(600, {{.stream = 0, .count = 1}})});
  expect_lengths(step, {500, 750, 975});
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
  const Classes classes = classes_of(set);
  EXPECT_EQ(classes.outline.mesh, (mesh::Shape{.dp = 2}));
  EXPECT_EQ(classes.outline.outline_of_rank, (std::vector<std::uint32_t>{0, 1}));
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
    EXPECT_NEAR(std::erfc(-normal_quantile(p) / std::numbers::sqrt2) / 2, p, 1e-12);
  }
}

/// Mean and mean square of what `draw` makes of many keys.
std::pair<double, double> moments(double (*draw)(std::uint64_t)) {
  constexpr int count = 100000;
  double total = 0, squares = 0;
  for (std::uint64_t key = 0; key < count; ++key) {
    total += draw(key);
    squares += draw(key) * draw(key);
  }
  return {total / count, squares / count};
}

TEST(Normal, QuickDrawsHaveTheDistributionsMoments) {
  const auto [mean, square] = moments([](std::uint64_t key) { return quick_normal(mixed(key)); });
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.01);
  const auto [within, same] = moments(
      [](std::uint64_t key) { return std::abs(quick_normal(mixed(key))) < 1.96 ? 1.0 : 0.0; });
  EXPECT_NEAR(within, 0.95, 0.003);
}

TEST(Normal, KeysGiveEvenDraws) {
  const auto [mean, square] = moments(uniform);
  EXPECT_NEAR(mean, 1.0 / 2, 0.005);
  EXPECT_NEAR(square, 1.0 / 3, 0.005);
  for (std::uint64_t key = 0; key < 100000; ++key) {
    ASSERT_GT(uniform(key), 0);
    ASSERT_LT(uniform(key), 1);
  }
}

}  // namespace
}  // namespace isoscale::simulate
