// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "program/added_sections.hpp"
#include "program/check.hpp"
#include "tests/support/random_requests.hpp"

/// Sections that check and replay a step, of programs of all kinds.
namespace isoscale::workloads {
namespace {

using program::Checksum;
using program::Program;

template <class Wanted>
std::ptrdiff_t count_of(const Program& section) {
  return std::ranges::count_if(section.ops, [](const program::Op& op) {
    return std::holds_alternative<Wanted>(op.payload);
  });
}

std::vector<program::OpKind> kinds_of(const Program& section) {
  std::vector<program::OpKind> kinds;
  for (const program::Op& op : section.ops) {
    if (!std::holds_alternative<Checksum>(op.payload)) {
      kinds.push_back(program::kind_of(op.payload));
    }
  }
  return kinds;
}

template <class Test>
void on_random_programs(int wanted, const Test& test) {
  const Workload& hybrid = find_workload("hybrid");
  RandomRequests requests{20261122};
  for (int i = 0; i < wanted; ++i) {
    const Request request = requests.next(16);
    SCOPED_TRACE(describe(request));
    test(hybrid.build(hybrid.twin(request)));
  }
}

TEST(CheckedStep, PlaysToItsEndWithoutRacesAndLeavesOneSumOfEachOutput) {
  on_random_programs(60, [](program::ProgramSet set) {
    const program::CheckedSection checked = program::add_checked_step(set);
    const program::CheckedSection weights = program::add_weight_check(set);
    const program::Replay replay = program::add_replay(set);
    EXPECT_NO_THROW(program::check(set));
    for (std::size_t i = 0; i < set.programs.size(); ++i) {
      const program::RankProgram& program = set.programs[i];
      const Program& section = program.section(checked.section);
      EXPECT_EQ(kinds_of(section), kinds_of(program.step()));
      EXPECT_EQ(count_of<Checksum>(section), std::ssize(checked.sums[i].of));
      EXPECT_EQ(count_of<Checksum>(program.section(weights.section)),
                std::ssize(weights.sums[i].of));
      const bool has_weights = std::ranges::any_of(program.buffers, [](const auto& buffer) {
        return buffer.role == program::Role::weight && program::has_checksum(buffer);
      });
      EXPECT_EQ(weights.sums[i].of.empty(), !has_weights);
      EXPECT_EQ(count_of<program::Copy>(program.section(replay.save)),
                count_of<program::Copy>(program.section(replay.restore)));
      // Each op that computes or receives something is looked at.
      const std::set<std::uint32_t> summed{checked.sums[i].of.begin(), checked.sums[i].of.end()};
      for (std::uint32_t op = 0; op < program.step().ops.size(); ++op) {
        const auto outputs = program::outputs_of(program.step().ops[op].payload);
        const bool is_seen = std::ranges::any_of(outputs, [&](const program::Output& output) {
          return program::has_checksum(program.buffers[output.matrix.slice.buffer]);
        });
        if (!is_seen) continue;
        EXPECT_TRUE(summed.contains(op)) << "op " << op;
      }
    }
  });
}

TEST(CheckedStep, MayFlipBitsOnOneRankWithoutRaces) {
  on_random_programs(20, [](program::ProgramSet set) {
    const int rank = set.mesh.size() / 2;
    const program::CheckedSection checked = program::add_checked_step(set, rank);
    EXPECT_NO_THROW(program::check(set));
    for (int other = 0; other < set.mesh.size(); ++other) {
      const std::size_t program = set.program_of_rank[static_cast<std::size_t>(other)];
      EXPECT_EQ(checked.sums[program].flips != program::no_buffer, other == rank);
    }
  });
}

}  // namespace
}  // namespace isoscale::workloads
