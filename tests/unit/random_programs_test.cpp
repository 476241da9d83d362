// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Random combinations of mesh, schedule, strategy and options.

#include "program/check_races_and_matching.hpp"
#include "program/checksum_replay_and_solo_sections.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/arena_bound.hpp"
#include "tests/support/random_requests.hpp"

namespace isoscale::workloads {
namespace {

using program::Checksum;
using program::Program;

/// Expects that the rows that an op moves are rows of its source.
void expect_rows_exist(const program::ProgramSet& set, const std::string& what) {
  for (const program::RankProgram& program : set.programs) {
    for (const program::Op& op : program.step().ops) {
      const auto* const rows = std::get_if<program::Rows>(&op.payload);
      if (rows == nullptr) continue;
      EXPECT_EQ(rows->from.size(), std::size_t{rows->rows} * rows->each) << what;
      const std::uint64_t sources = rows->src.slice.count / rows->columns;
      for (const std::uint32_t row : rows->from) {
        EXPECT_TRUE(row == program::Rows::no_row || row < sources) << row << ": " << what;
      }
    }
  }
}

TEST(RandomPrograms, AreFreeOfDeadlockAndRacesAt64Ranks) {
  const int wanted = every_case() ? 1000 : 100;
  constexpr int ranks = 64;
  const Workload& hybrid = find_workload("hybrid");
  RandomRequests requests{20260102};
  for (int i = 0; i < wanted; ++i) {
    const Request request = requests.next(ranks);
    const program::ProgramSet set = hybrid.build(hybrid.twin(request));
    EXPECT_NO_THROW(program::check(set)) << describe(request);
    expect_rows_exist(set, describe(request));
  }
  // The combinations reach every value of every choice, or they would prove less than it seems.
  for (const OptionSpec& spec : hybrid.options) {
    if (spec.type != OptionType::choice || !RandomRequests::draws(spec)) continue;
    const auto values = requests.seen().find(std::string{spec.key});
    const std::size_t seen = values == requests.seen().end() ? 0 : values->second.size();
    EXPECT_EQ(seen, spec.choices.size()) << spec.key;
  }
}

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

TEST(CheckedStep, PlaysToItsEndWithoutRacesAndLeavesOneSumOfEachOutput) {
  on_random_programs(20261122, 16, 60, [](program::ProgramSet set, int) {
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

/// Arenas at most this much above the peak of live bytes, or else this much above the least that
/// the order of ops allows.
constexpr double above_live = 1.15, above_least = 1.05;

void expect_small_arenas(const program::ProgramSet& set, const std::string& what) {
  for (const program::RankProgram& program : set.programs) {
    EXPECT_NO_THROW(program::check_races(program, set.mesh)) << what;
    const program::Facts facts = program::facts(program, set.mesh);
    for (std::size_t i = 0; i < program::space_count; ++i) {
      const auto space = static_cast<program::Space>(i);
      const auto bytes = static_cast<double>(program.arena_bytes[i]);
      if (bytes <= above_live * static_cast<double>(facts.peak_live[i].value())) continue;
      const auto least = static_cast<double>(program::least_arena(program, space));
      EXPECT_LE(bytes, above_least * least)
          << fmt::format("{}, {}: {} buffers", what, program::name(space), program.buffers.size());
    }
  }
}

TEST(MemoryBound, OfRandomHybrids) {
  for (const int ranks : {1, 2, 3, 4, 6, 8}) {
    RandomRequests requests{20261125};
    for (int i = 0; i < (every_case() ? 40 : 8); ++i) {
      const Request request = requests.next(ranks);
      expect_small_arenas(find_workload("hybrid").build(request), describe(request));
    }
  }
}

TEST(MemoryBound, OfEveryWorkload) {
  for (const Workload& workload : registry()) {
    for (const int ranks : {1, 2, 4, 8}) {
      const bool needs_two = workload.name == "p2p" || workload.name == "algorithms";
      if (ranks == 1 && needs_two) continue;
      const Request base{.model = load_model("tiny")};
      const mesh::Shape mesh =
          mesh::resolve(workload.natural_mesh(ranks), ranks, workload.limits(base, Scaling::weak));
      const std::string what = fmt::format("{} {}", workload.name, mesh::to_string(mesh));
      const Request request = workload.scale(base, mesh, Scaling::weak);
      if (workload.build != nullptr) expect_small_arenas(workload.build(request), what);
      if (!workload.is_bench()) continue;
      for (int batch = 0; batch < workload.bench.batches(request); ++batch) {
        expect_small_arenas(workload.bench.build(request, batch).set, what);
      }
    }
  }
}

}  // namespace
}  // namespace isoscale::workloads

namespace isoscale::simulate {
namespace {

using units::Nanoseconds;

/// Times of the ops of an outline, drawn.
std::vector<Nanoseconds> drawn_times(const program::Outline& outline, std::mt19937_64& random) {
  return mapped(outline.ops, [&](const program::OutlineOp&) {
    return Nanoseconds{static_cast<std::int64_t>(random() % 1000)};
  });
}

/// A table for each program.
Costs drawn_costs(const program::OutlineSet& set, int seed) {
  std::mt19937_64 random{static_cast<std::uint64_t>(seed)};
  Costs costs{.tables = {}, .table_of_rank = set.outline_of_rank};
  for (const auto& outline : set.outlines) costs.tables.push_back(drawn_times(outline, random));
  return costs;
}

TEST(RandomClasses, PlayAsEveryRankDoes) {
  const int wanted = every_case() ? 300 : 120;
  int smaller = 0;
  workloads::on_random_programs(20260311, 32, wanted, [&](const program::ProgramSet& set, int i) {
    const program::OutlineSet whole = program::outline(set, program::Section::step);
    const Costs costs = drawn_costs(whole, i);
    const auto all = simulate(whole, costs, {.plays = 2});
    const Classes classes = classes_of(set);
    ASSERT_EQ(classes.rank.size(), static_cast<std::size_t>(classes.outline.mesh.size()));
    if (classes.rank.size() < 32) ++smaller;
    const auto few = simulate(
        classes.outline, {.tables = costs.tables, .table_of_rank = classes.outline.outline_of_rank},
        {.plays = 2});
    for (std::size_t play = 0; play < all.size(); ++play) {
      for (std::size_t rank = 0; rank < 32; ++rank) {
        const auto& one = all[play].ranks[rank];
        const auto& like = few[play].ranks[classes.class_of_rank[rank]];
        ASSERT_EQ(std::tie(one.begin, one.end, one.spans),
                  std::tie(like.begin, like.end, like.spans))
            << "rank " << rank;
      }
    }
  });
  EXPECT_GT(smaller, wanted / 2);
}

TEST(RandomClasses, SettleToThePeriodOfManySteps) {
  const int wanted = every_case() ? 150 : 80;
  constexpr int plays = 12;
  int steady = 0;
  workloads::on_random_programs(5, 16, wanted, [&](const program::ProgramSet& set, int i) {
    const program::OutlineSet whole = program::outline(set, program::Section::step);
    const Costs costs = drawn_costs(whole, i);
    const auto all = simulate(whole, costs, {.plays = plays});
    const auto end = [&](int play, std::size_t rank) {
      return all[static_cast<std::size_t>(play)].ranks[rank].end;
    };
    const Nanoseconds period = end(plays - 1, 0) - end(plays - 2, 0);
    bool is_steady = true;
    for (std::size_t rank = 0; rank < 16; ++rank) {
      is_steady = is_steady && end(plays - 1, rank) - end(plays - 2, rank) == period &&
                  end(plays - 2, rank) - end(plays - 3, rank) == period;
    }
    if (!is_steady) return;
    ++steady;
    const Classes classes = classes_of(set);
    const Costs of_classes{.tables = costs.tables,
                           .table_of_rank = classes.outline.outline_of_rank};
    for (const Record record : {Record::steps, Record::spans}) {
      const ClassStep step = play_classes(classes, of_classes, {}, record);
      ASSERT_NEAR(step.seconds, units::to_seconds(period).value(), 1e-15);
      ASSERT_EQ(step.timeline.ranks.empty(), record == Record::steps);
      if (record == Record::steps) continue;
      for (std::size_t rank = 0; rank < 16; ++rank) {
        const auto& like = step.timeline.ranks[classes.class_of_rank[rank]];
        ASSERT_EQ(like.end - like.begin, period);
        ASSERT_FALSE(like.spans.empty());
      }
    }
  });
  EXPECT_GT(steady, wanted / 2);
}

// Each rank with a table of its own, so that nothing is alike.
TEST(RandomClasses, CoarseProgramsPlayAtTheSameTimes) {
  const int wanted = every_case() ? 200 : 80;
  constexpr int ranks = 24, plays = 2;
  workloads::on_random_programs(77, ranks, wanted, [&](const program::ProgramSet& set, int i) {
    const program::OutlineSet whole = program::outline(set, program::Section::step);
    std::mt19937_64 random{static_cast<std::uint64_t>(i)};
    Costs costs;
    for (int rank = 0; rank < ranks; ++rank) {
      costs.tables.push_back(drawn_times(whole.of(rank), random));
      // Every third mesh has pairs of ranks that are alike, for chains of like members.
      costs.table_of_rank.push_back(static_cast<std::uint32_t>(
          i % 3 == 0 && whole.outline_of_rank[static_cast<std::size_t>(rank)] ==
                            whole.outline_of_rank[static_cast<std::size_t>(rank & ~1)]
              ? rank & ~1
              : rank));
    }
    const auto all = simulate(whole, costs, {.plays = plays});
    const auto coarse = play_coarse(coarsen(whole, costs), {.plays = plays});
    for (std::size_t play = 0; play < plays; ++play) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto& trace = all[play].ranks[rank];
        ASSERT_EQ(coarse[play][rank].begin, trace.begin);
        ASSERT_EQ(coarse[play][rank].end, trace.end) << rank;
      }
    }
  });
}

}  // namespace
}  // namespace isoscale::simulate
