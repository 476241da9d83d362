// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Serving: its programs, and without a machine arrivals, dispatch, queues, statistics and the
// search for a rate.

#include "workloads/serve/serve.hpp"
#include "program/check_races_and_matching.hpp"
#include "stack_samples.hpp"
#include "workloads/infer/replica.hpp"
#include "workloads/serve/arrivals_and_rate_search.hpp"

namespace isoscale::workloads::serve {
namespace {

constexpr std::uint64_t many = 200'000;

TEST(Arrivals, AreReproducibleDifferBySeedAndScaleWithTheRate) {
  const Arrivals poisson{.rate = 3};
  const auto times = arrival_times(poisson, 100, 7);
  EXPECT_EQ(times, arrival_times(poisson, 100, 7));
  EXPECT_NE(times, arrival_times(poisson, 100, 8));
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_GT(times.front(), 0);
  // More of them begin alike.
  const auto more = arrival_times(poisson, 200, 7);
  EXPECT_TRUE(std::equal(times.begin(), times.end(), more.begin()));
  const auto slow = arrival_times({.rate = 2}, 50, 1), quick = arrival_times({.rate = 8}, 50, 1);
  for (std::size_t i = 0; i < slow.size(); ++i) EXPECT_NEAR(slow[i], 4 * quick[i], 1e-9 * slow[i]);
}

/// Mean and variance over mean of the number of arrivals in stretches of `length` seconds.
std::pair<double, double> dispersion(const std::vector<double>& times, double length) {
  std::vector<double> counts(static_cast<std::size_t>(times.back() / length), 0.0);
  for (const double time : times) {
    const auto at = static_cast<std::size_t>(time / length);
    if (at < counts.size()) ++counts[at];
  }
  const double mean =
      std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double squares = 0;
  for (const double count : counts) squares += (count - mean) * (count - mean);
  return {mean, squares / static_cast<double>(counts.size() - 1) / mean};
}

TEST(Arrivals, OfPoissonHaveTheVarianceOfTheirMeanAndExponentialGaps) {
  const auto times = arrival_times({.rate = 5}, many, 1);
  const auto [mean, ratio] = dispersion(times, 4);
  EXPECT_NEAR(mean, 20, 0.2);
  EXPECT_NEAR(ratio, 1, 0.05);
  double squares = 0, last = 0;
  for (const double time : times) {
    squares += (time - last) * (time - last);
    last = time;
  }
  EXPECT_NEAR(last / static_cast<double>(many), 0.2, 0.002);
  EXPECT_NEAR(squares / static_cast<double>(many), 0.08, 0.001);  // E[x^2] = 2 / rate^2
}

TEST(Arrivals, BurstsHaveTheSameRateAndSoManyTimesTheVariance) {
  const auto times = arrival_times({.process = Process::bursty, .rate = 5, .burst = 10}, many, 1);
  const auto [mean, ratio] = dispersion(times, 4);
  EXPECT_NEAR(mean, 20, 0.5);
  EXPECT_NEAR(ratio, 10, 0.5);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(times[i], times[i / 10 * 10]) << i;
  EXPECT_LT(times[9], times[10]);
}

TEST(Lengths, AreFixedOrUniform) {
  EXPECT_THAT(answer_lengths(Lengths::fixed, 16, 3, 1), ElementsAre(16, 16, 16));
  std::map<std::uint64_t, int> seen;
  for (const std::uint64_t tokens : answer_lengths(Lengths::uniform, 4, 40'000, 1)) ++seen[tokens];
  const auto even = [](std::uint64_t tokens) { return Pair(tokens, AllOf(Ge(9'600), Le(10'400))); };
  EXPECT_THAT(seen, ElementsAre(even(1), even(2), even(3), even(4)));
}

/// Requests that one server answers in order of arrival, each in one second.
std::vector<Outcome> queue(const std::vector<double>& arrivals) {
  std::vector<Outcome> outcomes;
  double free_at = 0;
  for (const double arrival : arrivals) {
    const double started = std::max(arrival, free_at);
    free_at = started + 1;
    outcomes.push_back({.arrival = arrival,
                        .started = started,
                        .first = free_at,
                        .finished = free_at,
                        .batch = outcomes.size()});
  }
  return outcomes;
}

double mean_wait(const std::vector<Outcome>& outcomes) {
  double sum = 0;
  for (const Outcome& one : outcomes) sum += one.started - one.arrival;
  return sum / static_cast<double>(outcomes.size());
}

/// Pollaczek-Khinchine: the mean wait of M/G/1 is rate E[s^2] / (2 (1 - rate E[s])).
TEST(Queue, OneServerWaitsAsTheFormulaHasIt) {
  for (const double load : {0.3, 0.6, 0.8}) {
    const auto arrivals = arrival_times({.rate = load}, many, 5);
    const auto outcomes = queue(arrivals);
    const double expected = load / (2 * (1 - load));
    EXPECT_NEAR(mean_wait(outcomes), expected, 0.06 * expected) << load;
    const Summary summary = summarise(outcomes, 1);
    EXPECT_NEAR(summary.replicas[0].utilisation, load, 0.02 * load);
    EXPECT_NEAR(summary.backlog_growth, 0, 0.01);
    EXPECT_FALSE(is_saturated(summary, outcomes, std::nullopt));
  }
}

/// The first of a burst of k waits as M/D/1 of bursts of service k s, the j-th j s longer: the mean
/// is rate k s^2 / (2 (1 - load)) + (k - 1) s / 2.
TEST(Queue, BurstsWaitForEachOther) {
  const double rate = 0.5, burst = 4;
  const auto outcomes =
      queue(arrival_times({.process = Process::bursty, .rate = rate, .burst = 4}, many, 5));
  const double expected = rate * burst / (2 * (1 - rate)) + (burst - 1) / 2;
  EXPECT_NEAR(mean_wait(outcomes), expected, 0.06 * expected);
}

TEST(Dispatch, ShortestQueueCountsAndLeastLoadedWeighs) {
  for (const auto& [policy, next] :
       {std::pair{Policy::shortest_queue, 0U}, std::pair{Policy::least_loaded, 1U}}) {
    Dispatch dispatch{policy, 2};
    EXPECT_EQ(dispatch.assign(10), 0U);
    EXPECT_EQ(dispatch.assign(1), 1U);
    // One each: equal by count, and it is replica 0's turn.
    EXPECT_EQ(dispatch.assign(1), next);
  }
}

TEST(Dispatch, AnswersFreeTheirReplica) {
  for (const Policy policy : {Policy::shortest_queue, Policy::least_loaded}) {
    Dispatch dispatch{policy, 2};
    EXPECT_EQ(dispatch.assign(3), 0U);
    EXPECT_EQ(dispatch.assign(3), 1U);
    dispatch.answered(1, 3);
    EXPECT_EQ(dispatch.assign(3), 1U);
    dispatch.answered(0, 3);
    EXPECT_THROW(dispatch.answered(0, 3), base::Error);
  }
}

TEST(Summary, QuantilesAreSamplesAndUndefinedWithoutEnough) {
  const auto quantiles = [](std::size_t count) {
    std::vector<Outcome> outcomes(count);
    for (std::size_t i = 0; i < count; ++i) outcomes[i].finished = static_cast<double>(i + 1);
    const Quantiles of = summarise(outcomes, 1).latency;
    return std::vector{of.median, of.p90, of.p99, of.max};
  };
  constexpr auto none = std::nullopt;
  EXPECT_THAT(quantiles(100), ElementsAre(50, 90, 99, 100));
  EXPECT_THAT(quantiles(99), ElementsAre(50, 90, none, 99));
  EXPECT_THAT(quantiles(9), ElementsAre(5, none, none, 9));
  // No answer has a second token.
  EXPECT_EQ(summarise(std::vector<Outcome>(1), 1).tpot.median, none);
}

TEST(Summary, OfAHandMadeTrial) {
  const std::vector<Outcome> outcomes{
      {.arrival = 1, .started = 1, .first = 2, .finished = 4, .tokens = 3},
      {.arrival = 2, .started = 4, .first = 5, .finished = 6, .batch = 1, .tokens = 2},
      {.arrival = 3, .started = 4, .first = 5, .finished = 8, .batch = 1, .tokens = 4},
      {.arrival = 4, .started = 4, .first = 5, .finished = 6, .replica = 1, .tokens = 1}};
  const Summary summary = summarise(outcomes, 3);
  EXPECT_THAT(
      (std::vector{summary.time, summary.offered, summary.achieved, summary.imbalance}),
      ElementsAre(DoubleEq(8), DoubleEq(1), DoubleEq(0.5), DoubleEq(7 / ((7 + 2 + 0) / 3.0))));
  EXPECT_THAT((std::vector{summary.latency.median, summary.latency.max, summary.ttft.max,
                           summary.queueing.median, summary.queueing.max, summary.tpot.max}),
              ElementsAre(3, 5, 3, 0, 2, 1));
  EXPECT_EQ(summary.replicas[0].batches, 2U);
  EXPECT_DOUBLE_EQ(summary.replicas[0].busy, 3 + 4);
  EXPECT_DOUBLE_EQ(summary.replicas[1].utilisation, 0.25);
  EXPECT_DOUBLE_EQ(summary.replicas[2].busy, 0);
  EXPECT_EQ(summary.backlog, 3U);  // the first has been answered at 4
}

TEST(Summary, BacklogGrowsByWhatIsNotAnswered) {
  // Offered half again of what is served: a third of the requests pile up.
  const auto outcomes = queue(arrival_times({.rate = 1.5}, 3000, 1));
  const Summary summary = summarise(outcomes, 1);
  EXPECT_NEAR(summary.backlog_growth, 1 - 1 / 1.5, 0.05);
  EXPECT_TRUE(is_saturated(summary, outcomes, std::nullopt));
}

TEST(Summary, OneInAHundredMayBeLate) {
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 200; ++i) {
    outcomes.push_back({.arrival = 1.0 * i, .started = 1.0 * i, .finished = i + 0.1});
  }
  const auto saturated = [&](double slo) {
    return is_saturated(summarise(outcomes, 1), outcomes, slo);
  };
  EXPECT_FALSE(saturated(0.2));
  EXPECT_TRUE(saturated(0.05));
  outcomes[10].finished += 0.5;
  outcomes[90].finished += 0.5;
  EXPECT_FALSE(saturated(0.2));
  outcomes[150].finished += 0.5;
  EXPECT_TRUE(saturated(0.2));
}

TEST(Search, FindsACapacityFromEitherSideOrNone) {
  for (const double first : {0.1, 7.0, 500.0}) {
    RateSearch search{first};
    constexpr double capacity = 20;
    double highest_saturated = std::numeric_limits<double>::infinity();
    int trials = 0;
    while (const auto rate = search.next()) {
      const bool sustained = *rate <= capacity;
      if (!sustained) highest_saturated = std::min(highest_saturated, *rate);
      search.tell(sustained ? RateSearch::Outcome::sustained : RateSearch::Outcome::saturated);
      ASSERT_LE(++trials, RateSearch::most_trials);
    }
    ASSERT_TRUE(search.sustained());
    EXPECT_LE(*search.sustained(), capacity);
    EXPECT_GE(*search.sustained() * 1.05, highest_saturated) << first;
  }
  RateSearch none{1};
  while (none.next()) none.tell(RateSearch::Outcome::saturated);
  EXPECT_EQ(none.sustained(), std::nullopt);
}

Request served(const Options& options) {
  return {.model = model_of("ffn=32 heads=4 kv_heads=4 head_size=4 layers=2 sequence=6"),
          .options = options};
}

TEST(ServePrograms, WhatExcludesEachOtherIsRefusedWithTheWayOut) {
  testing_support::expect_words_of<Options>(
      {{"rate=fast"_options, {"'fast'"}},
       {"rate=-1"_options, {"above 0"}},
       {"rate=inf"_options, {"above 0"}},
       {"slo=0"_options, {"slo"}},
       {"burst=4"_options, {"arrivals=bursty"}},
       {"output=65536 max_batch=2"_options, {"at most 32768"}},
       {"rate=2.5 slo=0.5 arrivals=bursty"_options, {}}},
      [](const Options& options) {
        return testing_support::refusal([&] { (void)scale(served(options), {}, Scaling::strong); });
      });
}

TEST(ServePrograms, AReplicaHasAPrefillAndADecodeForEachTokenAndSize) {
  const Options options = "output=3 max_batch=3"_options;
  for (const mesh::Shape& mesh : {""_mesh, "tp=2,dp=3"_mesh, "tp=2,dp=2,pp=2"_mesh}) {
    const Request request = scale(served(options), mesh, Scaling::strong);
    const program::ProgramSet set = replica_programs(request);
    EXPECT_EQ(set.mesh.dp, 1);
    EXPECT_EQ(set.mesh.size() * mesh.dp, mesh.size());
    EXPECT_NO_THROW(program::check(set));
    EXPECT_NO_THROW(program::check(hooks().build(request, 0).set));
    for (const program::RankProgram& one : set.programs) EXPECT_EQ(one.steps.size(), 3U * 3U);
  }
}

double flop_of(const program::ProgramSet& set, program::Section section) {
  double sum = 0;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const auto& op : program::outline(set.of(rank), section, set.mesh).ops) sum += op.flop;
  }
  return sum;
}

/// GEMMs of a token: 2 h (h + 2 kv + h) for projections, 2 x 2 x heads x d x length for attention,
/// 2 x 2 h f for the pair, and 2 h V for a sample's newest token.
TEST(ServePrograms, WorkIsOfTheBatchAndThePosition) {
  const Request request =
      scale(served("prompt=15 output=3 max_batch=4"_options), {.tp = 2}, Scaling::strong);
  const program::ProgramSet set = replica_programs(request);
  const double h = 16, f = 32, layers = 2, vocabulary = 32, prompt = 15;
  const auto token = [&](double length) {
    return layers * (2 * h * 4 * h + 4 * h * length + 4 * h * f);
  };
  for (const auto& [index, batch] : {std::pair{0U, 1.0}, std::pair{1U, 2.0}, std::pair{2U, 4.0}}) {
    EXPECT_DOUBLE_EQ(flop_of(set, section_of(index, 0, 3)),
                     batch * (prompt * token(prompt) + 2 * h * vocabulary));
    // A decoded token attends to whole blocks of 16 tokens.
    for (const auto& [next, length] : {std::pair{1U, 16.0}, std::pair{2U, 32.0}}) {
      EXPECT_DOUBLE_EQ(flop_of(set, section_of(index, next, 3)),
                       batch * (token(length) + 2 * h * vocabulary));
    }
  }
}

}  // namespace
}  // namespace isoscale::workloads::serve
