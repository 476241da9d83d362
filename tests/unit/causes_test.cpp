// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/wait_causes.hpp"
#include "analysis/efficiency/slow_ranks_and_links.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis::efficiency {
namespace {

/// Two nodes of two GPUs each.
results::RunData two_nodes() {
  results::RunData run = launch("a", 2, 2);
  for (results::RankFacts& facts : run.rank_facts) {
    facts.text = {{"gpu_name", "NVIDIA H200"},
                  {"gpu_pci", "00000000:" + std::to_string(facts.rank) + "B:00.0"}};
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

std::vector<NamedCause> named(const results::PointData& point,
                              const results::RunData& run = two_nodes()) {
  const breakdown::TracedSteps steps = breakdown::traced_steps(point);
  return named_causes(run, point, steps, breakdown::breakdown(point, steps));
}

/// Expects that one cause is found, with this kind and these ranks; returns it, or none to look at.
NamedCause only_cause(const std::vector<NamedCause>& all, const std::string& kind,
                      const std::vector<int>& ranks) {
  EXPECT_EQ(all.size(), 1U);
  if (all.size() != 1) return {};
  EXPECT_EQ(all[0].kind, kind);
  EXPECT_EQ(all[0].ranks, ranks);
  return all[0];
}

TEST(NamedCauses, AreNoneOfACleanPoint) {
  results::PointData point = four_ranks();
  EXPECT_THAT(named_causes(two_nodes(), point, {}, breakdown::breakdown(point)), IsEmpty())
      << "no traces";
  add(point, 3, {500, 500, 500, 500});
  add_gemm_sums(point, -1, 1);
  EXPECT_THAT(named(point), IsEmpty());
}

TEST(NamedCauses, NameASlowRankWithItsPlaceAndSinceWhen) {
  results::PointData point = four_ranks();
  add(point, 1, {500, 500, 500, 500});
  add_gemm_sums(point, 3, 1.25);
  const NamedCause slow = only_cause(named(point), "slow rank", {3});
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
  add_gemm_sums(point, 3, 1.25, 10);
  EXPECT_THAT(only_cause(named(point), "slow rank", {3}).text, HasSubstr("since step 10"));
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
  const NamedCause link = only_cause(named(two_by_two(300, 100)), "slow link", {1, 3});
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
    const NamedCause late = only_cause(named(point), "imbalance", {2});
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
  add_gemm_sums(point, 1, 1.25);
  using Cause = NamedCause;
  EXPECT_THAT(named(point),
              ElementsAre(Field(&Cause::kind, "slow rank"), Field(&Cause::kind, "slow link"),
                          Field(&Cause::kind, "waiting")));
}

/// Steps of `arrivals[i][rank]`, instance i of collectives of all ranks; nanoseconds.
breakdown::TracedSteps steps_of(const std::vector<std::vector<std::vector<int>>>& steps) {
  breakdown::TracedSteps result;
  for (const auto& arrivals : steps) {
    breakdown::TracedStep& step = result.steps.emplace_back();
    step.instances = static_cast<std::uint32_t>(arrivals.size());
    step.waits.resize(arrivals.front().size());
    step.instance.resize(arrivals.front().size());
    for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
      const int last = std::ranges::max(arrivals[i]);
      for (std::size_t rank = 0; rank < arrivals[i].size(); ++rank) {
        step.waits[rank].emplace_back(last - arrivals[i][rank]);
        step.instance[rank].push_back(i);
      }
    }
  }
  return result;
}

TEST(WaitCauses, AreNoiseWhereAnotherRankIsLastThanInOtherSteps) {
  const breakdown::TracedSteps same = steps_of({{{0, 5, 30}}, {{5, 0, 20}}, {{0, 0, 10}}});
  for (std::size_t at = 0; at < 3; ++at) {
    EXPECT_THAT(breakdown::WaitCauses{same}.noise_shares(at), ElementsAre(DoubleEq(0)));
  }
  // Rank 2 is to be expected last by the two other steps, but waits 30 of 30 + 0 + 30 ns in the
  // first: over the mean of 20 ns a member.
  const breakdown::TracedSteps other = steps_of({{{0, 30, 0}}, {{0, 0, 10}}, {{0, 0, 10}}});
  EXPECT_THAT(breakdown::WaitCauses{other}.noise_shares(0), ElementsAre(DoubleEq(1.5)));
  // By steps 0 and 2 it is rank 1, with 10 ns against 30 of rank 2 and 40 of rank 0; it waits 10
  // of 20 ns in step 1.
  EXPECT_THAT(breakdown::WaitCauses{other}.noise_shares(1), ElementsAre(DoubleEq(1.5)));
  // In the first instance rank 0 is always last; nobody waits in the second; in the third rank 1 is
  // expected by the other step and waits 6 of 6 ns.
  const breakdown::TracedSteps three =
      steps_of({{{9, 0}, {4, 4}, {6, 0}}, {{7, 0}, {4, 4}, {0, 6}}});
  EXPECT_THAT(breakdown::WaitCauses{three}.noise_shares(0),
              ElementsAre(DoubleEq(0), IsNan(), DoubleEq(2)));
}

/// Programs of as many collectives.
program::OutlineSet collectives(int ranks, int ops) {
  Script script;
  for (int op = 0; op < ops; ++op) script.all_reduce(Axis::dp);
  return alike({.dp = ranks}, script).outline;
}

TEST(WaitCauses, LeaveOutWhatIsOfNoInstance) {
  breakdown::TracedSteps steps = steps_of({{{9, 0}}, {{7, 0}}});
  for (breakdown::TracedStep& step : steps.steps) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      step.waits[rank].emplace_back(100);
      step.instance[rank].push_back(breakdown::no_instance);
    }
  }
  const breakdown::WaitCauses causes{steps};
  EXPECT_THAT(causes.noise_shares(0), ElementsAre(DoubleEq(0)));
  EXPECT_EQ(causes.instances(), 2U);
  const breakdown::CausedWait caused = causes.caused(collectives(2, 2));
  EXPECT_THAT(caused.of_rank, ElementsAre(DoubleNear(8e-9, 1e-20), 0));
  EXPECT_THAT(caused.steps_as_last, ElementsAre(2, 0));
}

TEST(WaitCauses, ChargeTheLastForAllWaiting) {
  // Rank 2 lets the others wait 30 + 25 and 20 + 20 ns; in another instance rank 0 does, 3 + 2.
  const breakdown::TracedSteps steps = steps_of({{{0, 5, 30}, {8, 5, 6}}, {{0, 0, 20}, {1, 1, 1}}});
  const breakdown::CausedWait caused = breakdown::WaitCauses{steps}.caused(collectives(3, 2));
  EXPECT_THAT(caused.of_rank,
              ElementsAre(DoubleNear(2.5e-9, 1e-20), 0, DoubleNear(47.5e-9, 1e-20)));
  EXPECT_THAT(caused.steps_as_last, ElementsAre(0, 0, 2));
}

TEST(WaitCauses, DivideTheWaitOfABreakdown) {
  const auto of = [](const Spans& arrivals) {
    results::PointData point = alike({.dp = 2}, Script{}.compute().all_reduce(Axis::dp));
    // Too few collectives to tell by them: what ranks computed in more steps does.
    for (std::uint32_t i = 0; i < 6; ++i) {
      const auto& [first, second] = arrivals[i % arrivals.size()];
      point.op_sums.push_back({.step = i,
                               .gemm = {first * 1e-9, second * 1e-9},
                               .other_compute = {0, 0},
                               .copies = {0, 0},
                               .communication = {0, 0}});
    }
    for (const auto& [first, second] : arrivals) {
      add_step(point, step({0, 100}, {{{0, first}, {first, 100}}, {{0, second}, {second, 100}}}));
    }
    return breakdown::breakdown(point);
  };
  // Rank 1 is always 20 ns late: no noise. Then now one, now the other: all of it.
  const auto late = of({{40, 60}, {40, 60}, {40, 60}});
  EXPECT_NEAR(late.waits.value().imbalance, 10e-9, 1e-18);
  EXPECT_NEAR(late.waits->noise, 0, 1e-18);
  EXPECT_THAT(late.caused.of_rank, ElementsAre(0, DoubleNear(20e-9, 1e-18)));
  EXPECT_THAT(late.caused.steps_as_last, ElementsAre(0, 3));
  const auto noisy = of({{40, 60}, {60, 40}});
  EXPECT_NEAR(noisy.waits.value().imbalance, 0, 1e-18);
  EXPECT_NEAR(noisy.waits->noise, 10e-9, 1e-18);
  EXPECT_FALSE(of({{40, 60}}).waits);
}

// Steps with causes that are known: the breakdown must find each within one percentage point.

constexpr int ranks = 4;
constexpr int layers = 50;
constexpr int traced_steps = 6;
constexpr int compute_time = 10'000, transfer_time = 3'000;  // nanoseconds

/// Nanoseconds that a rank computes before all-reduce number `layer` in a step.
using Compute = std::function<int(int step, int rank, int layer)>;

/// Layers of a GEMM and an all-reduce among all ranks.
breakdown::BreakdownResult known(const Compute& compute) {
  Script script;
  for (int layer = 0; layer < layers; ++layer) script.compute().all_reduce(Axis::tp);
  results::PointData point = alike({.tp = ranks}, script);
  for (int number = 0; number < traced_steps; ++number) {
    std::vector<Spans> spans(ranks);
    int now = 0;
    for (int layer = 0; layer < layers; ++layer) {
      const int begin = now;
      for (int rank = 0; rank < ranks; ++rank) {
        now = std::max(now, begin + compute(number, rank, layer) + transfer_time);
      }
      for (int rank = 0; rank < ranks; ++rank) {
        const int computed = begin + compute(number, rank, layer);
        auto& of_rank = spans[static_cast<std::size_t>(rank)];
        of_rank.insert(of_rank.end(), {{begin, computed}, {computed, now}});
      }
    }
    add_step(point, step({0, now}, spans));
  }
  return breakdown::breakdown(point);
}

/// Returns the mean over steps of `value` of the ranks' compute times; seconds of a step. All ranks
/// leave an all-reduce together, so these are the arrivals at the next.
double truth(const Compute& compute, double (*value)(const std::vector<double>& of_rank)) {
  double sum = 0;
  for (int number = 0; number < traced_steps; ++number) {
    for (int layer = 0; layer < layers; ++layer) {
      sum += value(mapped(std::views::iota(0, ranks),
                          [&](int rank) -> double { return compute(number, rank, layer); }));
    }
  }
  return sum / traced_steps * 1e-9;
}

double largest(const std::vector<double>& values) { return std::ranges::max(values); }
double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// A number in 0 ... 1 that step, rank and layer determine.
double chance(std::uint64_t seed, int step, int rank, int layer) {
  std::mt19937_64 random{seed * 1'000'003 + static_cast<std::uint64_t>(step) * 10'007 +
                         static_cast<std::uint64_t>(rank) * 101 +
                         static_cast<std::uint64_t>(layer)};
  return std::uniform_real_distribution<>{0, 1}(random);
}

TEST(KnownCauses, ASlowRankAndNoiseAreToldApart) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    for (const int slow : {0, 1'500}) {  // how much longer rank 1 computes
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", slow by " << slow);
      const Compute compute = [=](int step, int rank, int layer) {
        const double noise = (slow > 0 ? 2'000 : 4'000) * chance(seed, step, rank, layer);
        return compute_time + (rank == 1 ? slow : 0) + static_cast<int>(noise);
      };
      const auto result = known(compute);
      ASSERT_TRUE(result.mean && result.waits) << result.missing;
      const double all = truth(compute, mean), wait = truth(compute, largest) - all;
      const double of_slow = truth(compute, [](const auto& of_rank) { return of_rank[1]; }) - all;
      const double imbalance = slow > 0 ? of_slow : 0, point = 0.01 * result.mean->step;
      EXPECT_NEAR(result.mean->wait, wait, point);
      EXPECT_NEAR(result.waits->imbalance, imbalance, point);
      EXPECT_NEAR(result.waits->noise, wait - imbalance, point);
      EXPECT_NEAR(result.mean->compute, all, point);
      EXPECT_NEAR(result.mean->transfer, layers * transfer_time * 1e-9, point);
    }
  }
}

}  // namespace
}  // namespace isoscale::analysis::efficiency
