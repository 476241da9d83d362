// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_and_link_times.hpp"
#include "analysis/breakdown/time_attribution.hpp"
#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "analysis_test.hpp"

/// Splits of one step of one rank that the tests of the breakdown do not reach, and costs of steps.
namespace isoscale::analysis {
namespace {

struct Result {
  breakdown::RankStep step;
  std::vector<breakdown::OpShare> shares;
};

std::vector<Nanoseconds> nanoseconds(const std::vector<int>& times) {
  return mapped(times, [](int time) { return Nanoseconds{time}; });
}

Result split_of(const Script& script, const timeline::StepTrace& trace,
                const std::vector<int>& waits = {}) {
  Result result;
  result.step = breakdown::split(script.outline(), trace, nanoseconds(waits), false, result.shares);
  return result;
}

/// Nanoseconds of an op: its own, waiting, hidden, hidden while data moved, and the gap before it.
struct Share {
  int own = 0, waiting = 0, hidden = 0, moving = 0, gap = 0;
};
/// Nanoseconds of a rank's step.
struct Expected {
  int compute = 0, copies = 0, transfer = 0, wait = 0, late = 0, hidden = 0, moving = 0, gap = 0;
  int unaccounted = 0;
};

void expect_step(const Result& found, const Expected& expected, const std::vector<Share>& shares) {
  const breakdown::RankStep& at = found.step;
  EXPECT_THAT((std::array{at.compute, at.copies, at.transfer, at.wait, at.late, at.hidden,
                          at.hidden_transfer, at.gap, at.unaccounted}),
              ElementsAreArray(nanoseconds({expected.compute, expected.copies, expected.transfer,
                                            expected.wait, expected.late, expected.hidden,
                                            expected.moving, expected.gap, expected.unaccounted})));
  ASSERT_EQ(found.shares.size(), shares.size());
  for (std::size_t op = 0; op < shares.size(); ++op) {
    const auto& [own, waiting, hidden, moving, gap] = shares[op];
    const breakdown::OpShare& share = found.shares[op];
    EXPECT_THAT(
        (std::array{share.own, share.waiting, share.hidden, share.hidden_transfer, share.gap}),
        ElementsAreArray(nanoseconds({own, waiting, hidden, moving, gap})))
        << op;
  }
}

/// `length` nanoseconds from `begin` on are the longest stretch of what is not accounted for.
void expect_unexplained(const breakdown::RankStep& step, int all, int begin, int length) {
  EXPECT_THAT((std::array{step.unaccounted, step.largest.begin, step.largest.length}),
              ElementsAreArray(nanoseconds({all, begin, length})));
}

TEST(RankStep, GivesEachMomentToTheFirstClaimAndThenTheLowestStream) {
  // Stream 0 waits from 0 to 60 in an exchange, stream 1 copies from 10 to 30, stream 2 computes
  // from 20 to 40, stream 3 transfers from 35 to 50. Hidden are 30 of the exchange, and 5 of the
  // all-reduce among these.
  expect_step(split_of(Script{}.send(1, 0).copy(1).compute(2).all_reduce(Axis::dp, 3),
                       trace(0, {0, 60}, {{0, 60}, {10, 30}, {20, 40}, {35, 50}}), {60, 0, 0, 0}),
              {.compute = 20, .copies = 10, .transfer = 10, .late = 20, .hidden = 30, .moving = 5},
              {{.waiting = 20, .hidden = 30},
               {.own = 10},
               {.own = 20},
               {.own = 10, .hidden = 5, .moving = 5}});
  // A collective whose last member is missing goes before an exchange whose partner is.
  expect_step(split_of(Script{}.send(1, 0).all_reduce(Axis::dp, 1),
                       trace(0, {0, 40}, {{0, 40}, {10, 30}}), {40, 20}),
              {.wait = 20, .late = 20}, {{.waiting = 20}, {.waiting = 20}});
  // Stream 2 computes until stream 1 begins, and stream 1 until stream 0 begins.
  expect_step(split_of(Script{}.compute(2).compute(1).compute(0),
                       trace(0, {0, 50}, {{0, 30}, {10, 40}, {20, 50}})),
              {.compute = 50}, {{.own = 10}, {.own = 10}, {.own = 30}});
}

TEST(RankStepGap, IsOfTheOpThatBeginsNext) {
  // Nothing runs from 0 to 10, from 30 to 45 and from 60 to 80; the op that begins next is on
  // another stream each time, and was issued in another order. Of two that begin at once it is the
  // one on the lowest stream.
  expect_step(split_of(Script{}.compute(2).compute(0).copy(1).all_reduce(Axis::dp, 2),
                       trace(0, {0, 90}, {{45, 60}, {10, 30}, {80, 85}, {80, 90}})),
              {.compute = 35, .copies = 5, .transfer = 5, .hidden = 5, .moving = 5, .gap = 45},
              {{.own = 15, .gap = 15},
               {.own = 20, .gap = 10},
               {.own = 5, .gap = 20},
               {.own = 5, .hidden = 5, .moving = 5}});
  // The only op begins after the step's end: 30 ns of gap are in the step.
  expect_step(split_of(Script{}.compute(), trace(0, {0, 30}, {{50, 60}})),
              {.compute = 10, .gap = 30, .unaccounted = 10}, {{.own = 10, .gap = 30}});
  // It comes before ops that take no time, too.
  expect_step(split_of(Script{}.compute().copy().all_reduce(Axis::dp).compute(1),
                       trace(0, {0, 60}, {{0, 20}, {30, 30}, {45, 45}, {25, 25}})),
              {.compute = 20, .gap = 25, .unaccounted = 15},
              {{.own = 20}, {.gap = 5}, {.gap = 15}, {.gap = 5}});
}

TEST(RankStepOther, IsTheTailAndWhatContradicts) {
  expect_unexplained(split_of(Script{}, trace(0, {5, 25}, {})).step, 20, 5, 20);
  // Ops 1 and 2 begin 5 and 20 ns too early; the tail is 10 ns.
  const auto early = split_of(Script{}.compute().compute().compute(),
                              trace(0, {0, 100}, {{0, 30}, {25, 60}, {40, 90}}))
                         .step;
  expect_unexplained(early, 35, 40, 20);
  EXPECT_EQ(early.largest.after, 1U);
  // Streams 1 and 2 both claim to have begun before the op that they wait for ended.
  const auto both = split_of(Script{}.compute(0).compute(1).after(0, 1).copy(2).after(0, 1),
                             trace(0, {0, 100}, {{0, 50}, {30, 100}, {40, 80}}))
                        .step;
  expect_unexplained(both, 20, 30, 20);
  EXPECT_EQ(both.compute, Nanoseconds{80});
}

TEST(RankStep, CountsEachMomentOnceWhateverTheSpans) {
  // Random steps on three streams: the parts and what is unaccounted for are the step, and the
  // shares of ops are the parts.
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 draw{seed};
    Script script;
    Spans spans;
    std::vector<int> waits;
    std::array ended{0, 0, 0};
    int end = 0;
    for (int op = 0; op < 12; ++op) {
      const auto stream = static_cast<program::StreamId>(draw() % 3);
      const auto kind = draw() % 4;
      if (kind == 0) script.compute(stream);
      if (kind == 1) script.copy(stream);
      if (kind == 2) script.all_reduce(Axis::dp, stream);
      if (kind == 3) script.send(1, stream);
      const int start = ended[stream] + static_cast<int>(draw() % 10);
      const int length = static_cast<int>(draw() % 30);
      spans.emplace_back(start, start + length);
      waits.push_back(kind >= 2 ? static_cast<int>(draw() % 31) % (length + 1) : 0);
      ended[stream] = start + length;
      end = std::max(end, start + length);
    }
    const auto [step, shares] = split_of(script, trace(0, {0, end + 7}, spans), waits);
    const Nanoseconds useful = step.compute + step.copies + step.transfer;
    EXPECT_EQ(useful + step.wait + step.late + step.gap + step.unaccounted, step.step) << seed;
    EXPECT_EQ(step.unaccounted, Nanoseconds{7}) << seed;
    Nanoseconds own, waiting, gap;
    for (const breakdown::OpShare& share : shares) {
      own += share.own;
      waiting += share.waiting;
      gap += share.gap;
    }
    EXPECT_THAT((std::array{own, waiting, gap}),
                ElementsAre(useful, step.wait + step.late, step.gap))
        << seed;
  }
}

results::PointData two_ranks() {
  const Script script = Script{}.compute().copy(1).compute().all_reduce(Axis::dp, 1);
  return samples::point({.dp = 2}, {script, script},
                        step({0, 100}, {{{0, 30}, {10, 20}, {30, 60}, {60, 100}},
                                        {{0, 50}, {10, 30}, {50, 60}, {60, 100}}}));
}

TEST(OpTimes, AreMeansOverRanksAndTheTracedStepsThatCount) {
  results::PointData point = two_ranks();
  const auto about = [](double time) { return DoubleNear(time, 1e-18); };
  EXPECT_THAT(breakdown::op_times(point),
              UnorderedElementsAre(Pair("gemm", about(60e-9)), Pair("copy", about(15e-9)),
                                   Pair("all_reduce", about(40e-9))));
  point.traces.push_back(point.traces.front());
  for (timeline::StepTrace& rank : point.traces.back().ranks) {
    for (timeline::Span& span : rank.spans) span.end = span.start;
  }
  EXPECT_THAT(breakdown::op_times(point).at("gemm"), about(30e-9));
  // Traces that are damaged do not count, nor do steps of warm-up.
  for (timeline::StepTrace& rank : point.traces.back().ranks) rank.spans.clear();
  EXPECT_THAT(breakdown::op_times(point).at("gemm"), about(60e-9));
  point.warm_up_steps = 1;
  EXPECT_TRUE(breakdown::op_times(point).empty());
  point.warm_up_steps = 0;
  point.traces.clear();
  EXPECT_TRUE(breakdown::op_times(point).empty());
}

/// The first GEMM takes 30 and 50 ns, the second 30 and 10; 1e3 and 4e3 FLOP.
TEST(GemmTimes, AreMeansOverRanksByShape) {
  results::PointData point = two_ranks();
  EXPECT_TRUE(breakdown::gemm_times(point).empty()) << "an old file";
  for (program::Outline& outline : point.outline.outlines) {
    outline.ops[0].gemm = {.m = 10, .n = 10, .k = 5, .batch = 1};
    outline.ops[0].flop = 1e3;
    outline.ops[2].gemm = {.m = 20, .n = 10, .k = 10, .batch = 1};
    outline.ops[2].flop = 4e3;
  }
  const std::vector<breakdown::GemmTime> times = breakdown::gemm_times(point);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].shape.k, 5U);
  EXPECT_NEAR(times[0].seconds, 40e-9, 1e-18);
  EXPECT_NEAR(times[1].seconds, 20e-9, 1e-18);
  EXPECT_DOUBLE_EQ(times[1].flop, 4e3);
  for (program::Outline& outline : point.outline.outlines) {
    outline.ops[2].gemm = outline.ops[0].gemm;
  }
  ASSERT_EQ(breakdown::gemm_times(point).size(), 1U);
  EXPECT_DOUBLE_EQ(breakdown::gemm_times(point)[0].calls, 2);
  EXPECT_DOUBLE_EQ(breakdown::gemm_times(point)[0].flop, 5e3);
}

constexpr double ns = 1e-9;
constexpr double tolerance = 1e-15;  // of a second: 1e-6 ns
constexpr double rounding = 1e-12;

/// The costs of a point, which sum to its step.
efficiency::StepCosts costs_of(const results::PointData& point) {
  const breakdown::BreakdownResult parts = breakdown::breakdown(point);
  const auto costs = efficiency::step_costs(point, parts);
  if (!costs) throw std::runtime_error("no costs: " + parts.missing);
  EXPECT_NEAR(sum_of(*costs), parts.mean->step, 1e-12 * parts.mean->step);
  if (costs->gemm_alone) {
    EXPECT_NEAR(*costs->gemm_alone + *costs->gemm_overlap, costs->gemm, 1e-12 * costs->gemm);
  }
  if (costs->imbalance) {
    EXPECT_NEAR(*costs->imbalance + *costs->noise, costs->waiting, 1e-12 * parts.mean->step);
  }
  return *costs;
}

/// GEMM, all-reduce along dp on the same stream, update.
Script training() { return Script{}.compute().all_reduce(Axis::dp).op(program::OpKind::update); }

/// Two steps of 100 ns on 4 ranks, each with a GEMM of gemms[rank].
results::PointData four_ranks(const std::vector<int>& gemms) {
  results::PointData point = alike({.dp = 4}, training());
  const int last = std::ranges::max(gemms);
  std::vector<Spans> spans;
  for (const int own : gemms) spans.push_back({{0, own}, {own, last + 10}, {last + 10, last + 20}});
  for (int i = 0; i < 2; ++i) add_step(point, step({0, 100}, spans));
  return point;
}

TEST(StepCosts, AreThePartsOfTheStep) {
  results::PointData point = four_ranks({60, 60, 60, 60});
  // No op ran beside the GEMMs, so their times alone say nothing.
  for (int rank = 0; rank < 4; ++rank) point.solo_times.push_back(solo(rank, {55, 0, 10}));
  const efficiency::StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 60 * ns, tolerance);
  EXPECT_NEAR(costs.gemm_alone.value(), 60 * ns, tolerance);
  EXPECT_NEAR(costs.gemm_overlap.value(), 0, tolerance);
  EXPECT_NEAR(costs.other_compute, 10 * ns, tolerance);
  ASSERT_EQ(costs.transfer.size(), 1U);
  EXPECT_NEAR(costs.transfer.at(Axis::dp), 10 * ns, tolerance);
  EXPECT_NEAR(costs.waiting, 0, tolerance);
  EXPECT_NEAR(costs.other, 20 * ns, tolerance);
}

TEST(StepCosts, CallOneSlowRankAmongLikeOnesImbalance) {
  // Whichever it is takes 20 ns longer, also alone: shapes are the same, so it is not they.
  for (std::size_t slow = 0; slow < 4; ++slow) {
    std::vector<int> gemms(4, 50);
    gemms[slow] = 70;
    results::PointData point = four_ranks(gemms);
    results::OpSums sums;
    for (const int gemm : gemms) {
      point.solo_times.push_back(solo(static_cast<int>(sums.gemm.size()), {gemm, 0, 10}));
      sums.gemm.push_back(gemm * ns);
    }
    sums.other_compute = sums.copies = sums.communication = {0, 0, 0, 0};
    for (sums.step = 0; sums.step < 6; ++sums.step) point.op_sums.push_back(sums);
    const efficiency::StepCosts costs = costs_of(point);
    EXPECT_NEAR(costs.gemm, 50 * ns, tolerance);
    EXPECT_NEAR(*costs.gemm_alone, 50 * ns, tolerance);
    EXPECT_NEAR(*costs.gemm_overlap, 0, tolerance);
    // Three ranks wait 20 ns, and the fourth computes 20 ns more.
    EXPECT_NEAR(costs.imbalance.value(), 20 * ns, tolerance);
    EXPECT_NEAR(*costs.noise, 0, tolerance);
  }
}

TEST(StepCosts, KeepProgramsThatDifferApart) {
  // Two programs of two ranks each: that one has more to do is not imbalance of its ranks.
  results::PointData point = samples::point(
      {.dp = 4}, {Script{}.compute(), Script{}.compute().compute(), {}, {}},
      step({0, 80}, {{{0, 40}}, {{0, 40}}, {{0, 40}, {40, 80}}, {{0, 40}, {40, 80}}}));
  point.outline.outline_of_rank = {0, 0, 1, 1};
  point.outline.outlines.resize(2);
  const efficiency::StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 60 * ns, tolerance);
  EXPECT_NEAR(costs.waiting, 0, tolerance);
  EXPECT_NEAR(costs.other, 20 * ns, tolerance);
}

TEST(StepCosts, FindWhatOverlapCostsGemmsBySoloTimesOfAllTracedRanks) {
  // Two steps in which the all-reduce on the second stream slows the second GEMM from 30 to 45 ns.
  results::PointData point =
      alike({.dp = 2}, Script{}.compute(0).all_reduce(Axis::dp, 1).compute(0));
  const Spans spans{{0, 30}, {30, 70}, {30, 75}};
  for (int i = 0; i < 2; ++i) add_step(point, step({0, 75}, {spans, spans}));
  EXPECT_FALSE(costs_of(point).gemm_alone);
  point.solo_times.push_back(solo(0, {30, 0, 30}));
  EXPECT_FALSE(costs_of(point).gemm_alone || costs_of(point).gemm_overlap);
  point.solo_times.push_back(solo(1, {30, 0}));  // of another program
  EXPECT_FALSE(costs_of(point).gemm_alone);
  point.solo_times.back() = solo(1, {30, 0, 30});
  const efficiency::StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm_alone.value(), 60 * ns, tolerance);
  EXPECT_NEAR(costs.gemm_overlap.value(), 15 * ns, tolerance);
  EXPECT_NEAR(costs.transfer.at(Axis::dp), 0, tolerance);  // hidden
}

TEST(StepCosts, CountTimeInWhichTwoStreamsComputeOnce) {
  const efficiency::StepCosts costs = costs_of(samples::point(
      {}, {Script{}.compute(0).op(program::OpKind::add, 1)}, step({0, 80}, {{{0, 60}, {40, 80}}})));
  EXPECT_NEAR(costs.gemm, 60 * ns, tolerance);
  EXPECT_NEAR(costs.other_compute, 20 * ns, tolerance);
}

TEST(StepCosts, OfTwoLikeRanksTheFasterIsTypical) {
  results::PointData point = alike({.dp = 2}, training());
  for (int i = 0; i < 2; ++i) {
    add_step(point,
             step({0, 100}, {{{0, 40}, {40, 80}, {80, 100}}, {{0, 70}, {70, 80}, {80, 100}}}));
  }
  const efficiency::StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 40 * ns, tolerance);
  EXPECT_NEAR(costs.waiting, (30 + 30) / 2 * ns, tolerance);  // one waits, one computes 30 more
}

TEST(StepCosts, CallWhatOpsTakeNowAndThenNoise) {
  const auto costs = [](const std::vector<int>& gemms) {
    results::PointData point = alike({}, Script{}.compute());
    for (const int gemm : gemms) add_step(point, step({0, gemm}, {{{0, gemm}}}));
    return costs_of(point);
  };
  // The GEMM takes 40 ns but for one step of three; of two steps neither is the usual one.
  EXPECT_NEAR(costs({40, 70, 40}).gemm, 40 * ns, tolerance);
  EXPECT_NEAR(costs({40, 70, 40}).noise.value(), 10 * ns, tolerance);
  EXPECT_NEAR(costs({40, 70}).gemm, 55 * ns, tolerance);
  EXPECT_NEAR(costs({40, 70}).noise.value(), 0, tolerance);
}

TEST(StepCosts, CountAdviceOnMemoryAsCopies) {
  results::PointData point = alike({}, Script{}.compute().op(program::OpKind::advise));
  for (const int end : {60, 60, 90}) add_step(point, step({0, end}, {{{0, 40}, {40, end}}}));
  const efficiency::StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.copies, 30 * ns, tolerance);
  EXPECT_NEAR(costs.other_compute, 0, tolerance);
  EXPECT_NEAR(costs.noise.value(), 0, tolerance);
  const breakdown::BreakdownResult parts = breakdown::breakdown(point);
  EXPECT_NEAR(parts.by_phase.begin()->second.copies, 30 * ns, tolerance);
}

TEST(StepCosts, DoNotDivideTheWaitingOfOneTracedStepAndAreAbsentWithoutAny) {
  results::PointData point = four_ranks({50, 50, 70, 50});
  point.traces.resize(1);
  const efficiency::StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.waiting, 20 * ns, tolerance);
  EXPECT_FALSE(costs.imbalance || costs.noise);
  point.traces.clear();
  EXPECT_FALSE(efficiency::step_costs(point, breakdown::breakdown(point)));
}

/// Ranks 0 and 1 are useful for 6 (5 of them compute) and 8 of 10 seconds.
breakdown::BreakdownResult useful_ranks() {
  const breakdown::Breakdown first{.compute = 5, .copies = 1, .wait = 4, .step = 10};
  const breakdown::Breakdown second{.compute = 8, .transfer = 2, .step = 10};
  breakdown::BreakdownResult result;
  result.mean =
      breakdown::Breakdown{.compute = 6.5, .copies = 0.5, .transfer = 1, .wait = 2, .step = 10};
  result.ranks = {0, 1};
  result.of_rank = {first, second};
  result.free_network_step = 9;
  return result;
}

results::PointData point_of(int ranks, double flop_of_rank) {
  results::PointData point;
  point.ranks = ranks;
  point.work_per_step = 100;
  point.flop_of_rank.assign(static_cast<std::size_t>(ranks), flop_of_rank);
  return point;
}

TEST(Pop, IsATreeOfProducts) {
  const auto result = efficiency::pop(point_of(2, 50), useful_ranks(),
                                      efficiency::UsefulWork{.useful = 7, .work = 100, .flop = 80});
  EXPECT_NEAR(result.value().load_balance, 7.0 / 8, rounding);  // mean of 6 and 8 over 8
  EXPECT_NEAR(result->communication, 8.0 / 10, rounding);       // 8 of 10 seconds
  EXPECT_NEAR(*result->serialisation, 8.0 / 9, rounding);
  EXPECT_NEAR(*result->transfer, 9.0 / 10, rounding);
  EXPECT_NEAR(result->parallel, 0.7, rounding);
  EXPECT_NEAR(*result->computation_scalability, 7.0 / 14, rounding);
  EXPECT_NEAR(*result->work_scalability, 80.0 / 100, rounding);  // 20% of the FLOP are new
  EXPECT_NEAR(*result->speed_scalability, 0.625, rounding);      // 80/7 and 100/14 FLOP a second
  EXPECT_NEAR(*result->global, 0.35, rounding);
}

TEST(Pop, ComparesUsefulTimeByUnitOfWork) {
  // Strong scaling: one rank works 12 s on the same batch that two ranks spend 14 s on together.
  // Weak scaling: one rank works 6 s on half of what two ranks spend 14 s on.
  for (const efficiency::UsefulWork& base :
       {efficiency::UsefulWork{.useful = 12, .work = 100, .flop = 100},
        efficiency::UsefulWork{.useful = 6, .work = 50, .flop = 50}}) {
    const auto result = efficiency::pop(point_of(2, 50), useful_ranks(), base);
    EXPECT_NEAR(*result->computation_scalability, 12.0 / 14, rounding);
    EXPECT_NEAR(*result->work_scalability, 1, rounding);
    EXPECT_NEAR(*result->speed_scalability, 12.0 / 14, rounding);
    EXPECT_NEAR(*result->global, 0.6, rounding);
  }
}

TEST(Pop, HasNoFactorThatItsDataDoNotTell) {
  breakdown::BreakdownResult parts = useful_ranks();
  parts.free_network_step.reset();
  const auto alone = efficiency::pop(point_of(2, 50), parts, std::nullopt);
  EXPECT_NEAR(alone.value().parallel, 0.7, rounding);
  EXPECT_NEAR(alone->communication, 0.8, rounding);
  EXPECT_FALSE(alone->serialisation || alone->transfer) << "no replay";
  EXPECT_FALSE(alone->computation_scalability || alone->work_scalability ||
               alone->speed_scalability || alone->global)
      << "no baseline";
  for (const auto& [mine, base] : {std::pair{0.0, 80.0}, {50.0, 0.0}}) {
    const auto result =
        efficiency::pop(point_of(2, mine), useful_ranks(),
                        efficiency::UsefulWork{.useful = 7, .work = 100, .flop = base});
    EXPECT_TRUE(result->global);
    EXPECT_FALSE(result->work_scalability || result->speed_scalability) << "no FLOP";
  }
}

TEST(Pop, OfRanksThatWereNotTracedNeedsTheirOpSums) {
  results::PointData point = point_of(4, 50);
  EXPECT_FALSE(efficiency::useful_work(point, useful_ranks()));
  EXPECT_FALSE(efficiency::pop(point, useful_ranks(), std::nullopt));
  for (std::uint32_t step = 0; step < 2; ++step) {
    point.op_sums.push_back({.step = step,
                             .gemm = {5, 6, 7, 3},
                             .other_compute = {1, 1, 0, 1},
                             .copies = {0, 1, 1, 0},
                             .communication = {9, 9, 9, 9}});
  }
  const auto useful = efficiency::useful_work(point, useful_ranks());
  EXPECT_NEAR(useful.value().useful, 6 + 8 + 8 + 4, rounding);
  EXPECT_DOUBLE_EQ(useful->flop, 200);
  const auto result = efficiency::pop(
      point, useful_ranks(), efficiency::UsefulWork{.useful = 13, .work = 100, .flop = 200});
  EXPECT_NEAR(result->load_balance, 6.5 / 8, rounding);
  EXPECT_NEAR(*result->computation_scalability, 0.5, rounding);
}

TEST(Pop, IsAbsentWithoutTracesOrUsefulTime) {
  EXPECT_FALSE(efficiency::pop(point_of(2, 50), {}, std::nullopt));
  EXPECT_FALSE(efficiency::useful_work(point_of(2, 50), {}));
  breakdown::BreakdownResult idle;
  idle.mean = breakdown::Breakdown{.gap = 10, .step = 10};
  idle.ranks = {0};
  idle.of_rank = {*idle.mean};
  EXPECT_FALSE(efficiency::pop(point_of(1, 50), idle, std::nullopt));
}

}  // namespace
}  // namespace isoscale::analysis
