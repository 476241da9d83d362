// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/causes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cause_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::Script;
using samples::trace;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Two nodes of two GPUs each.
results::RunData two_nodes() {
  results::RunData run;
  for (int rank = 0; rank < 4; ++rank) {
    run.rank_facts.push_back(
        {.rank = rank,
         .host = "node" + std::to_string(rank / 2),
         .node = rank / 2,
         .text = {{"gpu_name", "NVIDIA H200"},
                  {"gpu_pci", "00000000:" + std::to_string(rank) + "B:00.0"}}});
  }
  return run;
}

/// Four ranks that compute and then reduce; no steps.
results::PointData four_ranks() {
  return samples::alike({.dp = 4}, Script{}.compute().all_reduce(Axis::dp).compute());
}

/// A step of 1000 ns in which rank r begins its all-reduce at arrivals[r]; it ends 100 ns after the
/// last arrival, and computing until 1000 ns.
void add(results::PointData& point, const std::vector<int>& arrivals,
         const std::vector<int>& computed) {
  timeline::Timeline step;
  const int last = *std::ranges::max_element(arrivals);
  for (int rank = 0; rank < point.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    step.ranks.push_back(trace(
        rank, {0, 1000}, {{0, computed[at]}, {arrivals[at], last + 100}, {last + 100, 1000}}));
  }
  samples::add_step(point, std::move(step));
}
void add(results::PointData& point, const std::vector<int>& arrivals) {
  add(point, arrivals, arrivals);
}

std::vector<efficiency::NamedCause> found(const results::RunData& run,
                                          const results::PointData& point) {
  const breakdown::TracedSteps steps = breakdown::traced_steps(point);
  return efficiency::named_causes(run, point, steps, breakdown::breakdown(point, steps));
}
std::vector<efficiency::NamedCause> found(const results::PointData& point) {
  return found(two_nodes(), point);
}

/// Expects that one cause is found, with this kind and these ranks; returns it, or none to look at.
efficiency::NamedCause only_cause(const std::vector<efficiency::NamedCause>& all,
                                  const std::string& kind, const std::vector<int>& ranks) {
  EXPECT_EQ(all.size(), 1U);
  if (all.size() != 1) return {};
  EXPECT_EQ(all[0].kind, kind);
  EXPECT_EQ(all[0].ranks, ranks);
  return all[0];
}

void add_gemm_sums(results::PointData& point, int slow, double factor, int first = 0) {
  for (int step = 0; step < 20; ++step) {
    auto& sums = point.op_sums.emplace_back();
    sums.step = static_cast<std::uint32_t>(step);
    for (int rank = 0; rank < point.ranks; ++rank) {
      // A spread that is the same in every test, and no two samples alike.
      const double jitter = 1 + 0.001 * ((step * 7 + rank * 3) % 11);
      sums.gemm.push_back(jitter * (rank == slow && step >= first ? factor : 1));
    }
  }
}

TEST(NamedCauses, AreNoneOfACleanPoint) {
  results::PointData point = four_ranks();
  EXPECT_THAT(efficiency::named_causes(two_nodes(), point, {}, breakdown::breakdown(point)),
              IsEmpty())
      << "no traces";
  for (int step = 0; step < 3; ++step) add(point, {500, 500, 500, 500});
  add_gemm_sums(point, -1, 1);
  EXPECT_THAT(found(point), IsEmpty());
}

TEST(NamedCauses, NameASlowRankWithItsPlaceAndSinceWhen) {
  results::PointData point = four_ranks();
  add(point, {500, 500, 500, 500});
  add_gemm_sums(point, 3, 1.25);
  const efficiency::NamedCause slow = only_cause(found(point), "slow rank", {3});
  EXPECT_NEAR(slow.size, 1.25, 0.02);
  EXPECT_THAT(slow.text, HasSubstr("rank 3 (node1, NVIDIA H200 00000000:3B:00.0) is slow in its "
                                   "own GEMMs: they take 1.25 times as long as those of like "
                                   "ranks (1.2"));
  EXPECT_THAT(slow.text, HasSubstr(", all along"));
  point.op_sums.clear();
  add_gemm_sums(point, 3, 1.25, 10);
  EXPECT_THAT(only_cause(found(point), "slow rank", {3}).text, HasSubstr(", since step 10"));
}

TEST(NamedCauses, SayWhenARankWasComparedByRate) {
  results::PointData point = samples::point({.pp = 4}, std::vector<Script>(4, Script{}.compute()),
                                            {{trace(0, {0, 10}, {{0, 10}})}});
  point.flop_of_rank.assign(4, 1e9);
  add_gemm_sums(point, 0, 1.5);
  EXPECT_THAT(only_cause(found(point), "slow rank", {0}).text,
              HasSubstr("1.50 times as long a FLOP as those of all ranks"));
}

TEST(NamedCauses, UseTheFactsOfTheRanksInTheWorld) {
  results::PointData point = four_ranks();
  add(point, {500, 500, 500, 500});
  add_gemm_sums(point, 0, 1.25);
  point.world_rank = {2, 3, 0, 1};
  EXPECT_THAT(found(point).at(0).text, HasSubstr("rank 2 (node1, NVIDIA H200 00000000:2B:00.0)"));
  // Without GPU the host alone; without facts the rank alone.
  results::RunData run = two_nodes();
  run.rank_facts[2].text.clear();
  EXPECT_THAT(found(run, point).at(0).text, HasSubstr("rank 2 (node1) is"));
  EXPECT_THAT(found({}, point).at(0).text, HasSubstr("rank 2 is slow"));
}

/// dp groups 0-2 and 1-3, tp groups 0-1 and 2-3; a step in which ops end at these times.
results::PointData two_by_two(int dp_of_odd, int tp_of_first) {
  results::PointData point =
      samples::alike({.tp = 2, .dp = 2}, Script{}.all_reduce(Axis::dp).all_reduce(Axis::tp));
  for (int step = 0; step < 3; ++step) {
    timeline::Timeline timeline;
    for (int rank = 0; rank < 4; ++rank) {
      const int dp = rank % 2 == 1 ? dp_of_odd : 100;
      const int tp = rank / 2 == 0 ? tp_of_first : 100;
      timeline.ranks.push_back(trace(rank, {0, 1000}, {{0, dp}, {500, 500 + tp}}));
    }
    samples::add_step(point, std::move(timeline));
  }
  return point;
}

TEST(NamedCauses, NameASlowLinkAndWhatSeveralShare) {
  const efficiency::NamedCause link = only_cause(found(two_by_two(300, 100)), "slow link", {1, 3});
  EXPECT_NEAR(link.size, 3, 1e-9);
  EXPECT_EQ(link.text,
            "slow link: all_reduce on dp takes 3.00 times as long a byte as elsewhere among "
            "rank 1 (node0, NVIDIA H200 00000000:1B:00.0), "
            "rank 3 (node1, NVIDIA H200 00000000:3B:00.0)");
  const auto all = found(two_by_two(300, 250));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].kind, "slow link");
  EXPECT_EQ(all[2].ranks, std::vector{1});
  EXPECT_EQ(all[2].text, "slow links share rank 1 (node0, NVIDIA H200 00000000:1B:00.0)");
}

TEST(NamedCauses, ShortenLongLists) {
  // dp groups of 6 ranks.
  results::PointData point = samples::alike({.tp = 2, .dp = 6}, Script{}.all_reduce(Axis::dp));
  timeline::Timeline timeline;
  for (int rank = 0; rank < 12; ++rank) {
    timeline.ranks.push_back(trace(rank, {0, 1000}, {{0, rank % 2 == 0 ? 100 : 200}}));
  }
  for (int step = 0; step < 3; ++step) samples::add_step(point, timeline);
  EXPECT_THAT(found({}, point).at(0).text,
              HasSubstr("among rank 1, rank 3, rank 5, rank 7 and 2 more"));
}

TEST(NamedCauses, NameTheRankThatOthersAlwaysWaitFor) {
  results::PointData point = four_ranks();
  for (int step = 0; step < 21; ++step) add(point, {500, 500, 600, 500});
  const efficiency::NamedCause late = only_cause(found(point), "imbalance", {2});
  EXPECT_NEAR(late.size, 0.075, 1e-12);  // three of four wait 100 of 1000 ns
  EXPECT_EQ(late.text,
            "imbalance: 7.5% of the step is waiting for ranks that are consistently late, mostly "
            "for rank 2 (node1, NVIDIA H200 00000000:2B:00.0), last in 21 of 21 traced steps: more "
            "computation");
}

TEST(NamedCauses, TellWhatMakesTheLateRankLate) {
  results::PointData gaps = four_ranks();
  for (int step = 0; step < 21; ++step) add(gaps, {500, 500, 600, 500}, {500, 500, 500, 500});
  EXPECT_THAT(found(gaps).at(0).text, HasSubstr(": gaps before its ops"));

  results::PointData copies =
      samples::alike({.dp = 4}, Script{}.copy().all_reduce(Axis::dp).compute());
  for (int step = 0; step < 21; ++step) add(copies, {500, 500, 600, 500});
  EXPECT_THAT(found(copies).at(0).text, HasSubstr(": more copies"));
}

TEST(NamedCauses, GiveNoReasonWhereThereIsNone) {
  // Rank 2 computes as long as the others, but first what they do last: they wait 100 ns each for
  // it, then it for them.
  results::PointData point = samples::alike(
      {.dp = 4}, Script{}.compute().all_reduce(Axis::dp).compute().all_reduce(Axis::dp));
  timeline::Timeline step;
  for (int rank = 0; rank < 4; ++rank) {
    const int first = rank == 2 ? 600 : 500;
    const int second = rank == 2 ? 800 : 900;
    step.ranks.push_back(
        trace(rank, {0, 1000}, {{0, first}, {first, 700}, {700, second}, {second, 1000}}));
  }
  for (int i = 0; i < 21; ++i) samples::add_step(point, step);
  EXPECT_THAT(only_cause(found(point), "imbalance", {2}).text,
              testing::EndsWith("21 of 21 traced steps"));
}

TEST(NamedCauses, BlameNobodyForWhatSeveralCause) {
  // Two collectives of pairs: rank 1 is late in one, rank 2 in the other.
  results::PointData point =
      samples::alike({.tp = 2, .dp = 2}, Script{}.compute().all_reduce(Axis::tp));
  for (int step = 0; step < 21; ++step) {
    timeline::Timeline timeline;
    for (int rank = 0; rank < 4; ++rank) {
      const int arrival = rank == 1 || rank == 2 ? 600 : 500;
      timeline.ranks.push_back(trace(rank, {0, 1000}, {{0, arrival}, {arrival, 1000}}));
    }
    samples::add_step(point, std::move(timeline));
  }
  EXPECT_EQ(only_cause(found(point), "imbalance", {}).text,
            "imbalance: 5.0% of the step is waiting for ranks that are consistently late");
}

TEST(NamedCauses, DoNotTellImbalanceFromNoiseByFewCollectives) {
  results::PointData point = four_ranks();
  add(point, {500, 500, 600, 500});
  EXPECT_EQ(found(point).at(0).kind, "waiting") << "the waiting of one step is not divided";
  for (int step = 0; step < 2; ++step) add(point, {500, 500, 600, 500});
  EXPECT_THAT(only_cause(found(point), "waiting", {2}).text,
              HasSubstr("waiting: 7.5% of the step is for late ranks, mostly for rank 2"));
}

TEST(NamedCauses, CallLatenessThatWandersNoise) {
  results::PointData point = four_ranks();
  for (int step = 0; step < 24; ++step) {
    std::vector<int> arrivals(4, 500);
    arrivals[static_cast<std::size_t>(step % 4)] = 600;
    add(point, arrivals);
  }
  const efficiency::NamedCause noise = only_cause(found(point), "noise", {});
  EXPECT_NEAR(noise.size, 0.075, 1e-12);
  EXPECT_EQ(noise.text, "noise: 7.5% of the step is waiting for ranks that are occasionally late");
}

TEST(NamedCauses, DoNotMentionWaitingBelowOnePercent) {
  results::PointData point = four_ranks();
  for (int step = 0; step < 21; ++step) add(point, {500, 500, 512, 500});  // 0.9%
  EXPECT_THAT(found(point), IsEmpty());
  point.traces.clear();
  for (int step = 0; step < 21; ++step) add(point, {500, 500, 516, 500});  // 1.2%
  EXPECT_THAT(found(point), Not(IsEmpty()));
}

TEST(NamedCauses, ComeGravestFirst) {
  results::PointData point = two_by_two(300, 100);
  for (timeline::Timeline& step : point.traces) {
    // Rank 0 comes late to the second all-reduce.
    step.ranks[0].spans[1].start += units::Nanoseconds{60};
    step.ranks[1].spans[1].end += units::Nanoseconds{60};
    step.ranks[0].spans[1].end += units::Nanoseconds{60};
  }
  add_gemm_sums(point, 1, 1.25);
  std::vector<std::string> kinds;
  for (const efficiency::NamedCause& cause : found(point)) kinds.push_back(cause.kind);
  EXPECT_THAT(kinds, testing::ElementsAre("slow rank", "slow link", "waiting"));
}

}  // namespace
}  // namespace isoscale::analysis
