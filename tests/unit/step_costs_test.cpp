// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/losses.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

constexpr double ns = 1e-9;
constexpr double tolerance = 1e-15;  // of a second: 1e-6 ns

/// The costs of a point, which sum to its step.
efficiency::StepCosts costs_of(const results::PointData& point) {
  const breakdown::BreakdownResult parts = breakdown::breakdown(point);
  const auto costs = efficiency::step_costs(point, parts);
  if (!costs) throw std::runtime_error("no costs: " + parts.missing);
  double sum = costs->gemm + costs->other_compute + costs->copies + costs->bubble + costs->waiting +
               costs->gap + costs->other;
  for (const auto& [axes, seconds] : costs->transfer) sum += seconds;
  EXPECT_NEAR(sum, parts.mean->step, 1e-12 * parts.mean->step);
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

constexpr double rounding = 1e-12;

/// Ranks 0 and 1 are useful for 6 (5 of them compute) and 8 of 10 seconds.
breakdown::BreakdownResult two_ranks() {
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

results::PointData point_of(int ranks, double work, double flop_of_rank) {
  results::PointData point;
  point.ranks = ranks;
  point.work_per_step = work;
  point.flop_of_rank.assign(static_cast<std::size_t>(ranks), flop_of_rank);
  return point;
}

TEST(Pop, IsATreeOfProducts) {
  const auto result = efficiency::pop(point_of(2, 100, 50), two_ranks(),
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
    const auto result = efficiency::pop(point_of(2, 100, 50), two_ranks(), base);
    EXPECT_NEAR(*result->computation_scalability, 12.0 / 14, rounding);
    EXPECT_NEAR(*result->work_scalability, 1, rounding);
    EXPECT_NEAR(*result->speed_scalability, 12.0 / 14, rounding);
    EXPECT_NEAR(*result->global, 0.6, rounding);
  }
}

TEST(Pop, HasNoFactorThatItsDataDoNotTell) {
  breakdown::BreakdownResult parts = two_ranks();
  parts.free_network_step.reset();
  const auto alone = efficiency::pop(point_of(2, 100, 50), parts, std::nullopt);
  EXPECT_NEAR(alone.value().parallel, 0.7, rounding);
  EXPECT_NEAR(alone->communication, 0.8, rounding);
  EXPECT_FALSE(alone->serialisation || alone->transfer) << "no replay";
  EXPECT_FALSE(alone->computation_scalability || alone->work_scalability ||
               alone->speed_scalability || alone->global)
      << "no baseline";
  for (const auto& [mine, base] : {std::pair{0.0, 80.0}, {50.0, 0.0}}) {
    const auto result =
        efficiency::pop(point_of(2, 100, mine), two_ranks(),
                        efficiency::UsefulWork{.useful = 7, .work = 100, .flop = base});
    EXPECT_TRUE(result->global);
    EXPECT_FALSE(result->work_scalability || result->speed_scalability) << "no FLOP";
  }
}

TEST(Pop, OfRanksThatWereNotTracedNeedsTheirOpSums) {
  results::PointData point = point_of(4, 100, 50);
  EXPECT_FALSE(efficiency::useful_work(point, two_ranks()));
  EXPECT_FALSE(efficiency::pop(point, two_ranks(), std::nullopt));
  for (std::uint32_t step = 0; step < 2; ++step) {
    point.op_sums.push_back({.step = step,
                             .gemm = {5, 6, 7, 3},
                             .other_compute = {1, 1, 0, 1},
                             .copies = {0, 1, 1, 0},
                             .communication = {9, 9, 9, 9}});
  }
  const auto useful = efficiency::useful_work(point, two_ranks());
  EXPECT_NEAR(useful.value().useful, 6 + 8 + 8 + 4, rounding);
  EXPECT_DOUBLE_EQ(useful->flop, 200);
  const auto result = efficiency::pop(
      point, two_ranks(), efficiency::UsefulWork{.useful = 13, .work = 100, .flop = 200});
  EXPECT_NEAR(result->load_balance, 6.5 / 8, rounding);
  EXPECT_NEAR(*result->computation_scalability, 0.5, rounding);
}

TEST(Pop, IsAbsentWithoutTracesOrUsefulTime) {
  EXPECT_FALSE(efficiency::pop(point_of(2, 100, 50), {}, std::nullopt));
  EXPECT_FALSE(efficiency::useful_work(point_of(2, 100, 50), {}));
  breakdown::BreakdownResult idle;
  idle.mean = breakdown::Breakdown{.gap = 10, .step = 10};
  idle.ranks = {0};
  idle.of_rank = {*idle.mean};
  EXPECT_FALSE(efficiency::pop(point_of(1, 100, 50), idle, std::nullopt));
}

}  // namespace
}  // namespace isoscale::analysis
