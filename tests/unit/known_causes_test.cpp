// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "run_samples.hpp"
#include "simulate/simulate.hpp"

/// Timelines simulated with causes that are known: the breakdown must find each within one
/// percentage point of the step.
namespace isoscale::analysis {
namespace {

using samples::Script;
using units::Nanoseconds;

constexpr int ranks = 4;
constexpr int layers = 50;
constexpr int traced_steps = 6;
constexpr int compute_time = 10'000, transfer_time = 3'000;  // nanoseconds
constexpr double one_point = 0.01;

/// Nanoseconds that a rank computes before all-reduce number `layer` in a step.
using Compute = std::function<int(int step, int rank, int layer)>;

/// Layers of a GEMM and an all-reduce among all ranks; every step has its own times.
class Steps {
 public:
  explicit Steps(const Compute& compute, int gap = 0) {
    Script script;
    for (int layer = 0; layer < layers; ++layer) script.compute().all_reduce(mesh::Axis::tp);
    point_ = samples::point({.tp = ranks}, std::vector<Script>(ranks, script), {});
    point_.traces.clear();
    for (int step = 0; step < traced_steps; ++step) add_step(step, compute, gap);
  }

  [[nodiscard]] BreakdownResult result() const { return breakdown(point_); }
  /// Mean over steps and layers of what `value` makes of the ranks' compute times, in seconds a
  /// step. All ranks leave an all-reduce together, so these are the arrivals at the next.
  [[nodiscard]] double truth(
      const std::function<double(const std::vector<double>& of_rank)>& value) const {
    double sum = 0;
    for (const auto& of_rank : arrivals_) sum += value(of_rank);
    return sum / traced_steps * 1e-9;
  }

 private:
  void add_step(int step, const Compute& compute, int gap) {
    simulate::Costs costs;
    for (int rank = 0; rank < ranks; ++rank) {
      costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
      auto& table = costs.tables.emplace_back();
      for (int layer = 0; layer < layers; ++layer) {
        table.emplace_back(compute(step, rank, layer) + gap);
        table.emplace_back(transfer_time);
      }
    }
    for (std::size_t layer = 0; layer < layers; ++layer) {
      std::vector<double> of_rank;
      for (const auto& table : costs.tables) {
        of_rank.push_back(static_cast<double>(table[2 * layer].value()));
      }
      arrivals_.push_back(of_rank);
    }
    timeline::Timeline played = simulate::simulate(point_.outline, costs).front();
    for (timeline::StepTrace& trace : played.ranks) {
      trace.step = static_cast<std::uint32_t>(step);
      for (std::size_t op = 0; op < trace.spans.size(); op += 2) {
        trace.spans[op].start += Nanoseconds{gap};
      }
    }
    point_.traces.push_back(played);
  }

  results::PointData point_;
  std::vector<std::vector<double>> arrivals_;
};

double largest(const std::vector<double>& values) { return std::ranges::max(values); }
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// A number in 0 ... 1 that step, rank and layer determine.
double chance(std::uint64_t seed, int step, int rank, int layer) {
  std::mt19937_64 random{seed * 1'000'003 + static_cast<std::uint64_t>(step) * 10'007 +
                         static_cast<std::uint64_t>(rank) * 101 +
                         static_cast<std::uint64_t>(layer)};
  return std::uniform_real_distribution<>{0, 1}(random);
}

void expect_share(double found, double truth, double step, const char* what) {
  EXPECT_NEAR(found / step, truth / step, one_point) << what;
}

TEST(KnownCauses, NothingIsWrong) {
  const Steps steps{[](int, int, int) { return compute_time; }};
  const BreakdownResult result = steps.result();
  ASSERT_TRUE(result.mean && result.waits) << result.missing;
  EXPECT_NEAR(result.mean->compute, layers * compute_time * 1e-9, 1e-15);
  EXPECT_NEAR(result.mean->transfer, layers * transfer_time * 1e-9, 1e-15);
  EXPECT_EQ(result.mean->wait, 0);
  EXPECT_EQ(result.waits->imbalance, 0);
  EXPECT_EQ(result.waits->noise, 0);
  EXPECT_EQ(result.unaccounted, 0);
}

TEST(KnownCauses, OneRankIsAlwaysSlow) {
  const Steps steps{[](int, int rank, int) { return rank == 2 ? 12'000 : compute_time; }};
  const BreakdownResult result = steps.result();
  ASSERT_TRUE(result.mean && result.waits) << result.missing;
  const double wait = layers * 2'000 * 3.0 / 4.0 * 1e-9;  // three of four wait
  EXPECT_NEAR(result.mean->wait, wait, 1e-15);
  EXPECT_NEAR(result.waits->imbalance, wait, 1e-15);
  EXPECT_NEAR(result.waits->noise, 0, 1e-15);
  EXPECT_NEAR(result.caused.of_rank.at(2), 4 * wait, 1e-14);
  EXPECT_NEAR(result.caused.of_rank.at(0), 0, 1e-15);
}

TEST(KnownCauses, EveryRankIsLateNowAndThen) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    const Steps steps{[seed](int step, int rank, int layer) {
      return compute_time + static_cast<int>(4'000 * chance(seed, step, rank, layer));
    }};
    const BreakdownResult result = steps.result();
    ASSERT_TRUE(result.mean && result.waits) << result.missing;
    const double step = result.mean->step;
    const double wait =
        steps.truth([](const auto& of_rank) { return largest(of_rank) - mean(of_rank); });
    expect_share(result.mean->wait, wait, step, "wait");
    expect_share(result.waits->noise, wait, step, "noise");
    expect_share(result.waits->imbalance, 0, step, "imbalance");
    expect_share(result.mean->compute, steps.truth(mean), step, "compute");
  }
}

TEST(KnownCauses, ASlowRankAndNoiseAreToldApart) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    const Steps steps{[seed](int step, int rank, int layer) {
      return (rank == 1 ? 11'500 : compute_time) +
             static_cast<int>(2'000 * chance(seed, step, rank, layer));
    }};
    const BreakdownResult result = steps.result();
    ASSERT_TRUE(result.mean && result.waits) << result.missing;
    const double step = result.mean->step;
    expect_share(result.waits->imbalance,
                 steps.truth([](const auto& of_rank) { return of_rank[1] - mean(of_rank); }), step,
                 "imbalance");
    expect_share(result.waits->noise,
                 steps.truth([](const auto& of_rank) { return largest(of_rank) - of_rank[1]; }),
                 step, "noise");
    expect_share(result.mean->transfer, layers * transfer_time * 1e-9, step, "transfer");
  }
}

TEST(KnownCauses, OpsBeginLate) {
  const Steps steps{[](int, int, int) { return compute_time; }, 700};
  const BreakdownResult result = steps.result();
  ASSERT_TRUE(result.mean) << result.missing;
  EXPECT_NEAR(result.mean->gap, layers * 700 * 1e-9, 1e-15);
  EXPECT_NEAR(result.mean->compute, layers * compute_time * 1e-9, 1e-15);
  EXPECT_NEAR(result.by_phase.begin()->second.gap, layers * 700 * 1e-9, 1e-15);
  EXPECT_EQ(result.unaccounted, 0);
}

}  // namespace
}  // namespace isoscale::analysis
