// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/// Breakdowns of simulated steps: the costs are the truth that the breakdown must find again.
#include <fmt/format.h>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/replay.hpp"
#include "analysis_test.hpp"
#include "program/outline.hpp"
#include "simulate/simulate.hpp"
#include "stack_samples.hpp"
#include "tests/support/random_requests.hpp"
#include "tests/support/unit_costs.hpp"

namespace isoscale::analysis {
namespace {

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
    const auto result = breakdown::breakdown(gpipe(4, 8, 50, 100, transfer));
    ASSERT_EQ(result.of_rank.size(), 4U) << result.missing;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      SCOPED_TRACE(testing::Message() << "stage " << stage << ", transfer " << transfer);
      const breakdown::Breakdown& part = result.of_rank[stage];
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
  const auto result = breakdown::breakdown(point);
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
      const auto result = breakdown::breakdown(point);
      SCOPED_TRACE(std::string{schedule} + " on " + mesh::to_string(shape));
      EXPECT_EQ(result.missing, "");
      ASSERT_TRUE(result.mean);
      const breakdown::Breakdown& mean = *result.mean;
      EXPECT_NEAR(mean.bubble / mean.step, (shape.pp - 1.0) / (microbatches + shape.pp - 1.0),
                  1e-9);
      EXPECT_NEAR(mean.compute + mean.bubble, mean.step, 1e-9 * mean.step);
      EXPECT_NEAR(mean.other, 0, 1e-9 * mean.step);
      EXPECT_EQ(result.unaccounted, 0);
    }
  }
}

/// Every rank has times of its own; communication takes none, as in a replay.
simulate::Costs drawn_costs(const program::OutlineSet& set, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  simulate::Costs costs;
  for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    auto& table = costs.tables.emplace_back();
    for (const program::OutlineOp& op : set.of(static_cast<int>(rank)).ops) {
      const bool is_free = program::communicates(op.kind);
      table.emplace_back(is_free ? 0 : static_cast<std::int64_t>(random() % 1000));
    }
  }
  return costs;
}

/// Spans of communication ops in program order of each stream, which condensing keeps.
std::vector<timeline::Span> communication(const program::OutlineSet& set,
                                          const timeline::StepTrace& trace) {
  std::vector<timeline::Span> spans;
  for (std::size_t stream = 0; stream < program::max_streams; ++stream) {
    for (const timeline::Span& span : trace.spans) {
      const program::OutlineOp& op = set.of(trace.rank).ops[span.op];
      if (op.stream != stream || !program::communicates(op.kind)) continue;
      spans.push_back({.op = 0, .start = span.start, .end = span.end});
    }
  }
  return spans;
}

TEST(Condensed, CommunicatesWhenTheWholeProgramsDo) {
  std::size_t whole_ops = 0, condensed_ops = 0;
  workloads::on_random_programs(20261125, 16, 25, [&](const program::ProgramSet& programs, int i) {
    const program::OutlineSet set = program::outline(programs, program::Section::step);
    const simulate::Costs costs = drawn_costs(set, static_cast<std::uint64_t>(i));
    for (const bool folded : {false, true}) {
      const breakdown::Condensed condensed{
          set, folded ? program::Folding::folded : program::Folding::as_streamed};
      const auto play = [&](const program::OutlineSet& of, const simulate::Costs& times) {
        return simulate::simulate(folded ? simulate::folded(of) : of, times, {.plays = 2});
      };
      const auto all = play(set, costs);
      const auto few = play(condensed.set(), condensed.costs(costs));
      for (const program::Outline& of : set.outlines) whole_ops += of.ops.size();
      for (const program::Outline& of : condensed.set().outlines) condensed_ops += of.ops.size();
      for (std::size_t play = 0; play < all.size(); ++play) {
        for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
          const timeline::StepTrace& one = all[play].ranks[rank];
          const timeline::StepTrace& like = few[play].ranks[rank];
          ASSERT_EQ(one.begin, like.begin) << "rank " << rank;
          ASSERT_EQ(one.end, like.end) << "rank " << rank;
          ASSERT_EQ(communication(set, one), communication(condensed.set(), like));
        }
      }
    }
  });
  EXPECT_LT(condensed_ops, whole_ops * 9 / 10);
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
  const breakdown::LikeRanks like = breakdown::like_ranks(set, costs);
  EXPECT_EQ(like.set.mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  const auto whole = simulate::simulate(set, costs, {.plays = 3});
  const auto small = simulate::simulate(like.set, like.costs, {.plays = 3});
  for (std::size_t play = 0; play < whole.size(); ++play) {
    for (std::size_t rank = 0; rank < whole[play].ranks.size(); ++rank) {
      EXPECT_EQ(whole[play].ranks[rank].spans, small[play].ranks[like.rank[rank]].spans);
      EXPECT_EQ(whole[play].ranks[rank].end, small[play].ranks[like.rank[rank]].end);
    }
  }
}

}  // namespace
}  // namespace isoscale::analysis
