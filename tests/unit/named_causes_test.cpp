// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/causes.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

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
  return alike({.dp = 4}, Script{}.compute().all_reduce(Axis::dp).compute());
}

/// Adds steps of 1000 ns in which rank r begins its all-reduce at arrivals[r], and computes until
/// then or until `computed`; all-reduces end 100 ns after the last arrival.
void add(results::PointData& point, int count, const std::vector<int>& arrivals, int computed = 0) {
  const int last = std::ranges::max(arrivals) + 100;
  const std::vector<Spans> spans = mapped(arrivals, [&](int at) {
    return Spans{{0, computed > 0 ? computed : at}, {at, last}, {last, 1000}};
  });
  for (int i = 0; i < count; ++i) add_step(point, step({0, 1000}, spans));
}

std::vector<efficiency::NamedCause> named(const results::PointData& point,
                                          const results::RunData& run = two_nodes()) {
  const breakdown::TracedSteps steps = breakdown::traced_steps(point);
  return efficiency::named_causes(run, point, steps, breakdown::breakdown(point, steps));
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

TEST(NamedCauses, AreNoneOfACleanPoint) {
  results::PointData point = four_ranks();
  EXPECT_THAT(efficiency::named_causes(two_nodes(), point, {}, breakdown::breakdown(point)),
              IsEmpty())
      << "no traces";
  add(point, 3, {500, 500, 500, 500});
  samples::add_gemm_sums(point, -1, 1);
  EXPECT_THAT(named(point), IsEmpty());
}

TEST(NamedCauses, NameASlowRankWithItsPlaceAndSinceWhen) {
  results::PointData point = four_ranks();
  add(point, 1, {500, 500, 500, 500});
  samples::add_gemm_sums(point, 3, 1.25);
  const efficiency::NamedCause slow = only_cause(named(point), "slow rank", {3});
  EXPECT_NEAR(slow.size, 1.25, 0.02);
  EXPECT_THAT(slow.text, AllOf(HasSubstr("rank 3 (node1, NVIDIA H200 00000000:3B:00.0)"),
                               HasSubstr("1.25 times"), HasSubstr("all along")));
  // The facts are those of the ranks in the world; without GPU the host alone, else the rank alone.
  point.world_rank = {2, 3, 1, 0};
  results::RunData run = two_nodes();
  run.rank_facts[0].text.clear();
  EXPECT_THAT(named(point, run).at(0).text, HasSubstr("rank 0 (node0) is"));
  EXPECT_THAT(named(point, {}).at(0).text, HasSubstr("rank 0 is slow"));
  point.op_sums.clear();
  samples::add_gemm_sums(point, 3, 1.25, 10);
  EXPECT_THAT(only_cause(named(point), "slow rank", {3}).text, HasSubstr("since step 10"));
  // Ranks with programs of their own are compared by rate.
  point = samples::point({.pp = 4}, std::vector<Script>(4, Script{}.compute()),
                         {{trace(0, {0, 10}, {{0, 10}})}});
  point.flop_of_rank.assign(4, 1e9);
  samples::add_gemm_sums(point, 0, 1.5);
  EXPECT_THAT(only_cause(named(point), "slow rank", {0}).text,
              AllOf(HasSubstr("1.50"), HasSubstr("FLOP")));
}

/// dp groups 0-2 and 1-3, tp groups 0-1 and 2-3; three steps in which ops end at these times.
results::PointData two_by_two(int dp_of_odd, int tp_of_first) {
  results::PointData point =
      alike({.tp = 2, .dp = 2}, Script{}.all_reduce(Axis::dp).all_reduce(Axis::tp));
  const int first = 500 + tp_of_first;
  for (int i = 0; i < 3; ++i) {
    add_step(point, step({0, 1000}, {{{0, 100}, {500, first}},
                                     {{0, dp_of_odd}, {500, first}},
                                     {{0, 100}, {500, 600}},
                                     {{0, dp_of_odd}, {500, 600}}}));
  }
  return point;
}

TEST(NamedCauses, NameASlowLinkAndWhatSeveralShare) {
  const efficiency::NamedCause link = only_cause(named(two_by_two(300, 100)), "slow link", {1, 3});
  EXPECT_NEAR(link.size, 3, 1e-9);
  EXPECT_THAT(link.text, AllOf(HasSubstr("all_reduce on dp takes 3.00 times"),
                               HasSubstr("rank 1 (node0, NVIDIA H200 00000000:1B:00.0), rank 3")));
  const auto all = named(two_by_two(300, 250));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].kind, "slow link");
  EXPECT_EQ(all[2].ranks, std::vector{1});
  EXPECT_THAT(all[2].text, HasSubstr("share rank 1"));
  // Long lists are shortened: dp groups of 6 ranks.
  results::PointData point = alike({.tp = 2, .dp = 6}, Script{}.all_reduce(Axis::dp));
  timeline::Timeline timeline;
  for (int rank = 0; rank < 12; ++rank) {
    timeline.ranks.push_back(trace(rank, {0, 1000}, {{0, rank % 2 == 0 ? 100 : 200}}));
  }
  for (int step = 0; step < 3; ++step) add_step(point, timeline);
  EXPECT_THAT(named(point, {}).at(0).text, HasSubstr("rank 1, rank 3, rank 5, rank 7 and 2 more"));
}

TEST(NamedCauses, NameTheRankThatOthersAlwaysWaitForAndWhatMakesItLate) {
  for (const auto& [script, computed, reason] :
       {std::tuple{Script{}.compute(), 0, "more computation"},
        {Script{}.compute(), 500, "gaps before its ops"},
        {Script{}.copy(), 0, "more copies"}}) {
    results::PointData point = alike({.dp = 4}, Script{script}.all_reduce(Axis::dp).compute());
    add(point, 21, {500, 500, 600, 500}, computed);
    const efficiency::NamedCause late = only_cause(named(point), "imbalance", {2});
    EXPECT_NEAR(late.size, 0.075, 1e-12);  // three of four wait 100 of 1000 ns
    EXPECT_THAT(late.text, AllOf(HasSubstr("7.5%"), HasSubstr("rank 2 (node1"),
                                 HasSubstr("last in 21 of 21"), EndsWith(reason)));
  }
}

TEST(NamedCauses, GiveNoReasonWhereThereIsNone) {
  // Rank 2 computes as long as the others, but first what they do last: they wait 100 ns each for
  // it, then it for them.
  results::PointData point =
      alike({.dp = 4}, Script{}.compute().all_reduce(Axis::dp).compute().all_reduce(Axis::dp));
  const Spans usual{{0, 500}, {500, 700}, {700, 900}, {900, 1000}};
  const Spans odd{{0, 600}, {600, 700}, {700, 800}, {800, 1000}};
  for (int i = 0; i < 21; ++i) add_step(point, step({0, 1000}, {usual, usual, odd, usual}));
  EXPECT_THAT(only_cause(named(point), "imbalance", {2}).text, EndsWith("21 of 21 traced steps"));
}

TEST(NamedCauses, BlameNobodyForWhatSeveralCause) {
  // Two collectives of pairs: rank 1 is late in one, rank 2 in the other.
  results::PointData point = alike({.tp = 2, .dp = 2}, Script{}.compute().all_reduce(Axis::tp));
  const Spans soon{{0, 500}, {500, 1000}}, late{{0, 600}, {600, 1000}};
  for (int i = 0; i < 21; ++i) add_step(point, step({0, 1000}, {soon, late, late, soon}));
  EXPECT_THAT(only_cause(named(point), "imbalance", {}).text,
              AllOf(HasSubstr("5.0%"), EndsWith("consistently late")));
}

TEST(NamedCauses, TellImbalanceFromNoiseByEnoughCollectives) {
  results::PointData point = four_ranks();
  add(point, 1, {500, 500, 600, 500});
  EXPECT_EQ(named(point).at(0).kind, "waiting") << "the waiting of one step is not divided";
  add(point, 2, {500, 500, 600, 500});
  EXPECT_THAT(only_cause(named(point), "waiting", {2}).text, HasSubstr("7.5%"));
  point.traces.clear();
  for (int step = 0; step < 24; ++step) {
    std::vector<int> arrivals(4, 500);
    arrivals[static_cast<std::size_t>(step % 4)] = 600;
    add(point, 1, arrivals);
  }
  EXPECT_NEAR(only_cause(named(point), "noise", {}).size, 0.075, 1e-12);
}

TEST(NamedCauses, DoNotMentionWaitingBelowOnePercent) {
  results::PointData point = four_ranks();
  add(point, 21, {500, 500, 512, 500});  // 0.9%
  EXPECT_THAT(named(point), IsEmpty());
  point.traces.clear();
  add(point, 21, {500, 500, 516, 500});  // 1.2%
  EXPECT_THAT(named(point), SizeIs(1));
}

TEST(NamedCauses, ComeGravestFirst) {
  results::PointData point = two_by_two(300, 100);
  for (timeline::Timeline& step : point.traces) {
    // Rank 0 comes late to the second all-reduce.
    step.ranks[0].spans[1].start += units::Nanoseconds{60};
    step.ranks[1].spans[1].end += units::Nanoseconds{60};
    step.ranks[0].spans[1].end += units::Nanoseconds{60};
  }
  samples::add_gemm_sums(point, 1, 1.25);
  using Cause = efficiency::NamedCause;
  EXPECT_THAT(named(point),
              ElementsAre(Field(&Cause::kind, "slow rank"), Field(&Cause::kind, "slow link"),
                          Field(&Cause::kind, "waiting")));
}

}  // namespace
}  // namespace isoscale::analysis
