// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The programs of the memory benchmark, whose bytes are those of its ops, and the sessions of the
// algorithms benchmark.
#include <fmt/ranges.h>

#include "matchers.hpp"
#include "program/check.hpp"
#include "workloads/algorithms/algorithms.hpp"
#include "workloads/api/collective_algorithms.hpp"
#include "workloads/memory/memory.hpp"

namespace isoscale::workloads::memory {
namespace {

using program::Advice;
using program::OpKind;

constexpr const char* every_kind =
    "h2d-pinned,d2h-pinned,h2d-pageable,d2h-pageable,d2d,copy,triad,explicit,managed,"
    "managed-prefetch,managed-read-mostly,managed-preferred-device";

Request request_of(int ranks, Options options) {
  return {.mesh = {.dp = ranks}, .options = std::move(options)};
}

Bench build(const Request& request, int batch) { return hooks().build(request, batch); }

std::vector<OpKind> kinds_in(const program::RankProgram& program, program::Section section) {
  return mapped(program.section(section).ops,
                [](const program::Op& op) { return kind_of(op.payload); });
}

TEST(MemoryBench, EveryKindIsAProgramThatHoldsTogether) {
  for (const int ranks : {1, 2, 5}) {
    const Request request = request_of(ranks, {{"kinds", every_kind}, {"sizes", "4,1000,1MiB"}});
    const Bench bench = build(request, 0);
    EXPECT_NO_THROW(program::check(bench.set));
    const std::size_t together = ranks == 1 ? 1 : 2;
    EXPECT_EQ(bench.cases.size(), 12 * 3 * together);
    EXPECT_EQ(bench.rows.size(), bench.cases.size());
    for (std::size_t i = 0; i < bench.cases.size(); ++i) {
      EXPECT_FALSE(hooks().expect(request, 0, i, 0).empty());
    }
  }
}

/// The bytes of a copy are counted once between memories, twice within one; a triad moves three
/// arrays.
TEST(MemoryBench, BytesOfARowAreThoseOfItsOps) {
  const Bench bench = build(request_of(1, {{"kinds", every_kind}, {"sizes", "1MiB"}}), 0);
  for (std::size_t i = 0; i < bench.cases.size(); ++i) {
    const std::string& kind = bench.rows[i].text.at("kind");
    SCOPED_TRACE(kind);
    const program::Outline outline =
        program::outline(bench.set.of(0), bench.cases[i].section, bench.set.mesh);
    const double moved = static_cast<double>(outline.ops.back().bytes);  // read and written
    const double bytes = bench.rows[i].number.at("bytes");
    EXPECT_EQ(bench.rows[i].number.at("array_bytes"), 1 << 20);
    if (kind == "copy" || kind == "d2d" || kind == "triad") {
      EXPECT_EQ(bytes, moved);
    } else {
      EXPECT_EQ(bytes, 1 << 20);
    }
  }
}

TEST(MemoryBench, ManagedDataLiesWithTheHostBeforeEachPlay) {
  const char* const kinds = "managed,managed-prefetch,managed-read-mostly,explicit";
  const Bench bench = build(request_of(1, {{"kinds", kinds}, {"sizes", "64KiB"}}), 0);
  const program::RankProgram& program = bench.set.of(0);
  const std::vector<std::vector<OpKind>> timed{{OpKind::add},
                                               {OpKind::advise, OpKind::add},
                                               {OpKind::advise, OpKind::add},
                                               {OpKind::copy, OpKind::add}};
  for (std::size_t i = 0; i < timed.size(); ++i) {
    EXPECT_EQ(kinds_in(program, bench.cases[i].section), timed[i]);
    if (i == 3) continue;
    EXPECT_EQ(bench.cases[i].when, Restore::every_play);
    EXPECT_EQ(bench.cases[i].most_times, 1U) << "a second pass would find the pages there";
    const auto advice_of = [](const auto& op) {
      return std::get<program::Advise>(op.payload).advice;
    };
    EXPECT_THAT(
        mapped(program.section(bench.cases[i].restore).ops, advice_of),
        ElementsAre(Advice::unset_read_mostly, Advice::unset_preferred, Advice::prefetch_host));
  }
}

TEST(MemoryBench, OneRankAloneLeavesTheOthersIdle) {
  const Bench bench =
      build(request_of(3, {{"kinds", "triad"}, {"sizes", "4KiB"}, {"together", "both"}}), 0);
  ASSERT_EQ(bench.cases.size(), 2U);
  EXPECT_THAT(bench.rows[0].ranks, ElementsAre(0));
  EXPECT_TRUE(bench.rows[1].ranks.empty());
  EXPECT_TRUE(kinds_in(bench.set.of(2), bench.cases[0].section).empty());
  EXPECT_THAT(kinds_in(bench.set.of(0), bench.cases[0].section), ElementsAre(OpKind::add));
  EXPECT_THAT(kinds_in(bench.set.of(2), bench.cases[1].section), ElementsAre(OpKind::add));
}

TEST(MemoryBench, HasABatchForEachNumaNode) {
  const Request request = request_of(1, {{"numa", "0,3"}, {"sizes", "4KiB"}});
  EXPECT_EQ(hooks().batches(request), 2);
  EXPECT_EQ(build(request, 1).session.numa_node, 3);
  EXPECT_EQ(build(request, 1).rows.front().number.at("numa"), 3);
  EXPECT_EQ(build(request_of(1, {}), 0).session, program::SessionOptions{});
}

TEST(MemoryBench, WhatIsNotNamedComesFromTheMachine) {
  const auto completed = [](const Options& options) {
    return hooks().on_machine(request_of(1, options), {.device = "host", .numa_nodes = 2}).options;
  };
  EXPECT_EQ(completed({{"numa", "all"}}).at("numa"), "0,1");
  EXPECT_EQ(completed({{"numa", "1"}}).at("numa"), "1");
  EXPECT_THROW((void)completed({{"numa", "0,2"}}), base::UsageError);
  EXPECT_THROW((void)completed({{"kinds", "d2d"}}), base::UsageError);
}

TEST(MemoryBench, RefusesWhatItCannotMeasure) {
  for (const char* sizes : {"2", "32GiB"}) {
    EXPECT_THROW((void)build(request_of(1, {{"sizes", sizes}}), 0), base::UsageError) << sizes;
  }
  for (const char* numa : {"some", "-1", "0,,1", "1.5"}) {
    EXPECT_THROW((void)hooks().batches(request_of(1, {{"numa", numa}})), base::UsageError) << numa;
  }
}

}  // namespace
}  // namespace isoscale::workloads::memory

namespace isoscale::workloads::algorithms {
namespace {

using program::CollectiveKind;

Request request_of(int ranks, Options options) {
  options.try_emplace("sizes", "1KiB,64KiB");
  options.try_emplace("small_sizes", "64");
  options.try_emplace("rotate", "1MiB");
  return {.mesh = {.dp = ranks}, .options = std::move(options)};
}

std::vector<std::string> titles(const Request& request) {
  return mapped(choices_of(request), [](const Choice& choice) {
    const auto operations = mapped(
        choice.measured.op, [](const auto operation) { return collectives::name(operation); });
    return fmt::format("{}/{}/{}: {}", choice.algorithm, choice.protocol, name(choice.registered),
                       fmt::join(operations, ","));
  });
}

TEST(AlgorithmsBench, ListsPairsThatExistBesideTheLibrarysChoice) {
  EXPECT_THAT(titles(request_of(2, {{"op", "all_gather,all_reduce"},
                                    {"algorithms", "tree,pat"},
                                    {"protocols", "ll,simple"},
                                    {"registration", "none,symmetric"}})),
              ElementsAre("//none: all_gather,all_reduce", "tree/ll/none: all_reduce",
                          "tree/simple/none: all_reduce", "pat/simple/none: all_gather",
                          "//none: all_gather,all_reduce,sendrecv",
                          "//symmetric: all_gather,all_reduce,sendrecv"));
  // All: 3 protocols of ring and tree, 5 that have one, the library's, and three registrations.
  EXPECT_EQ(choices_of(request_of(2, {})).size(), 2U * 3 + 5 + 1 + 3);
}

TEST(AlgorithmsBench, EverySessionHoldsTogetherAndSaysWhatItWasTold) {
  const Request request = request_of(4, {});
  const int batches = hooks().batches(request);
  for (int batch = 0; batch < batches; ++batch) {
    const Choice choice = choices_of(request)[static_cast<std::size_t>(batch)];
    const Bench bench = hooks().build(request, batch);
    EXPECT_NO_THROW(program::check(bench.set));
    EXPECT_EQ(bench.session.collective_algorithm, choice.algorithm);
    EXPECT_EQ(bench.session.collective_protocol, choice.protocol);
    EXPECT_EQ(bench.session.registration == program::Registration::local,
              choice.registered == Registered::local);
    for (std::size_t i = 0; i < bench.cases.size(); ++i) {
      EXPECT_FALSE(hooks().expect(request, batch, i, 1).empty());
    }
    for (const RowSpec& row : bench.rows) {
      EXPECT_EQ(row.text.at("algorithm"), choice.algorithm.empty() ? "library" : choice.algorithm);
      EXPECT_EQ(row.text.at("registration"), name(choice.registered));
      EXPECT_EQ(row.text.at("chosen"), choice.algorithm.empty() ? "unknown" : choice.algorithm);
    }
    for (const Case& one : bench.cases) EXPECT_TRUE(one.wants_estimate);
    for (const program::Buffer& buffer : bench.set.programs.front().buffers) {
      EXPECT_EQ(buffer.space == program::Space::symmetric,
                choice.registered == Registered::symmetric);
    }
  }
}

/// The expected algorithms follow NCCL's user guide and its tuning model.
TEST(CollectiveAlgorithms, AreThoseOfNccl) {
  using enum CollectiveKind;
  const auto names = [](CollectiveKind kind) {
    std::vector<std::string_view> result;
    for (const CollectiveAlgorithm& algorithm : collective_algorithms) {
      if (algorithm.does(kind)) result.push_back(algorithm.name);
    }
    return result;
  };
  for (const auto kind : {all_gather, reduce_scatter}) {
    EXPECT_THAT(names(kind), IsSupersetOf({"pat", "nvls", "ring"}));
    for (const auto* const name : {"tree", "nvlstree", "collnetchain"}) {
      EXPECT_THAT(names(kind), Not(Contains(name)));
    }
  }
  EXPECT_THAT(names(all_reduce), Not(Contains("pat")));
  EXPECT_THAT(names(broadcast), ElementsAre("ring"));
  EXPECT_THAT(names(all_to_all), IsEmpty());
  for (const CollectiveAlgorithm& algorithm : collective_algorithms) {
    EXPECT_EQ(has_protocol(algorithm, "ll128"),
              algorithm.name == "ring" || algorithm.name == "tree");
    EXPECT_TRUE(has_protocol(algorithm, "simple"));
  }
  EXPECT_EQ(find_named(collective_algorithms, "bruck"), nullptr);
  EXPECT_EQ(find_named(collective_protocols, "LL"), nullptr);
}

}  // namespace
}  // namespace isoscale::workloads::algorithms
