// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/matched_traces.hpp"
#include "analysis/breakdown/op_and_link_times.hpp"
#include "analysis/breakdown/replay_without_network.hpp"
#include "analysis_test.hpp"
#include "program/outline.hpp"
#include "simulate/simulate.hpp"
#include "stack_samples.hpp"
#include "tests/support/random_requests.hpp"
#include "tests/support/unit_costs.hpp"

/// Breakdowns of hand-made steps, and of simulated ones: their costs are the truth to find again.
namespace isoscale::analysis::breakdown {
namespace {

/// The test expects these values of one rank, in nanoseconds.
struct Expected {
  double compute = 0, copies = 0, transfer = 0, wait = 0, bubble = 0, gap = 0, other = 0;
  double step = 0, hidden = 0, moving = 0;
};

void expect_breakdown(const Breakdown& at, const Expected& wanted) {
  EXPECT_THAT(
      (std::array{at.compute * 1e9, at.copies * 1e9, at.transfer * 1e9, at.wait * 1e9,
                  at.bubble * 1e9, at.gap * 1e9, at.other * 1e9, at.step * 1e9,
                  at.hidden_communication * 1e9, at.hidden_transfer * 1e9}),
      Pointwise(DoubleNear(1e-6), std::array{wanted.compute, wanted.copies, wanted.transfer,
                                             wanted.wait, wanted.bubble, wanted.gap, wanted.other,
                                             wanted.step, wanted.hidden, wanted.moving}))
      << "compute, copies, transfer, wait, bubble, gap, other, step, hidden, moving; nanoseconds";
}

void expect_ranks(const BreakdownResult& result, const std::vector<Expected>& expected) {
  ASSERT_EQ(result.of_rank.size(), expected.size()) << result.missing;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("rank " + std::to_string(i));
    expect_breakdown(result.of_rank[i], expected[i]);
  }
}

/// A step; all ranks play the same script where there is one.
struct Case {
  const char* name;
  mesh::Shape shape;
  std::vector<Script> scripts;
  timeline::Timeline traced;
  std::vector<Expected> expected;
  std::string missing = "";  ///< what `missing` contains; "" = nothing is missing
};

results::PointData point_of(const mesh::Shape& shape, std::vector<Script> scripts,
                            const timeline::Timeline& traced) {
  scripts.resize(static_cast<std::size_t>(shape.size()), scripts.front());
  return point(shape, scripts, traced);
}

void expect_cases(const std::vector<Case>& cases) {
  for (const Case& at : cases) {
    SCOPED_TRACE(at.name);
    const auto result = breakdown(point_of(at.shape, at.scripts, at.traced));
    expect_ranks(result, at.expected);
    EXPECT_THAT(result.missing, HasSubstr(at.missing));
    EXPECT_EQ(result.missing.empty(), at.missing.empty()) << result.missing;
  }
}

/// Two stages, one microbatch, forward 10 and backward 20, transfers of 2: 60 ns of work one after
/// the other, so that each stage idles 30 even without a network.
std::vector<Script> two_stages() {
  return {Script{}.compute().send(1).receive(1).compute(),
          Script{}.receive(-1).compute().compute().send(-1)};
}

TEST(Breakdown, DividesTheStepOfEachRank) {
  const std::vector<Script> tp_dp_tp{
      Script{}.all_reduce(Axis::tp).all_reduce(Axis::dp).all_reduce(Axis::tp)};
  expect_cases({
      // The all-reduce runs from 40 (50) to 95; compute covers it up to 60, a copy from 70 to 75.
      // Until 50 it waits for rank 1.
      {"hidden and exposed transfers of data parallel ranks",
       {.dp = 2},
       {Script{}.compute(0).all_reduce(Axis::dp, 1).compute(0).copy(2)},
       step({0, 100},
            {{{0, 40}, {40, 95}, {40, 60}, {70, 75}}, {{0, 50}, {50, 95}, {50, 60}, {60, 60}}}),
       {{.compute = 60,
         .copies = 5,
         .transfer = 30,
         .other = 5,
         .step = 100,
         .hidden = 25,
         .moving = 15},
        {.compute = 60, .transfer = 35, .other = 5, .step = 100, .hidden = 10, .moving = 10}}},
      // Rank 0 waits on stream 0 until 60 while stream 1 transfers from 20 to 50, which goes first.
      {"collectives side by side",
       {.tp = 2},
       {Script{}.all_reduce(Axis::tp, 0).all_reduce(Axis::tp, 1)},
       step({0, 80}, {{{0, 80}, {10, 50}}, {{60, 80}, {20, 50}}}),
       {{.transfer = 50, .wait = 30, .step = 80}, {.transfer = 50, .gap = 30, .step = 80}}},
      // tp groups {0, 1} and {2, 3}, dp groups {0, 2} and {1, 3}. Only rank 1 is late for the
      // first, only rank 2 for the second, only rank 3 for the third.
      {"collectives are matched by group and order",
       {.tp = 2, .dp = 2},
       tp_dp_tp,
       step({0, 90}, {{{0, 20}, {20, 60}, {60, 70}},
                      {{10, 20}, {20, 30}, {30, 70}},
                      {{0, 20}, {40, 60}, {60, 90}},
                      {{0, 20}, {20, 30}, {80, 90}}}),
       {{.transfer = 40, .wait = 30, .other = 20, .step = 90},
        {.transfer = 30, .wait = 30, .gap = 10, .other = 20, .step = 90},
        {.transfer = 50, .wait = 20, .gap = 20, .step = 90},
        {.transfer = 40, .gap = 50, .step = 90}}},
      // Stage 1 does nothing for 8 ns before its backward, which no schedule asks for.
      {"a late partner in a pipeline",
       {.pp = 2},
       two_stages(),
       {{trace(0, {0, 72}, {{0, 10}, {10, 12}, {12, 52}, {52, 72}}),
         trace(1, {-20, 52}, {{-20, 12}, {12, 22}, {30, 50}, {50, 52}})}},
       {{.compute = 30, .transfer = 4, .wait = 8, .bubble = 30, .step = 72},
        {.compute = 30, .transfer = 4, .bubble = 30, .gap = 8, .step = 72}}},
      // Stage 1 is twice as slow in this step: its 60 ns are the schedule's doing for stage 0.
      {"a replay has the times of the step itself",
       {.pp = 2},
       two_stages(),
       {{trace(0, {0, 94}, {{0, 10}, {10, 12}, {12, 74}, {74, 94}}),
         trace(1, {-20, 74}, {{-20, 12}, {12, 32}, {32, 72}, {72, 74}})}},
       {{.compute = 30, .transfer = 4, .bubble = 60, .step = 94},
        {.compute = 60, .transfer = 4, .bubble = 30, .step = 94}}},
      // Free network: stage 0 needs 40 a step and stage 1 only 10, so stage 1 may idle 30.
      {"a pipeline hides exchanges behind compute",
       {.pp = 2},
       {Script{}.compute(0).send(1, 1).after(0, 1).compute(0),
        Script{}.receive(-1, 1).compute(0).after(1, 1)},
       step({0, 40}, {{{0, 10}, {10, 30}, {10, 40}}, {{5, 30}, {30, 40}}}),
       {{.compute = 40, .step = 40, .hidden = 20, .moving = 20},
        {.compute = 10, .transfer = 20, .bubble = 5, .gap = 5, .step = 40}}},
  });
}

TEST(PipelineReport, HasNoNegativeTimeOfAMessageThatEndsBeforeItsPartnerBegins) {
  // Stage 1 has received from 0 to 12 what stage 0 begins to send at 20. The gradient moves for 2.
  const results::PointData point =
      point_of({.pp = 2}, two_stages(),
               {{trace(0, {0, 72}, {{0, 10}, {20, 22}, {22, 52}, {52, 72}}),
                 trace(1, {0, 52}, {{0, 12}, {12, 22}, {30, 50}, {50, 52}})}});
  const auto report = pipeline_report(point, traced_steps(point));
  ASSERT_TRUE(report && report->hand_over);
  EXPECT_EQ(report->hand_over->messages, 2U);
  EXPECT_NEAR(report->hand_over->median, 1e-9, 1e-18);
  EXPECT_EQ(report->hand_over->p90, 0);
}

TEST(Breakdown, CountsNoHiddenTransferWhileAPostedMessageWaits) {
  // Rank 0 posts its receive at 0 and computes until 80; rank 1 sends from 60 to 70.
  const auto result = breakdown(
      point_of({.pp = 2}, {Script{}.receive(1, 1).compute(0), Script{}.compute(0).send(-1, 0)},
               step({0, 80}, {{{0, 70}, {0, 80}}, {{0, 60}, {60, 70}}})));
  expect_ranks(result, {{.compute = 80, .step = 80, .hidden = 70, .moving = 10},
                        {.compute = 60, .transfer = 10, .other = 10, .step = 80}});
  const Breakdown& on_pp = result.by_axes.at(Axis::pp);  // means over both ranks
  EXPECT_DOUBLE_EQ(on_pp.hidden_communication, 35e-9);
  EXPECT_DOUBLE_EQ(on_pp.hidden_transfer, 5e-9);
}

TEST(Breakdown, OfTensorParallelRanksSplitsWaitFromTransfer) {
  // Rank 1 comes to the all-reduce 20 ns after rank 0; both leave it at 80.
  const auto result = breakdown(
      point_of({.tp = 2}, {Script{}.compute().all_reduce(Axis::tp).compute()},
               step({0, 100}, {{{0, 30}, {30, 80}, {80, 100}}, {{0, 50}, {50, 80}, {80, 98}}})));
  expect_ranks(result, {{.compute = 50, .transfer = 30, .wait = 20, .step = 100},
                        {.compute = 68, .transfer = 30, .other = 2, .step = 100}});
  ASSERT_TRUE(result.mean);
  expect_breakdown(*result.mean,
                   {.compute = 59, .transfer = 30, .wait = 10, .other = 1, .step = 100});
  // The time that follows the last op is nobody's.
  EXPECT_DOUBLE_EQ(result.unaccounted, 0.01);
  ASSERT_TRUE(result.largest);
  EXPECT_EQ(result.largest->rank, 1);
  EXPECT_DOUBLE_EQ(result.largest->begin, 98e-9);
  EXPECT_DOUBLE_EQ(result.largest->length, 2e-9);
  EXPECT_EQ(result.largest->after, "gemm, setup");
}

TEST(Breakdown, AveragesOverStepsAndSkipsWarmUpAndDroppedOnes) {
  results::PointData point = point_of({}, {Script{}.compute()}, {});
  point.traces.clear();
  for (int i = 0; i < 5; ++i) add_step(point, step({0, 100}, {{{0, 10 * i}}}));
  point.warm_up_steps = 2;
  point.dropped = {0, 0, 0, 1, 0};
  expect_ranks(breakdown(point), {{.compute = 30, .other = 70, .step = 100}});
}

TEST(BreakdownOther, IsNegativeOutsideOfTheStepAndDoesNotCancelBetweenCauses) {
  const auto of = [](const Script& script, const Spans& spans) {
    return breakdown(point_of({}, {script}, step({0, 100}, {spans})));
  };
  const auto outside = of(Script{}.compute().copy(), {{-5, 60}, {60, 120}});
  expect_ranks(outside, {{.compute = 65, .copies = 60, .other = -25, .step = 100}});
  EXPECT_DOUBLE_EQ(outside.unaccounted, 0.25);
  const auto both = of(Script{}.compute().compute(), {{0, 60}, {50, 110}});
  expect_ranks(both, {{.compute = 100, .other = 0, .step = 100}});
  EXPECT_DOUBLE_EQ(both.unaccounted, 0.2);
  const auto reversed = of(Script{}.compute().compute(), {{0, 50}, {90, 60}});
  expect_ranks(reversed, {{.compute = 50, .other = 50, .step = 100}});
}

TEST(BreakdownOther, AcceptsOverlapOfStreamsUnlessTheyWereFolded) {
  auto point =
      point_of({}, {Script{}.compute(0).compute(1)}, step({0, 100}, {{{0, 60}, {50, 100}}}));
  expect_ranks(breakdown(point), {{.compute = 100, .step = 100}});
  point.folded = true;
  expect_ranks(breakdown(point), {{.compute = 90, .other = 10, .step = 100}});
}

TEST(BreakdownMissing, SaysWhatIsNotKnown) {
  expect_cases({
      {"ranks that were not traced",
       {.dp = 4},
       {Script{}.compute().all_reduce(Axis::dp)},
       {{trace(1, {0, 100}, {{0, 40}, {40, 100}})}},
       {{.compute = 40, .transfer = 60, .step = 100}},
       "0, 2-3"},
      {"nothing where ranks without trace are in other groups",
       {.tp = 2, .dp = 2},
       {Script{}.all_reduce(Axis::tp)},
       step({0, 9}, {{{0, 9}}, {{3, 9}}}),
       {{.transfer = 6, .wait = 3, .step = 9}, {.transfer = 6, .gap = 3, .step = 9}}},
      {"damaged traces",
       {.dp = 2},
       {Script{}.compute().compute()},
       step({0, 50}, {{{0, 20}, {20, 50}}, {{0, 9}}}),
       {{.compute = 50, .step = 50}},
       "rank 1 are damaged"},
      {"messages that no program sends",
       {.pp = 2},
       {Script{}.compute(), Script{}.receive(-1)},
       step({0, 50}, {{{0, 50}}, {{0, 50}}}),
       {{.compute = 50, .step = 50}, {.transfer = 50, .step = 50}},
       "messages of rank 1"},
      // The message has a partner, but another one has none: no replay comes to its end.
      {"bubbles where the replay is stuck, so that late partners are wait",
       {.pp = 2},
       {Script{}.compute().send(1), Script{}.receive(-1).receive(-1)},
       step({0, 50}, {{{0, 30}, {30, 40}}, {{0, 40}, {40, 50}}}),
       {{.compute = 30, .transfer = 10, .other = 10, .step = 50},
        {.transfer = 20, .wait = 30, .step = 50}},
       "bubble"},
  });
}

TEST(BreakdownMissing, NamesRanksWithoutAlignedClocksAndClocksThatAgreeTooLittle) {
  auto point = point_of({.dp = 3}, {Script{}.all_reduce(Axis::dp)},
                        {{trace(0, {0, 50}, {{0, 50}}), trace(1, {0, 50}, {{20, 50}}),
                          trace(2, {900, 950}, {{930, 950}})}});
  point.clock_error[2] = std::numeric_limits<double>::quiet_NaN();
  const auto result = breakdown(point);
  expect_ranks(result, {{.transfer = 30, .wait = 20, .step = 50},
                        {.transfer = 30, .gap = 20, .step = 50},
                        {.transfer = 20, .gap = 30, .step = 50}});
  EXPECT_THAT(result.missing, HasSubstr("clocks of rank 2"));

  point = point_of({.dp = 2}, {Script{}.all_reduce(Axis::dp)},
                   step({0, 1000}, {{{0, 1000}}, {{0, 1000}}}));
  point.clock_error[1] = 9e-9;
  EXPECT_EQ(breakdown(point).missing, "");
  point.clock_error[1] = 200e-9;
  EXPECT_THAT(breakdown(point).missing, HasSubstr("200 ns"));
}

TEST(BreakdownMissing, SaysWhyThereIsNone) {
  const auto none = [](void (*damage)(results::PointData&)) {
    auto point = point_of({}, {Script{}.compute().compute(1).after(0, 1)},
                          step({0, 10}, {{{0, 5}, {5, 10}}}));
    damage(point);
    const BreakdownResult result = breakdown(point);
    EXPECT_FALSE(result.mean);
    return result.missing;
  };
  EXPECT_THAT(none([](auto& point) { point.traces.clear(); }), HasSubstr("no step"));
  EXPECT_THAT(none([](auto& point) { point.outline.outline_of_rank.clear(); }),
              HasSubstr("0 of 1 ranks"));
}

TEST(RankList, NamesTheRanksInTheWorld) {
  results::PointData point;
  const std::string own = rank_list(point, {0, 1});
  point.world_rank = {0, 2, 1, 3};
  EXPECT_EQ(rank_list(point, {0, 2}), own) << "neighbours in the world alone";
  EXPECT_NE(rank_list(point, {0, 1}), own);
}

constexpr double ns = 1e-9;

/// The last of several plays, in which no rank feels that all began together.
void play(results::PointData& point, const simulate::Costs& costs) {
  point.traces = {simulate::simulate(point.outline, costs, {.plays = 4}).back()};
  point.clock_offset.assign(static_cast<std::size_t>(point.ranks), 0);
  point.clock_error.assign(static_cast<std::size_t>(point.ranks), 0);
}

/// GPipe on one stream: all forwards, then all backwards; nanoseconds.
results::PointData gpipe(int stages, int microbatches, int forward, int backward, int transfer) {
  std::vector<Script> ranks;
  simulate::Costs costs;
  for (int stage = 0; stage < stages; ++stage) {
    Script& script = ranks.emplace_back();
    auto& cost = costs.tables.emplace_back();
    const auto has = [&](int other) { return 0 <= stage + other && stage + other < stages; };
    const auto pass = [&](int from, int time, int to) {
      for (int i = 0; i < microbatches; ++i) {
        if (has(from)) {
          script.receive(from);
          cost.emplace_back(transfer);
        }
        script.compute();
        cost.emplace_back(time);
        if (has(to)) {
          script.send(to);
          cost.emplace_back(transfer);
        }
      }
    };
    pass(-1, forward, 1);
    pass(1, backward, -1);
  }
  results::PointData point = samples::point({.pp = stages}, ranks, {});
  costs.table_of_rank = point.outline.outline_of_rank;
  play(point, costs);
  return point;
}

TEST(SimulatedBreakdown, SplitsTransfersFromBubble) {
  for (const int transfer : {0, 6}) {
    const auto result = breakdown(gpipe(4, 8, 50, 100, transfer));
    ASSERT_EQ(result.of_rank.size(), 4U) << result.missing;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      SCOPED_TRACE(testing::Message() << "stage " << stage << ", transfer " << transfer);
      const Breakdown& part = result.of_rank[stage];
      const int neighbours = stage == 0 || stage == 3 ? 1 : 2;
      EXPECT_NEAR(part.compute, 8 * 150 * ns, 1e-15);
      EXPECT_NEAR(part.transfer, neighbours * 2 * 8 * transfer * ns, 1e-15);
      EXPECT_NEAR(part.bubble, 3 * 150 * ns, 1e-15);
      EXPECT_NEAR(part.gap, 0, 1e-15);
      EXPECT_NEAR(part.wait, part.step - part.compute - part.transfer - part.bubble, 1e-15)
          << "the rest is the network's doing";
      EXPECT_GE(part.wait, 0);
      if (transfer == 0) {
        EXPECT_NEAR(part.wait, 0, 1e-15);
      }
    }
  }
}

TEST(SimulatedBreakdown, UsesLikeRanksForThoseThatWereNotTraced) {
  auto point = gpipe(2, 4, 10, 20, 0);
  // Two replicas of the pipeline, of which only the first was traced.
  const auto traced = point.traces.front().ranks;
  point.mesh = point.outline.mesh = {.dp = 2, .pp = 2};
  point.ranks = 4;
  point.outline.outline_of_rank = {0, 0, 1, 1};
  point.clock_offset.assign(4, 0);
  point.clock_error.assign(4, 0);
  point.traces.front().ranks = {traced[0], traced[1]};
  point.traces.front().ranks[1].rank = 2;
  const auto result = breakdown(point);
  ASSERT_TRUE(result.mean) << result.missing;
  EXPECT_EQ(result.ranks, (std::vector{0, 2}));
  EXPECT_NEAR(result.mean->bubble / result.mean->step, 1.0 / 5.0, 1e-9);
  EXPECT_THAT(result.missing, EndsWith("ranks 1, 3"));
}

/// The steps of the workload hybrid on a mesh, whose pp and tp make the tiny model larger.
program::OutlineSet tiny_steps(const mesh::Shape& mesh, int layers, const std::string& options) {
  workloads::Request base{.model = workloads::load_model("tiny"),
                          .options = workloads::options_of(options)};
  base.model.layers = layers;
  return program::outline(workloads::weak(base, mesh), program::Section::step);
}

/// The programs that are really played, under costs of their GEMMs alone.
TEST(SimulatedBreakdown, FindsTheBubbleOfTheWorkloadsSchedules) {
  for (const char* const schedule : {"gpipe", "1f1b"}) {
    for (const auto& [shape, microbatches] :
         {std::pair{mesh::Shape{.pp = 4}, 8}, {mesh::Shape{.tp = 2, .dp = 2, .pp = 2}, 3}}) {
      results::PointData point;
      point.mesh = shape;
      point.ranks = shape.size();
      point.outline = tiny_steps(
          shape, 1,
          fmt::format("microbatch=2 microbatches={} schedule={}", microbatches, schedule));
      play(point, simulate::unit_costs(point.outline));
      const auto result = breakdown(point);
      SCOPED_TRACE(std::string{schedule} + " on " + mesh::to_string(shape));
      EXPECT_EQ(result.missing, "");
      ASSERT_TRUE(result.mean);
      const Breakdown& mean = *result.mean;
      EXPECT_NEAR(mean.bubble / mean.step, (shape.pp - 1.0) / (microbatches + shape.pp - 1.0),
                  1e-9);
      EXPECT_NEAR(mean.compute + mean.bubble, mean.step, 1e-9 * mean.step);
      EXPECT_NEAR(mean.other, 0, 1e-9 * mean.step);
      EXPECT_EQ(result.unaccounted, 0);
    }
  }
}

/// Simulates a hybrid step of 32 ranks, whole and without likes, on a network without cost.
TEST(LikeRanks, PlayAsTheWholeMeshDoes) {
  const mesh::Shape shape{.tp = 2, .dp = 8, .pp = 2};
  const program::OutlineSet set = tiny_steps(shape, 8, "microbatch=1 microbatches=4");
  // Ranks at dp = 3 are slow, those of one tp there slower; all else is alike by program.
  simulate::Costs costs;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const mesh::Coordinates at = mesh::coordinates(shape, rank);
    const std::uint32_t kind = at.dp == 3 ? 1U + static_cast<std::uint32_t>(at.tp) : 0U;
    costs.table_of_rank.push_back(3 * set.outline_of_rank[static_cast<std::size_t>(rank)] + kind);
  }
  for (const program::Outline& outline : set.outlines) {
    for (int kind = 0; kind < 3; ++kind) {
      auto& table = costs.tables.emplace_back();
      for (std::size_t op = 0; op < outline.ops.size(); ++op) {
        const bool free = program::communicates(outline.ops[op].kind);
        table.emplace_back(free ? 0 : 100 + static_cast<int>(op % 7) * (kind + 1));
      }
    }
  }
  const simulate::ReducedMesh like = like_ranks(set, costs);
  EXPECT_EQ(like.mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  program::OutlineSet few{.mesh = like.mesh, .outlines = set.outlines, .outline_of_rank = {}};
  simulate::Costs few_costs{.tables = costs.tables, .table_of_rank = {}};
  for (const int rank : like.rank) {
    few.outline_of_rank.push_back(set.outline_of_rank[static_cast<std::size_t>(rank)]);
    few_costs.table_of_rank.push_back(costs.table_of_rank[static_cast<std::size_t>(rank)]);
  }
  const auto whole = simulate::simulate(set, costs, {.plays = 3});
  const auto small = simulate::simulate(few, few_costs, {.plays = 3});
  for (std::size_t play = 0; play < whole.size(); ++play) {
    for (std::size_t rank = 0; rank < whole[play].ranks.size(); ++rank) {
      EXPECT_EQ(whole[play].ranks[rank].spans, small[play].ranks[like.place[rank]].spans);
      EXPECT_EQ(whole[play].ranks[rank].end, small[play].ranks[like.place[rank]].end);
    }
  }
}

}  // namespace
}  // namespace isoscale::analysis::breakdown
