// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// One rank of each class plays as all ranks do.
#include <gtest/gtest.h>

#include <algorithm>

#include "simulate/classes.hpp"
#include "simulate/coarse_play.hpp"
#include "tests/support/random_requests.hpp"

namespace isoscale::simulate {
namespace {

using units::Nanoseconds;

/// A table of times for each program, drawn.
Costs drawn_costs(const program::OutlineSet& set, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Costs costs{.tables = {}, .table_of_rank = set.outline_of_rank};
  for (const program::Outline& outline : set.outlines) {
    auto& table = costs.tables.emplace_back();
    for (std::size_t op = 0; op < outline.ops.size(); ++op) {
      table.emplace_back(static_cast<std::int64_t>(random() % 1000));
    }
  }
  return costs;
}

TEST(RandomClasses, PlayAsEveryRankDoes) {
  constexpr int wanted = 300;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::RandomRequests requests{20260311};
  int smaller = 0;
  for (int i = 0; i < wanted; ++i) {
    const workloads::Request request = hybrid.twin(requests.next(32));
    SCOPED_TRACE(describe(request));
    const program::ProgramSet set = hybrid.build(request);
    const program::OutlineSet whole = program::outline(set, program::Section::step);
    const Costs costs = drawn_costs(whole, static_cast<std::uint64_t>(i));
    const auto all = simulate(whole, costs, {.plays = 2});

    const Classes classes = classes_of(set, program::Section::step);
    ASSERT_EQ(classes.rank.size(), static_cast<std::size_t>(classes.outline.mesh.size()));
    if (classes.rank.size() < 32) ++smaller;
    const auto few = simulate(
        classes.outline, {.tables = costs.tables, .table_of_rank = classes.program}, {.plays = 2});
    for (std::size_t play = 0; play < all.size(); ++play) {
      for (std::size_t rank = 0; rank < 32; ++rank) {
        const auto& one = all[play].ranks[rank];
        const auto& like = few[play].ranks[classes.class_of_rank[rank]];
        ASSERT_EQ(one.begin, like.begin) << "rank " << rank;
        ASSERT_EQ(one.end, like.end) << "rank " << rank;
        ASSERT_EQ(one.spans, like.spans) << "rank " << rank;
      }
    }
  }
  EXPECT_GT(smaller, wanted / 2);
}

TEST(RandomClasses, SettleToThePeriodOfManySteps) {
  constexpr int wanted = 150, plays = 12;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::RandomRequests requests{5};
  int steady = 0;
  for (int i = 0; i < wanted; ++i) {
    const workloads::Request request = hybrid.twin(requests.next(16));
    SCOPED_TRACE(describe(request));
    const program::ProgramSet set = hybrid.build(request);
    const program::OutlineSet whole = program::outline(set, program::Section::step);
    const Costs costs = drawn_costs(whole, static_cast<std::uint64_t>(i));
    const auto all = simulate(whole, costs, {.plays = plays, .record = Record::steps});
    const auto end = [&](int play, std::size_t rank) {
      return all[static_cast<std::size_t>(play)].ranks[rank].end;
    };
    const Nanoseconds period = end(plays - 1, 0) - end(plays - 2, 0);
    bool is_steady = true;
    for (std::size_t rank = 0; rank < 16; ++rank) {
      is_steady = is_steady && end(plays - 1, rank) - end(plays - 2, rank) == period &&
                  end(plays - 2, rank) - end(plays - 3, rank) == period;
    }
    if (!is_steady) continue;
    ++steady;
    const Classes classes = classes_of(set, program::Section::step);
    const Costs of_classes{.tables = costs.tables, .table_of_rank = classes.program};
    for (const Record record : {Record::steps, Record::spans}) {
      const ClassStep step = play_classes(classes, of_classes, {}, record);
      ASSERT_NEAR(step.seconds, units::to_seconds(period).value(), 1e-15);
      for (std::size_t rank = 0; rank < 16; ++rank) {
        const auto& like = step.timeline.ranks[classes.class_of_rank[rank]];
        ASSERT_EQ(like.end - like.begin, period);
        ASSERT_EQ(like.spans.empty(), record == Record::steps);
      }
    }
  }
  EXPECT_GT(steady, wanted / 2);
}

// Each rank with a table of its own, so that nothing is alike.
TEST(RandomClasses, CoarseProgramsPlayAtTheSameTimes) {
  constexpr int wanted = 200, ranks = 24, plays = 2;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::RandomRequests requests{77};
  for (int i = 0; i < wanted; ++i) {
    const workloads::Request request = hybrid.twin(requests.next(ranks));
    SCOPED_TRACE(describe(request));
    const program::OutlineSet whole =
        program::outline(hybrid.build(request), program::Section::step);
    std::mt19937_64 random{static_cast<std::uint64_t>(i)};
    Costs costs;
    for (int rank = 0; rank < ranks; ++rank) {
      auto& table = costs.tables.emplace_back();
      for (std::size_t op = 0; op < whole.of(rank).ops.size(); ++op) {
        table.emplace_back(static_cast<std::int64_t>(random() % 1000));
      }
      // Every third mesh has pairs of ranks that are alike, for chains of like members.
      costs.table_of_rank.push_back(static_cast<std::uint32_t>(
          i % 3 == 0 && whole.outline_of_rank[static_cast<std::size_t>(rank)] ==
                            whole.outline_of_rank[static_cast<std::size_t>(rank & ~1)]
              ? rank & ~1
              : rank));
    }
    const auto all = simulate(whole, costs, {.plays = plays, .record = Record::steps});
    const auto coarse = play_coarse(coarsen(whole, costs), {.plays = plays});
    for (std::size_t play = 0; play < plays; ++play) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto& trace = all[play].ranks[rank];
        ASSERT_EQ(coarse[play][rank].begin, static_cast<double>(trace.begin.value()));
        ASSERT_EQ(coarse[play][rank].end, static_cast<double>(trace.end.value())) << rank;
      }
    }
  }
}

}  // namespace
}  // namespace isoscale::simulate
