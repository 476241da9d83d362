// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Rounds of pairs and the programs that play them, and those of the memory benchmark, whose bytes
// are those of its ops.

#include "program/check_races_and_matching.hpp"
#include "request_text.hpp"
#include "words.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/p2p/p2p.hpp"

namespace isoscale::workloads::p2p {
namespace {

int batches(const Request& request) { return hooks().batches(request); }
Bench build(const Request& request, int batch) { return hooks().build(request, batch); }

/// Expects that no rank is in two pairs of a round, and that each pair is of two ranks, the lower
/// first; returns the pairs, each of which may meet once only.
std::set<std::pair<int, int>> pairs_of(const std::vector<Round>& rounds, int ranks) {
  std::set<std::pair<int, int>> met;
  for (const Round& round : rounds) {
    std::set<int> seen;
    for (const Pair& pair : round) {
      EXPECT_LT(pair.low, pair.high);
      EXPECT_GE(pair.low, 0);
      EXPECT_LT(pair.high, ranks);
      EXPECT_TRUE(seen.insert(pair.low).second) << pair.low;
      EXPECT_TRUE(seen.insert(pair.high).second) << pair.high;
      EXPECT_TRUE(met.emplace(pair.low, pair.high).second) << pair.low << " " << pair.high;
    }
  }
  return met;
}

TEST(Rounds, OfAllPairsAreDisjointAndComplete) {
  for (int ranks = 2; ranks <= 33; ++ranks) {
    SCOPED_TRACE(ranks);
    const std::vector<Round> rounds = all_pairs(ranks);
    EXPECT_THAT(rounds, SizeIs(ranks % 2 == 0 ? ranks - 1 : ranks));
    EXPECT_THAT(rounds, Each(SizeIs(ranks / 2)));
    EXPECT_THAT(pairs_of(rounds, ranks), SizeIs(ranks * (ranks - 1) / 2));
  }
  EXPECT_THAT(all_pairs(1), IsEmpty());
}

TEST(Rounds, OfNeighboursCloseARing) {
  for (int ranks = 2; ranks <= 33; ++ranks) {
    const std::vector<Round> rounds = neighbours(ranks);
    EXPECT_LE(rounds.size(), 3U);
    std::set<std::pair<int, int>> ring;
    for (int rank = 0; rank < ranks; ++rank) {
      const int next = (rank + 1) % ranks;
      ring.emplace(std::min(rank, next), std::max(rank, next));
    }
    EXPECT_EQ(pairs_of(rounds, ranks), ring) << ranks;
  }
}

TEST(Rounds, OfASampleAreSomeOfAllAndDependOnTheSeed) {
  const std::vector<Round> all = all_pairs(16);
  const std::vector<Round> few = sample(16, 4, 1);
  EXPECT_THAT(few, SizeIs(4));
  for (const Round& round : few) EXPECT_THAT(all, Contains(round));
  EXPECT_THAT(pairs_of(few, 16), SizeIs(4 * 8));
  EXPECT_EQ(few, sample(16, 4, 1));
  std::set<std::vector<Round>> drawn;
  for (std::uint64_t seed = 0; seed < 20; ++seed) drawn.insert(sample(16, 4, seed));
  EXPECT_GT(drawn.size(), 15U);
  EXPECT_EQ(sample(16, 15, 1), all);
  EXPECT_EQ(sample(16, 1000, 7), all);
}

TEST(Rounds, OfASampleLeaveNoRankOut) {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    for (int count = 1; count <= ranks; ++count) {
      SCOPED_TRACE(fmt::format("{} of {} ranks", count, ranks));
      std::vector<int> met(static_cast<std::size_t>(ranks));
      for (const Round& round : sample(ranks, count, 3)) {
        for (const Pair& pair : round) {
          ++met[static_cast<std::size_t>(pair.low)];
          ++met[static_cast<std::size_t>(pair.high)];
        }
      }
      const int least = std::min(count, ranks - 1);
      EXPECT_THAT(met, Each(AllOf(Ge(least), Le(least + ranks % 2))));
    }
  }
}

TEST(Rounds, IsolatedHaveOnePairOfANodeAtATime) {
  const std::vector<std::vector<int>> sites{{0, 0, 0, 0},          {0, 0, 1, 1},
                                            {0, 1, 2, 3, 4},       {0, 0, 0, 1},
                                            {5, 5, 3, 3, 9, 9, 9}, {0, 1, 0, 1, 0, 1, 2, 2, 2}};
  for (const std::vector<int>& nodes : sites) {
    const int ranks = static_cast<int>(nodes.size());
    const std::vector<Round> rounds = isolated(nodes);
    EXPECT_THAT(pairs_of(rounds, ranks), SizeIs(ranks * (ranks - 1) / 2));
    for (const Round& round : rounds) {
      EXPECT_THAT(round, Not(IsEmpty()));
      std::set<int> busy;
      for (const Pair& pair : round) {
        const int low = nodes[static_cast<std::size_t>(pair.low)];
        const int high = nodes[static_cast<std::size_t>(pair.high)];
        EXPECT_TRUE(busy.insert(low).second) << low;
        if (high != low) {
          EXPECT_TRUE(busy.insert(high).second) << high;
        }
      }
    }
  }
  // Two nodes of two: their own pairs at once, then the four across one by one.
  EXPECT_THAT(isolated(std::vector{0, 0, 1, 1}), SizeIs(5));
}

TEST(Rounds, OfABisectionCrossTheMiddle) {
  EXPECT_THAT(bisection(4), ElementsAre(Pair{0, 2}, Pair{1, 3}));
  EXPECT_THAT(bisection(5), ElementsAre(Pair{0, 2}, Pair{1, 3}));
  EXPECT_THAT(bisection(2), ElementsAre(Pair{0, 1}));
}

Request request_of(int ranks, Options options = {}) {
  return {.mesh = {.dp = ranks}, .options = std::move(options)};
}

/// Returns what a rank puts on links in one section, from the ops themselves.
std::uint64_t sent_by(const program::ProgramSet& set, int rank, program::Section section) {
  std::uint64_t sent = 0;
  const program::RankProgram& program = set.of(rank);
  for (const program::Op& op : program.section(section).ops) {
    if (const auto* exchange = std::get_if<program::Exchange>(&op.payload)) {
      for (const program::Transfer& transfer : exchange->transfers) {
        if (transfer.direction == program::Direction::send) sent += transfer.slice.count;
      }
    } else if (const auto* collective = std::get_if<program::Collective>(&op.payload)) {
      sent += collective->send.count -
              collective->send.count / static_cast<std::uint64_t>(set.mesh.size());
    }
  }
  return sent;
}

/// The rows of a case say what its programs move.
void expect_rows_to_tell(const Bench& bench, const Case& one) {
  std::map<int, std::uint64_t> left;  // by rank, what no row has told of
  for (int rank = 0; rank < bench.set.mesh.size(); ++rank) {
    left[rank] = sent_by(bench.set, rank, one.section);
  }
  for (std::size_t i = one.row_begin; i < one.row_end; ++i) {
    const RowSpec& row = bench.rows[i];
    const std::string& kind = row.text.at("kind");
    const auto bytes = static_cast<std::uint64_t>(row.number.at("bytes"));
    if (row.silent) continue;
    if (kind == "all_to_all") {
      for (auto& [rank, bytes_left] : left) {
        EXPECT_EQ(bytes_left, bytes * one.calls);
        bytes_left = 0;
      }
      continue;
    }
    std::uint64_t moved = 0;
    for (const int rank : row.ranks) {
      moved += left[rank];
      if (kind == "bandwidth" && rank == row.ranks.back()) {
        EXPECT_EQ(left[rank], 0U);
      }
      left[rank] = 0;
    }
    EXPECT_EQ(moved, bytes * one.calls) << kind;
    if (row.number.contains("src")) {
      EXPECT_EQ(row.number.at("src"), row.ranks.front());
      EXPECT_EQ(row.number.at("dst"), row.ranks.back());
    }
  }
  for (const auto& [rank, bytes] : left) EXPECT_EQ(bytes, 0U) << rank;
}

/// Every batch is proven, and says what it does; returns the rows of all.
std::vector<RowSpec> prove(const Request& request) {
  std::vector<RowSpec> rows;
  for (int batch = 0; batch < batches(request); ++batch) {
    const Bench bench = build(request, batch);
    program::check(bench.set);
    std::size_t next = 0;
    for (std::size_t i = 0; i < bench.cases.size(); ++i) {
      const Case& one = bench.cases[i];
      EXPECT_EQ(one.row_begin, next);
      next = one.row_end;
      expect_rows_to_tell(bench, one);
      std::size_t compared = 0;
      for (int rank = 0; rank < request.mesh.size(); ++rank) {
        compared += hooks().expect(request, batch, i, rank).size();
      }
      const auto of_case =
          std::span{bench.rows}.subspan(one.row_begin, one.row_end - one.row_begin);
      const bool is_played =
          std::ranges::any_of(of_case, [](const RowSpec& row) { return !row.silent.has_value(); });
      EXPECT_EQ(compared > 0, is_played);  // somebody receives
    }
    EXPECT_EQ(next, bench.rows.size());
    rows.insert(rows.end(), bench.rows.begin(), bench.rows.end());
  }
  return rows;
}

std::multiset<std::pair<int, int>> ends_of(const std::vector<RowSpec>& rows,
                                           std::string_view kind) {
  std::multiset<std::pair<int, int>> ends;
  for (const RowSpec& row : rows) {
    if (row.text.at("kind") == kind) {
      ends.emplace(static_cast<int>(row.number.at("src")), static_cast<int>(row.number.at("dst")));
    }
  }
  return ends;
}

TEST(P2p, ProgramsAreProvenAndCompleteOnAnyNumberOfRanks) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    SCOPED_TRACE(ranks);
    const std::vector<RowSpec> rows = prove(request_of(ranks));
    std::multiset<std::pair<int, int>> once, both_ways;
    for (int src = 0; src < ranks; ++src) {
      for (int dst = 0; dst < ranks; ++dst) {
        if (src < dst) once.emplace(src, dst);
        if (src != dst) both_ways.emplace(src, dst);
      }
    }
    EXPECT_EQ(ends_of(rows, "latency"), once);
    EXPECT_EQ(ends_of(rows, "bandwidth"), both_ways);
    EXPECT_EQ(ends_of(rows, "bidirectional"), once);
    EXPECT_EQ(rows.size(), 2 * once.size() + both_ways.size() + 2);
    EXPECT_EQ(rows[rows.size() - 2].text.at("kind"), "bisection");
    EXPECT_EQ(rows.back().text.at("kind"), "all_to_all");
  }
}

TEST(P2p, EveryOptionIsProven) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    for (const char* pairs : {"all", "neighbours", "isolated", "sample:1", "sample:3"}) {
      for (const char* renew : {"1", "3"}) {
        SCOPED_TRACE(fmt::format("{} ranks, pairs={}, renew={}", ranks, pairs, renew));
        Request request = request_of(ranks, {{"pairs", pairs}, {"renew", renew}, {"size", "1000"}});
        for (int rank = 0; rank < ranks; ++rank) request.node_of_rank.push_back(rank / 3);
        prove(request);
      }
    }
    for (const char* kind : {"latency", "bandwidth", "bidirectional", "bisection", "all_to_all"}) {
      SCOPED_TRACE(kind);
      const auto rows = prove(request_of(ranks, {{"kinds", kind}, {"size", "9"}}));
      EXPECT_FALSE(rows.empty());
      for (const RowSpec& row : rows) EXPECT_EQ(row.text.at("kind"), kind);
    }
  }
}

TEST(P2p, CommunicatorsAreRenewedAfterSoManyRounds) {
  EXPECT_EQ(batches(request_of(16)), 3);  // 15 rounds by 8, and the last
  EXPECT_EQ(batches(request_of(17)), 4);  // 17 by 8, and the last
  EXPECT_EQ(batches(request_of(17, "renew=17"_options)), 2);
  EXPECT_EQ(batches(request_of(16, "kinds=latency"_options)), 2);
  EXPECT_EQ(batches(request_of(16, "kinds=bisection"_options)), 1);
}

TEST(P2p, CountsLatencyOneWay) {
  const Bench bench = build(request_of(2, {{"kinds", "latency"}}), 0);
  EXPECT_TRUE(bench.session.connects_in_play);
  ASSERT_THAT(bench.cases, SizeIs(1));
  EXPECT_EQ(bench.cases[0].calls, 2U);
  EXPECT_EQ(bench.rows[0].number.at("bytes"), 8);
  // There and back, one after the other.
  EXPECT_EQ(bench.set.of(0).section(bench.cases[0].section).ops.size(), 2U);
}

TEST(P2p, RanksThatAreAlikeShareAProgram) {
  EXPECT_THAT(build(request_of(64, {{"kinds", "bisection"}}), 0).set.programs, SizeIs(2));
  EXPECT_THAT(build(request_of(64, {{"kinds", "all_to_all"}}), 0).set.programs, SizeIs(1));
  EXPECT_LE(build(request_of(64, {{"pairs", "neighbours"}}), 0).set.programs.size(), 4U);
}

TEST(P2p, LeavesSilentPairsInPeace) {
  for (int ranks = 2; ranks <= 7; ++ranks) {
    SCOPED_TRACE(ranks);
    Request request = request_of(ranks, {{"size", "1KiB"}});
    const std::size_t rows_of_all = prove(request).size();
    request.silent_pairs = {{0, 1}};
    const auto rows = prove(request);
    EXPECT_EQ(rows.size(), rows_of_all);  // they are there, and say so
    for (const RowSpec& row : rows) {
      const bool has_both =
          std::ranges::count(row.ranks, 0) + std::ranges::count(row.ranks, 1) == 2;
      const bool is_of_all =
          row.text.at("kind") == "bisection" || row.text.at("kind") == "all_to_all";
      EXPECT_EQ(row.silent.has_value(), has_both || is_of_all);
    }
  }
}

TEST(P2p, RefusesWhatMeansNothing) {
  const auto refusal = [](const Request& request) {
    return testing_support::refusal([&] { (void)build(request, 0); });
  };
  EXPECT_THAT(refusal(request_of(1)), HasSubstr("2 ranks"));
  EXPECT_THAT(refusal({.mesh = {.tp = 2, .dp = 2}}), HasSubstr("dp=2,tp=2"));
  for (const char* pairs : {"sample:0", "sample:", "sample:2x", "sample:-1", "every", "Sample:2"}) {
    EXPECT_THAT(refusal(request_of(2, {{"pairs", pairs}})), HasSubstr(pairs));
  }
  testing_support::expect_words_of<Options>(
      {{"timeout=0s"_options, {"timeout"}},
       {"timeout=soon"_options, {"timeout"}},
       {"size=3"_options, {"all_to_all"}},
       {"size=3 kinds=bandwidth"_options, {}}},
      [&](const Options& options) { return refusal(request_of(4, options)); });
}

}  // namespace
}  // namespace isoscale::workloads::p2p

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

/// Bytes of a copy count once between memories, twice within one; a triad moves three arrays.
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
