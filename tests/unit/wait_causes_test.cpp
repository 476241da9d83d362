// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/wait_causes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "cause_samples.hpp"
#include "series.hpp"

namespace isoscale::analysis {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsNan;

/// A step of `arrivals[i][rank]`, instance i of collectives of all ranks; nanoseconds.
TracedStep step_of(const std::vector<std::vector<int>>& arrivals) {
  TracedStep step{.instances = static_cast<std::uint32_t>(arrivals.size())};
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

TracedSteps steps_of(const std::vector<std::vector<std::vector<int>>>& steps) {
  TracedSteps result;
  for (const auto& arrivals : steps) result.steps.push_back(step_of(arrivals));
  return result;
}

TEST(WaitCauses, AreNotKnownOfOneStep) {
  EXPECT_FALSE(WaitCauses{TracedSteps{}}.known());
  const TracedSteps one = steps_of({{{0, 10}}});
  EXPECT_FALSE(WaitCauses{one}.known());
  const TracedSteps two = steps_of({{{0, 10}}, {{0, 10}}});
  EXPECT_TRUE(WaitCauses{two}.known());
}

TEST(WaitCauses, WithTheSameRankLastInEveryStepHaveNoNoise) {
  const TracedSteps steps = steps_of({{{0, 5, 30}}, {{5, 0, 20}}, {{0, 0, 10}}});
  const WaitCauses causes{steps};
  for (std::size_t at = 0; at < 3; ++at) {
    EXPECT_THAT(causes.noise_shares(at), ElementsAre(DoubleEq(0)));
  }
}

TEST(WaitCauses, WithAnotherRankLastAreNoise) {
  // Rank 2 is to be expected last by the two other steps, but waits 30 of 30 + 0 + 30 ns in the
  // first: over the mean of 20 ns a member.
  const TracedSteps steps = steps_of({{{0, 30, 0}}, {{0, 0, 10}}, {{0, 0, 10}}});
  const WaitCauses causes{steps};
  EXPECT_THAT(causes.noise_shares(0), ElementsAre(DoubleEq(1.5)));
  // By steps 0 and 2 it is rank 1, with 10 ns against 30 of rank 2 and 40 of rank 0; it waits 10
  // of 20 ns in step 1.
  EXPECT_THAT(causes.noise_shares(1), ElementsAre(DoubleEq(1.5)));
}

TEST(WaitCauses, TakeEachInstanceForItself) {
  // In the first instance rank 0 is always last; nobody waits in the second; in the third rank 1 is
  // expected by the other step and waits 6 of 6 ns.
  const TracedSteps steps = steps_of({{{9, 0}, {4, 4}, {6, 0}}, {{7, 0}, {4, 4}, {0, 6}}});
  EXPECT_THAT(WaitCauses{steps}.noise_shares(0), ElementsAre(DoubleEq(0), IsNan(), DoubleEq(2)));
}

/// Programs of as many collectives.
program::OutlineSet collectives(int ranks, int ops) {
  samples::Script script;
  for (int op = 0; op < ops; ++op) script.all_reduce(mesh::Axis::dp);
  return {.mesh = {.dp = ranks},
          .outlines = {script.outline()},
          .outline_of_rank = std::vector<std::uint32_t>(static_cast<std::size_t>(ranks), 0)};
}

TEST(WaitCauses, LeaveOutWhatIsOfNoInstance) {
  TracedSteps steps = steps_of({{{9, 0}}, {{7, 0}}});
  for (TracedStep& step : steps.steps) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      step.waits[rank].emplace_back(100);
      step.instance[rank].push_back(no_instance);
    }
  }
  const WaitCauses causes{steps};
  EXPECT_THAT(causes.noise_shares(0), ElementsAre(DoubleEq(0)));
  EXPECT_EQ(causes.instances(), 2U);
  const CausedWait caused = causes.caused(collectives(2, 2));
  EXPECT_THAT(caused.of_rank, ElementsAre(DoubleNear(8e-9, 1e-20), 0));
  EXPECT_THAT(caused.steps_as_last, ElementsAre(2, 0));
}

TEST(WaitCauses, ChargeTheLastForAllWaiting) {
  // Rank 2 lets the others wait 30 + 25 and 20 + 20 ns; in another instance rank 0 does, 3 + 2.
  const TracedSteps steps = steps_of({{{0, 5, 30}, {8, 5, 6}}, {{0, 0, 20}, {1, 1, 1}}});
  const CausedWait caused = WaitCauses{steps}.caused(collectives(3, 2));
  EXPECT_THAT(caused.of_rank,
              ElementsAre(DoubleNear(2.5e-9, 1e-20), 0, DoubleNear(47.5e-9, 1e-20)));
  EXPECT_THAT(caused.steps_as_last, ElementsAre(0, 0, 2));
}

/// Steps with instances in which rank r arrives at delay(r) plus noise.
template <class Arrival>
TracedSteps random_steps(std::size_t count, std::size_t instances, std::size_t ranks,
                         Arrival&& arrival) {
  std::vector<std::vector<std::vector<int>>> steps(count);
  for (auto& step : steps) {
    for (std::size_t i = 0; i < instances; ++i) {
      auto& ranks_arrive = step.emplace_back();
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        ranks_arrive.push_back(static_cast<int>(std::lround(arrival(i, rank))));
      }
    }
  }
  return steps_of(steps);
}

/// Mean over steps and instances, weighted by how long the members waited, as the breakdown does.
double noise_of(const TracedSteps& steps) {
  const WaitCauses causes{steps};
  double noise = 0, all = 0;
  for (std::size_t at = 0; at < steps.steps.size(); ++at) {
    const auto shares = causes.noise_shares(at);
    std::vector<double> waits(shares.size(), 0.0);
    for (const auto& rank : steps.steps[at].waits) {
      for (std::size_t i = 0; i < rank.size(); ++i) waits[i] += units::to_seconds(rank[i]).value();
    }
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (std::isnan(shares[i])) continue;
      noise += shares[i] * waits[i];
      all += waits[i];
    }
  }
  return noise / all;
}

TEST(WaitCauses, OfPureNoiseAverageToOne) {
  for (const std::size_t steps : {2U, 4U, 10U}) {
    for (const std::size_t ranks : {2U, 8U}) {
      samples::Draw draw{steps * 100 + ranks};
      const auto exponential = [&draw](std::size_t, std::size_t) {
        return -1e5 * std::log(1 - draw.uniform());
      };
      EXPECT_NEAR(noise_of(random_steps(steps, 4000 / steps, ranks, exponential)), 1, 0.05)
          << steps << " steps, " << ranks << " ranks";
      const auto normal = [&draw](std::size_t, std::size_t) { return 1e6 + 1e5 * draw.normal(); };
      EXPECT_NEAR(noise_of(random_steps(steps, 4000 / steps, ranks, normal)), 1, 0.05)
          << steps << " steps, " << ranks << " ranks";
    }
  }
}

TEST(WaitCauses, OfPureImbalanceAverageToZero) {
  for (const std::size_t ranks : {2U, 8U}) {
    // Each instance has its own order of ranks, the same in every step.
    const auto always = [ranks](std::size_t i, std::size_t rank) {
      return 1000.0 * static_cast<double>((i * 7 + rank * 3) % ranks);
    };
    EXPECT_EQ(noise_of(random_steps(4, 500, ranks, always)), 0) << ranks;
  }
}

TEST(WaitCauses, OfBothLieBetween) {
  samples::Draw draw{3};
  const auto both = [&draw](std::size_t, std::size_t rank) {
    return (rank == 3 ? 1e5 : 0.0) + 5e4 * draw.normal();
  };
  const double noise = noise_of(random_steps(4, 1000, 4, both));
  EXPECT_GT(noise, 0.1);
  EXPECT_LT(noise, 0.5);
}

TEST(WaitCauses, DivideTheWaitOfABreakdown) {
  // Rank 1 is always 20 ns late: no noise. Then now one, now the other: all of it.
  using samples::Script;
  using samples::trace;
  const auto point_of = [](const std::vector<std::pair<int, int>>& arrivals) {
    results::PointData point =
        samples::alike({.dp = 2}, Script{}.compute().all_reduce(mesh::Axis::dp));
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
      samples::add_step(point, {{trace(0, {0, 100}, {{0, first}, {first, 100}}),
                                 trace(1, {0, 100}, {{0, second}, {second, 100}})}});
    }
    return point;
  };
  const auto late = breakdown(point_of({{40, 60}, {40, 60}, {40, 60}}));
  ASSERT_TRUE(late.waits);
  EXPECT_NEAR(late.waits->imbalance, 10e-9, 1e-18);
  EXPECT_NEAR(late.waits->noise, 0, 1e-18);
  EXPECT_THAT(late.caused.of_rank, ElementsAre(0, DoubleNear(20e-9, 1e-18)));
  EXPECT_THAT(late.caused.steps_as_last, ElementsAre(0, 3));

  const auto noisy = breakdown(point_of({{40, 60}, {60, 40}}));
  ASSERT_TRUE(noisy.waits);
  EXPECT_NEAR(noisy.waits->imbalance, 0, 1e-18);
  EXPECT_NEAR(noisy.waits->noise, 10e-9, 1e-18);
  EXPECT_FALSE(breakdown(point_of({{40, 60}})).waits);
}

}  // namespace
}  // namespace isoscale::analysis
