// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/replay.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>

#include "program/outline.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/random_requests.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis {
namespace {

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

std::size_t op_count(const program::OutlineSet& set) {
  std::size_t ops = 0;
  for (const program::Outline& outline : set.outlines) ops += outline.ops.size();
  return ops;
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
  constexpr int wanted = 25;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::RandomRequests requests{20261125};
  std::size_t whole_ops = 0, condensed_ops = 0;
  for (int i = 0; i < wanted; ++i) {
    const auto set =
        program::outline(hybrid.build(hybrid.twin(requests.next(16))), program::Section::step);
    const simulate::Costs costs = drawn_costs(set, static_cast<std::uint64_t>(i));
    for (const bool folded : {false, true}) {
      const Condensed condensed{set,
                                folded ? program::Folding::folded : program::Folding::as_streamed};
      const auto play = [&](const program::OutlineSet& of, const simulate::Costs& times) {
        return simulate::simulate(folded ? simulate::folded(of) : of, times, {.plays = 2});
      };
      const auto all = play(set, costs);
      const auto few = play(condensed.set(), condensed.costs(costs));
      whole_ops += op_count(set);
      condensed_ops += op_count(condensed.set());
      for (std::size_t play = 0; play < all.size(); ++play) {
        for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
          const timeline::StepTrace& one = all[play].ranks[rank];
          const timeline::StepTrace& like = few[play].ranks[rank];
          ASSERT_EQ(one.begin, like.begin) << i << ", rank " << rank;
          ASSERT_EQ(one.end, like.end) << i << ", rank " << rank;
          ASSERT_EQ(communication(set, one), communication(condensed.set(), like)) << i;
        }
      }
    }
  }
  EXPECT_LT(condensed_ops, whole_ops * 9 / 10);
}

}  // namespace
}  // namespace isoscale::analysis
