// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Programs as work and meetings, one rank of each class, the draws of their noise, and the same
// played with each rank by itself.
#include <numbers>

#include "made_programs.hpp"
#include "simulate/noise.hpp"
#include "stack_samples.hpp"

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
  builder.emit(0, program::fill(builder.whole(program::floats(builder, elements))));
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

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// GEMMs of 1 ms, then a dp all-reduce of 1 ms.
AllAlike data_parallel(int ranks, std::size_t gemms = 12) {
  std::vector<MadeOp> ops(gemms, {.nanoseconds = 1'000'000});
  ops.push_back({.kind = OpKind::all_reduce, .nanoseconds = 1'000'000, .axes = dp});
  return all_alike({.dp = ranks}, ops);
}

/// Twelve times a GEMM of 1 ms and a tp all-reduce of 0.1 ms, then a dp all-reduce of 1 ms.
AllAlike tensor_parallel(const mesh::Shape& mesh) {
  std::vector<MadeOp> ops;
  for (int i = 0; i < 12; ++i) {
    ops.push_back({.nanoseconds = 1'000'000});
    ops.push_back({.kind = OpKind::all_reduce, .nanoseconds = 100'000, .axes = tp});
  }
  ops.push_back({.kind = OpKind::all_reduce, .nanoseconds = 1'000'000, .axes = dp});
  return all_alike(mesh, ops);
}

/// A pipeline of the hybrid workload, every FLOP a picosecond, other ops 100 ns and communication
/// 10 us. With `v` above 1 it is interleaved, with so many layers on each stage.
AllAlike pipeline(const mesh::Shape& mesh, int microbatches, int v = 1) {
  auto base = workloads::request_of(
      "hidden=256 ffn=1024 heads=16 kv_heads=16 head_size=16 sequence=64 vocabulary=0",
      microbatches * mesh.dp, {{"microbatch", "1"}});
  if (v > 1) base.options.insert({{"schedule", "interleaved"}, {"v", std::to_string(v)}});
  base.model.layers = mesh.pp * v;
  AllAlike result{.set = workloads::strong(base, mesh), .classes = {}, .costs = {}};
  result.classes = classes_of(result.set);
  for (const program::Outline& outline : result.classes.outline.outlines) {
    auto& table = result.costs.tables.emplace_back();
    for (const program::OutlineOp& op : outline.ops) {
      const std::int64_t other = program::communicates(op.kind) ? 10'000 : 100;
      table.emplace_back(op.flop > 0 ? static_cast<std::int64_t>(op.flop / 1000) : other);
    }
  }
  result.costs.table_of_rank = result.classes.outline.outline_of_rank;
  return result;
}

std::vector<double> play(const AllAlike& ranks, const Noise& noise, int node_ranks, int steps) {
  return play_each_rank(ranks.set, ranks.classes, ranks.costs, noise,
                        packed(ranks.set.mesh.size(), node_ranks), steps, 3);
}

double seconds(const AllAlike& ranks) {
  return play_classes(ranks.classes, ranks.costs, {}, Record::steps).seconds;
}

double expected(const AllAlike& ranks, const Noise& noise, int node_ranks) {
  return expected_delay(ranks.set, ranks.classes, ranks.costs, noise,
                        packed(ranks.set.mesh.size(), node_ranks));
}

TEST(EachRank, WithoutNoiseIsTheStepOfTheClasses) {
  const AllAlike ranks = pipeline({.tp = 2, .dp = 4, .pp = 4}, 8);
  for (const double step : play(ranks, {}, 8, 2)) EXPECT_NEAR(step, seconds(ranks), 1e-12);
  EXPECT_EQ(expected(data_parallel(64), {}, 8), 0);
}

// 12 ms of compute by standing factors: all wait for the slowest of four, 12 x 1.25 + 1 ms; the
// others wait 12 x (1.25 - own factor).
TEST(EachRank, StandingFactorsMakeAllWaitForTheSlowest) {
  const Noise noise{.standing = {1.0, 0.9, 1.25, 0.85}};
  const std::vector<double> steps = play(data_parallel(4), noise, 4, 3);
  ASSERT_EQ(steps.size(), 3U);
  for (const double step : steps) EXPECT_NEAR(step, 16e-3, 1e-9);
  EXPECT_NEAR(expected(data_parallel(4), noise, 4), 12e-3 * 0.25, 12e-3 * 0.002);
  // Eight ranks have each of them twice.
  for (const double step : play(data_parallel(8), noise, 4, 3)) {
    EXPECT_NEAR(step, 16e-3, 1e-9);
  }
}

// The same plays op by op: every rank with a table of its own, each compute op with a draw of a
// library's generator, by simulate().
TEST(EachRank, AgreesWithDrawsOfEveryOp) {
  const AllAlike ranks = tensor_parallel({.tp = 4, .dp = 8});
  const Noise noise{.op = 0.05, .rank = 0.02, .node = 0.03};
  std::mt19937_64 random{11};
  std::normal_distribution<double> normal;
  std::vector<double> steps;
  program::OutlineSet whole{.mesh = ranks.set.mesh,
                            .outlines = ranks.classes.outline.outlines,
                            .outline_of_rank = ranks.set.program_of_rank};
  for (int step = 0; step < 300; ++step) {
    Costs costs;
    double node = 0;
    for (int rank = 0; rank < 32; ++rank) {
      if (rank % 8 == 0) node = noise.node * normal(random);
      const double factor = 1 + node + noise.rank * normal(random);
      auto& table = costs.tables.emplace_back(ranks.costs.tables[0]);
      for (std::size_t op = 0; op < table.size(); ++op) {
        if (!program::computes(whole.outlines[0].ops[op].kind)) continue;
        const double time =
            static_cast<double>(table[op].value()) * (factor + noise.op * normal(random));
        table[op] = units::Nanoseconds{std::llround(time)};
      }
      costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    }
    const auto played = simulate(whole, costs);
    steps.push_back(static_cast<double>(played[0].ranks[0].end.value()) * 1e-9);
  }
  // Both means have a standard error of some 0.3 ms / sqrt 300.
  EXPECT_NEAR(mean(play(ranks, noise, 8, 300)), mean(steps), 0.1e-3);
  EXPECT_GT(mean(steps), seconds(ranks) + 1e-3);
}

const std::vector<double> skewed{-0.02,  -0.018, -0.015, -0.012, -0.01, -0.008, -0.005,
                                 -0.003, 0.0,    0.002,  0.005,  0.01,  0.02,   0.055};

struct Agreement {
  const char* what;
  Noise noise;
  double share;
  int node_ranks = 8;
};

/// Both say how much longer a step is, within a share of it; plays as many steps as make this
/// number of plays of a rank, within bounds.
void expect_agreement(const AllAlike& ranks, int plays, const std::vector<Agreement>& cases) {
  for (const auto& [what, noise, share, node_ranks] : cases) {
    const int steps = std::clamp(plays / ranks.set.mesh.size(), plays / 250, 8'000);
    const double played = mean(play(ranks, noise, node_ranks, steps)) - seconds(ranks);
    const double said = expected(ranks, noise, node_ranks);
    EXPECT_NEAR(said, played, share * played) << what << " on " << mesh::to_string(ranks.set.mesh);
    EXPECT_GT(said, 0) << what;
  }
}

TEST(ExpectedDelay, AgreesWithEveryRank) {
  constexpr int many = 100'000;
  for (const int ranks : {8, 64, 512}) {
    expect_agreement(data_parallel(ranks), many,
                     {{"rank", {.rank = 0.03}, 0.05},
                      {"node", {.node = 0.03}, 0.08, 4},
                      {"both", {.rank = 0.02, .node = 0.02}, 0.06},
                      {"op", {.op = 0.05}, 0.08},
                      {"draws", {.draws = skewed}, 0.05},
                      {"stragglers", {.draws = straggling_draws(0.01, 0.02, 0.2)}, 0.05},
                      {"standing", {.rank = 0.01, .standing = {0.98, 1.0, 1.01, 1.03}}, 0.05}});
  }
  for (const mesh::Shape mesh : {mesh::Shape{.tp = 8}, {.tp = 8, .dp = 8}, {.tp = 8, .dp = 64}}) {
    expect_agreement(tensor_parallel(mesh), many,
                     {{"rank", {.rank = 0.03}, 0.06},
                      {"op", {.op = 0.05}, 0.08},
                      {"all", {.op = 0.05, .rank = 0.02, .node = 0.02}, 0.08}});
  }
  for (const mesh::Shape mesh :
       {mesh::Shape{.pp = 4}, {.dp = 16, .pp = 4}, {.tp = 2, .dp = 8, .pp = 8}}) {
    for (const int microbatches : {8, 32}) {
      SCOPED_TRACE(microbatches);
      expect_agreement(pipeline(mesh, microbatches), every_case() ? many : many / 4,
                       {{"rank", {.rank = 0.03}, 0.15},
                        {"op", {.op = 0.05}, 0.25},
                        {"both", {.rank = 0.02, .node = 0.02}, 0.15}});
    }
  }
}

// A stage of an interleaved pipeline has slack: one that is a little late delays nobody.
TEST(ExpectedDelay, OfInterleavedStagesAgreesWithEveryRank) {
  for (const mesh::Shape mesh : {mesh::Shape{.dp = 4, .pp = 4}, {.tp = 4, .dp = 2, .pp = 4}}) {
    expect_agreement(
        pipeline(mesh, 8, 6), 25'000,
        {{"rank", {.rank = 0.006}, 0.35}, {"both", {.rank = 0.006, .node = 0.03}, 0.35, 4}});
  }
}

// One stage has twice the layers of the others, and takes the time of the step by itself.
TEST(ExpectedDelay, OfAnUnevenPipelineAgreesWithEveryRank) {
  AllAlike ranks = pipeline({.dp = 4, .pp = 4}, 16);
  for (std::size_t i = 0; i < ranks.costs.tables[0].size(); ++i) {
    units::Nanoseconds& time = ranks.costs.tables[0][i];
    if (program::computes(ranks.classes.outline.outlines[0].ops[i].kind)) time = 2 * time;
  }
  expect_agreement(ranks, 100'000,
                   {{"rank", {.rank = 0.03}, 0.15}, {"node", {.node = 0.03}, 0.6, 4}});
}

// The noise of ops over four times as many GEMMs is twice as large; two shares of a long step,
// extended in proportion, have its delay all the same.
TEST(ExpectedDelay, OfSingleOpsIsExtendedFromSharesOfALongStep) {
  constexpr int all = 48;
  const auto delay = [](std::size_t gemms, double share) {
    const AllAlike ranks = data_parallel(64, gemms);
    return expected_delay(ranks.set, ranks.classes, ranks.costs, {.op = 0.05}, packed(64, 8),
                          share);
  };
  const double few = delay(8, 8.0 / all), more = delay(12, 12.0 / all), whole = delay(all, 1);
  EXPECT_NEAR(more + (all - 12) / 4.0 * (more - few), whole, 0.15 * whole);
  EXPECT_NEAR(delay(12, 1), whole / 2, 0.1 * whole);
}

// One rank: on average nothing. Two: the larger of two draws, 3% x 12 ms / sqrt pi; on one node
// they deviate together, on two apart.
TEST(ExpectedDelay, OfFewRanksIsThatOfTheLargestDraw) {
  const double larger = 0.36e-3 / std::sqrt(std::acos(-1.0));
  EXPECT_NEAR(expected(data_parallel(1), {.rank = 0.03}, 8), 0, 0.002e-3);
  EXPECT_NEAR(expected(data_parallel(2), {.rank = 0.03}, 8), larger, 0.004e-3);
  EXPECT_NEAR(expected(data_parallel(2), {.node = 0.03}, 2), 0, 0.002e-3);
  EXPECT_NEAR(expected(data_parallel(2), {.node = 0.03}, 1), larger, 0.004e-3);
}

// In 1 - 0.9^4 of the steps at least one of four ranks straggles; then all wait 20% of 12 ms.
TEST(ExpectedDelay, OfStragglersIsTheirSizeWhereThereIsOne) {
  const Noise noise{.draws = straggling_draws(0, 0.1, 0.2)};
  EXPECT_NEAR(expected(data_parallel(4), noise, 8), 2.4e-3 * (1 - std::pow(0.9, 4)), 0.02e-3);
}

TEST(Deviations, MeasuredOnesAreDealtOutEvenly) {
  const Noise noise{.standing = {0.9, 1.0, 1.1}};
  const std::vector<double> drawn = standing_deviations(noise, 15, 5);
  EXPECT_DOUBLE_EQ(drawn[0], 0.9 - 1);
  EXPECT_DOUBLE_EQ(drawn[2], 1.1 - 1);
  for (int round = 1; round < 5; ++round) {
    double sum = 0, most = -1;
    for (const double deviation : std::span{drawn}.subspan(3 * at(round), 3)) {
      sum += deviation;
      most = std::max(most, deviation);
    }
    EXPECT_NEAR(sum, 0, 1e-12);
    EXPECT_NEAR(most, 0.1, 1e-12);
  }
}

TEST(Deviations, QuantilesOfMeasuredDraws) {
  const std::vector<double> draws{-0.3, 0, 0.1, 0.2};
  for (const auto& [at, value] :
       {std::pair{0.001, -0.3}, {0.125, -0.3}, {0.25, -0.15}, {0.5, 0.05}, {0.999, 0.2}}) {
    EXPECT_DOUBLE_EQ(quantile(draws, at), value);
  }
}

}  // namespace
}  // namespace isoscale::simulate
