// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/wait_causes.hpp"
#include "analysis/breakdown/breakdown.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

/// A step of `arrivals[i][rank]`, instance i of collectives of all ranks; nanoseconds.
breakdown::TracedStep step_of(const std::vector<std::vector<int>>& arrivals) {
  breakdown::TracedStep step{.instances = static_cast<std::uint32_t>(arrivals.size())};
  step.waits.resize(arrivals.front().size());
  step.instance.resize(arrivals.front().size());
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
    const int last = std::ranges::max(arrivals[i]);
    for (std::size_t rank = 0; rank < arrivals[i].size(); ++rank) {
      step.waits[rank].emplace_back(last - arrivals[i][rank]);
      step.instance[rank].push_back(i);
    }
  }
  return step;
}

breakdown::TracedSteps steps_of(const std::vector<std::vector<std::vector<int>>>& steps) {
  breakdown::TracedSteps result;
  for (const auto& arrivals : steps) result.steps.push_back(step_of(arrivals));
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

/// Returns steps in which rank r arrives at instance i when `arrival(i, r)` says; nanoseconds.
template <class Arrival>
breakdown::TracedSteps random_steps(std::size_t count, std::size_t instances, std::size_t members,
                                    const Arrival& arrival) {
  std::vector<std::vector<std::vector<int>>> steps(count);
  for (auto& step : steps) {
    for (std::size_t i = 0; i < instances; ++i) {
      std::vector<int>& arrivals = step.emplace_back();
      for (std::size_t rank = 0; rank < members; ++rank) {
        arrivals.push_back(static_cast<int>(std::lround(arrival(i, rank))));
      }
    }
  }
  return steps_of(steps);
}

/// Returns the mean share of noise over steps and instances, weighted by how long the members
/// waited, as the breakdown does.
double noise_of(const breakdown::TracedSteps& steps) {
  const breakdown::WaitCauses causes{steps};
  double noise = 0, all = 0;
  for (std::size_t at = 0; at < steps.steps.size(); ++at) {
    const std::vector<double> shares = causes.noise_shares(at);
    std::vector<double> waits(shares.size(), 0.0);
    for (const auto& of_rank : steps.steps[at].waits) {
      for (std::size_t i = 0; i < of_rank.size(); ++i) {
        waits[i] += units::to_seconds(of_rank[i]).value();
      }
    }
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (std::isnan(shares[i])) continue;
      noise += shares[i] * waits[i];
      all += waits[i];
    }
  }
  return noise / all;
}

TEST(WaitCauses, OfPureNoiseAverageToOneAndOfPureImbalanceToZero) {
  for (const std::size_t steps : {2U, 4U, 10U}) {
    for (const std::size_t members : {2U, 8U}) {
      SCOPED_TRACE(testing::Message() << steps << " steps, " << members << " ranks");
      Draw draw{steps * 100 + members};
      const auto exponential = [&draw](std::size_t, std::size_t) {
        return -1e5 * std::log(1 - draw.uniform());
      };
      EXPECT_NEAR(noise_of(random_steps(steps, 4000 / steps, members, exponential)), 1, 0.05);
      const auto normal = [&draw](std::size_t, std::size_t) { return 1e6 + 1e5 * draw.normal(); };
      EXPECT_NEAR(noise_of(random_steps(steps, 4000 / steps, members, normal)), 1, 0.05);
      // Each instance has its own order of ranks, the same in every step.
      const auto always = [members](std::size_t i, std::size_t rank) {
        return 1000.0 * static_cast<double>((i * 7 + rank * 3) % members);
      };
      EXPECT_EQ(noise_of(random_steps(steps, 500, members, always)), 0);
    }
  }
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

/// Layers of a GEMM, which begins `gap` ns late, and an all-reduce among all ranks.
breakdown::BreakdownResult known(const Compute& compute, int gap = 0) {
  Script script;
  for (int layer = 0; layer < layers; ++layer) script.compute().all_reduce(Axis::tp);
  results::PointData point = alike({.tp = ranks}, script);
  for (int number = 0; number < traced_steps; ++number) {
    std::vector<Spans> spans(ranks);
    int now = 0;
    for (int layer = 0; layer < layers; ++layer) {
      const int begin = now + gap;
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

TEST(KnownCauses, NothingIsWrongOrOpsBeginLate) {
  for (const int late : {0, 700}) {  // how late every GEMM begins
    const auto result = known([](int, int, int) { return compute_time; }, late);
    ASSERT_TRUE(result.mean && result.waits) << result.missing;
    EXPECT_NEAR(result.mean->compute, layers * compute_time * 1e-9, 1e-15);
    EXPECT_NEAR(result.mean->transfer, layers * transfer_time * 1e-9, 1e-15);
    EXPECT_NEAR(result.mean->gap, layers * late * 1e-9, 1e-15);
    EXPECT_NEAR(result.by_phase.begin()->second.gap, layers * late * 1e-9, 1e-15);
    EXPECT_THAT((std::array{result.mean->wait, result.waits->imbalance, result.waits->noise,
                            result.unaccounted}),
                Each(0));
  }
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
}  // namespace isoscale::analysis
