// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Serving without a machine: arrivals, dispatch, queues, statistics and the search for a rate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include "refusal.hpp"
#include "workloads/serve/requests.hpp"
#include "workloads/serve/trials.hpp"

namespace isoscale::workloads::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(Arrivals, PoissonHasVarianceOfItsMean) {
  const auto [mean, ratio] = dispersion(arrival_times({.rate = 5}, many, 1), 4);
  EXPECT_NEAR(mean, 20, 0.2);
  EXPECT_NEAR(ratio, 1, 0.05);
}

TEST(Arrivals, BurstsHaveTheSameRateAndSoManyTimesTheVariance) {
  const Arrivals bursty{.process = Process::bursty, .rate = 5, .burst = 10};
  const auto times = arrival_times(bursty, many, 1);
  const auto [mean, ratio] = dispersion(times, 4);
  EXPECT_NEAR(mean, 20, 0.5);
  EXPECT_NEAR(ratio, 10, 0.5);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(times[i], times[i / 10 * 10]) << i;
  EXPECT_LT(times[9], times[10]);
}

TEST(Arrivals, GapsOfPoissonAreExponential) {
  const auto times = arrival_times({.rate = 5}, many, 3);
  double sum = 0, squares = 0, last = 0;
  for (const double time : times) {
    sum += time - last;
    squares += (time - last) * (time - last);
    last = time;
  }
  const double mean = sum / static_cast<double>(many);
  EXPECT_NEAR(mean, 0.2, 0.002);
  // E[x^2] = 2 / rate^2
  EXPECT_NEAR(squares / static_cast<double>(many), 0.08, 0.001);
}

TEST(Lengths, AreFixedOrUniform) {
  EXPECT_THAT(answer_lengths(Lengths::fixed, 16, 3, 1), ElementsAre(16, 16, 16));
  std::map<std::uint64_t, int> seen;
  for (const std::uint64_t tokens : answer_lengths(Lengths::uniform, 4, 40'000, 1)) ++seen[tokens];
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.begin()->first, 1U);
  EXPECT_EQ(seen.rbegin()->first, 4U);
  for (const auto& [tokens, count] : seen) EXPECT_NEAR(count, 10'000, 400) << tokens;
}

/// Servers that are nothing but queues: events in order of time, with the dispatch and the ledger
/// that runs use. Request i arrives at arrivals[i] and takes service[i] seconds. A server takes up
/// to `most` of those that wait at once, in order of arrival; a batch takes as long as its longest.
std::vector<Outcome> queue(Policy policy, std::size_t servers, const std::vector<double>& arrivals,
                           const std::vector<double>& service, std::size_t most = 1) {
  struct Server {
    std::deque<std::size_t> waiting{};
    std::vector<std::size_t> batch{};
    double free_at = std::numeric_limits<double>::infinity();  ///< infinite while idle
    std::uint64_t batches = 0;
  };
  std::vector<Outcome> outcomes(arrivals.size());
  std::vector<Server> all(servers);
  Dispatch dispatch{policy, servers};
  Ledger ledger{arrivals.size()};
  const auto start = [&](Server& server, double now) {
    server.free_at = std::numeric_limits<double>::infinity();
    server.batch.clear();
    double longest = 0;
    while (!server.waiting.empty() && server.batch.size() < most) {
      const std::size_t one = server.waiting.front();
      server.waiting.pop_front();
      server.batch.push_back(one);
      longest = std::max(longest, service[one]);
      outcomes[one].started = now;
      outcomes[one].batch = server.batches;
    }
    if (server.batch.empty()) return;
    ++server.batches;
    server.free_at = now + longest;
  };
  std::size_t next = 0;
  while (!ledger.all_answered()) {
    const auto first = std::ranges::min_element(all, {}, &Server::free_at);
    const bool arrives = next < arrivals.size() && arrivals[next] < first->free_at;
    if (arrives) {
      const std::size_t to = dispatch.assign(service[next]);
      ledger.dispatched(next, to);
      outcomes[next].arrival = arrivals[next];
      outcomes[next].replica = to;
      all[to].waiting.push_back(next);
      if (all[to].batch.empty()) start(all[to], arrivals[next]);
      ++next;
      continue;
    }
    const double now = first->free_at;
    for (const std::size_t one : first->batch) {
      outcomes[one].first = outcomes[one].finished = now;
      ledger.answered(one, outcomes[one].replica);
      dispatch.answered(outcomes[one].replica, service[one]);
    }
    start(*first, now);
  }
  ledger.close();
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
    const std::vector<double> service(many, 1.0);
    const auto outcomes = queue(Policy::round_robin, 1, arrivals, service);
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
  const auto arrivals =
      arrival_times({.process = Process::bursty, .rate = rate, .burst = 4}, many, 5);
  const std::vector<double> service(many, 1.0);
  const auto outcomes = queue(Policy::shortest_queue, 1, arrivals, service);
  const double expected = rate * burst / (2 * (1 - rate)) + (burst - 1) / 2;
  EXPECT_NEAR(mean_wait(outcomes), expected, 0.06 * expected);
}

/// Service times that vary: 1 of 10 takes 10 times as long.
std::vector<double> varied(std::uint64_t count) {
  std::vector<double> service;
  for (const std::uint64_t one : answer_lengths(Lengths::uniform, 10, count, 9)) {
    service.push_back(one == 10 ? 5.0 : 0.5);
  }
  return service;
}

TEST(Queue, LookingBeatsTakingTurnsWhereServiceVaries) {
  const double mean = 0.1 * 5 + 0.9 * 0.5;
  const auto arrivals = arrival_times({.rate = 0.8 * 4 / mean}, 50'000, 2);
  const auto service = varied(50'000);
  std::map<Policy, double> wait;
  for (const Policy policy : {Policy::round_robin, Policy::least_loaded, Policy::shortest_queue}) {
    wait[policy] = mean_wait(queue(policy, 4, arrivals, service));
  }
  EXPECT_LT(wait[Policy::shortest_queue], 0.7 * wait[Policy::round_robin]);
  EXPECT_LT(wait[Policy::least_loaded], 0.7 * wait[Policy::round_robin]);
  // Who knows the work waits least.
  EXPECT_LT(wait[Policy::least_loaded], wait[Policy::shortest_queue]);
}

TEST(Queue, BatchesAreTakenTogether) {
  // Two wait while the first is answered: both are taken at once.
  const std::vector<double> arrivals{0, 0.1, 0.2, 5}, service(4, 1.0);
  const auto outcomes = queue(Policy::round_robin, 1, arrivals, service, 8);
  EXPECT_DOUBLE_EQ(outcomes[0].finished, 1);
  EXPECT_DOUBLE_EQ(outcomes[1].finished, 2);
  EXPECT_DOUBLE_EQ(outcomes[2].finished, 2);
  EXPECT_EQ(outcomes[1].batch, outcomes[2].batch);
  EXPECT_DOUBLE_EQ(outcomes[3].finished, 6);
}

TEST(Dispatch, RoundRobinTakesTurnsWhateverIsAnswered) {
  Dispatch dispatch{Policy::round_robin, 3};
  std::vector<std::size_t> went;
  for (int i = 0; i < 5; ++i) {
    went.push_back(dispatch.assign(1));
    if (went.back() == 1) dispatch.answered(1, 1);
  }
  EXPECT_THAT(went, ElementsAre(0, 1, 2, 0, 1));
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
  Dispatch dispatch{Policy::shortest_queue, 2};
  EXPECT_EQ(dispatch.assign(1), 0U);
  EXPECT_EQ(dispatch.assign(1), 1U);
  dispatch.answered(1, 1);
  EXPECT_EQ(dispatch.assign(1), 1U);
  dispatch.answered(0, 1);
  EXPECT_THROW(dispatch.answered(0, 1), base::Error);
}

std::string error_of(const auto& work) { return testing_support::refusal<base::Error>(work); }

TEST(Ledger, EachRequestIsAnsweredOnceByWhoWasAsked) {
  Ledger ledger{3};
  EXPECT_THAT(error_of([&] { ledger.answered(0, 0); }), HasSubstr("was not asked"));
  for (std::uint64_t i = 0; i < 3; ++i) ledger.dispatched(i, i % 2);
  EXPECT_THAT(error_of([&] { ledger.dispatched(1, 0); }), HasSubstr("was given to replica 1"));
  ledger.answered(0, 0);
  EXPECT_THAT(error_of([&] { ledger.answered(0, 0); }), HasSubstr("request 0 twice"));
  EXPECT_THAT(error_of([&] { ledger.answered(1, 0); }), HasSubstr("was not asked"));
  EXPECT_THAT(error_of([&] { ledger.answered(3, 0); }), HasSubstr("request 3 where there are 3"));
  ledger.answered(2, 0);
  EXPECT_EQ(ledger.open(), 1U);
  EXPECT_THAT(error_of([&] { ledger.close(); }), HasSubstr("1 of 3 requests were not answered"));
  EXPECT_THAT(error_of([&] { ledger.close(); }), HasSubstr("request 1"));
  ledger.answered(1, 1);
  EXPECT_EQ(error_of([&] { ledger.close(); }), "");
}

TEST(Summary, QuantilesAreSamplesAndUndefinedWithoutEnough) {
  std::vector<double> values(100);
  std::iota(values.begin(), values.end(), 1.0);
  const Quantiles all = quantiles_of(values);
  EXPECT_EQ(all.median, 50);
  EXPECT_EQ(all.p90, 90);
  EXPECT_EQ(all.p99, 99);
  EXPECT_EQ(all.max, 100);
  values.resize(99);
  EXPECT_EQ(quantiles_of(values).p99, std::nullopt);
  values.resize(9);
  EXPECT_EQ(quantiles_of(values).p90, std::nullopt);
  EXPECT_EQ(quantiles_of(values).max, 9);
  EXPECT_EQ(quantiles_of({}).median, std::nullopt);
}

TEST(Summary, OfAHandMadeTrial) {
  const auto answered = [](double arrival, double started, double first, double finished,
                           std::size_t replica, std::uint64_t batch, std::uint64_t tokens) {
    return Outcome{.arrival = arrival,
                   .started = started,
                   .first = first,
                   .finished = finished,
                   .replica = replica,
                   .batch = batch,
                   .tokens = tokens};
  };
  const std::vector<Outcome> outcomes{answered(1, 1, 2, 4, 0, 0, 3), answered(2, 4, 5, 6, 0, 1, 2),
                                      answered(3, 4, 5, 8, 0, 1, 4), answered(4, 4, 5, 6, 1, 0, 1)};
  const Summary summary = summarise(outcomes, 3);
  EXPECT_DOUBLE_EQ(summary.time, 8);
  EXPECT_DOUBLE_EQ(summary.offered, 1);
  EXPECT_DOUBLE_EQ(summary.achieved, 0.5);
  EXPECT_EQ(summary.latency.median, 3);
  EXPECT_EQ(summary.latency.max, 5);
  EXPECT_EQ(summary.ttft.max, 3);
  EXPECT_EQ(summary.queueing.median, 0);
  EXPECT_EQ(summary.queueing.max, 2);
  EXPECT_EQ(summary.tpot.max, 1);
  EXPECT_EQ(summary.replicas[0].batches, 2U);
  EXPECT_DOUBLE_EQ(summary.replicas[0].busy, 3 + 4);
  EXPECT_DOUBLE_EQ(summary.replicas[1].utilisation, 0.25);
  EXPECT_DOUBLE_EQ(summary.replicas[2].busy, 0);
  EXPECT_DOUBLE_EQ(summary.imbalance, 7 / ((7 + 2 + 0) / 3.0));
  EXPECT_EQ(summary.backlog, 3U);  // the first has been answered at 4
}

TEST(Summary, BacklogGrowsByWhatIsNotAnswered) {
  // Offered half again of what is served: a third of the requests pile up.
  const std::uint64_t count = 3000;
  const auto arrivals = arrival_times({.rate = 1.5}, count, 1);
  const std::vector<double> service(count, 1.0);
  const auto outcomes = queue(Policy::round_robin, 1, arrivals, service);
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

}  // namespace
}  // namespace isoscale::workloads::serve
