// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "findings_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::evidence;
using samples::find;
using samples::finding;
using samples::findings_of;
using samples::Script;
using samples::traced_point;
using testing::HasSubstr;

/// Four ranks that compute and reduce; rank r begins its all-reduce at arrivals[r] of 1000.
results::PointData four_ranks(const std::vector<int>& arrivals) {
  std::vector<samples::Spans> spans;
  for (const int at : arrivals) spans.push_back({{0, at}, {at, 1000}});
  return traced_point({.dp = 4}, Script{}.compute().all_reduce(Axis::dp), spans);
}

/// In 20 traced steps the GEMMs of rank `slow` take `factor` times as long.
void add_gemm_sums(results::PointData& point, std::size_t slow, double factor) {
  for (int step = 0; step < 20; ++step) {
    results::OpSums sums{.step = static_cast<std::uint32_t>(step)};
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const double jitter = 1 + 0.001 * ((step * 7 + static_cast<int>(rank) * 3) % 11);
      sums.gemm.push_back(jitter * (rank == slow ? factor : 1));
    }
    point.op_sums.push_back(sums);
  }
}

/// A point of dp=2, pp=2 after four traced steps in which the first of the two dp groups takes
/// `factor` times as long for its all-reduce.
results::PointData two_groups(double factor) {
  const Script script = Script{}.compute().all_reduce(Axis::dp);
  results::PointData point = samples::measured(0, {.dp = 2, .pp = 2}, 1e-6);
  timeline::Timeline step;
  const int slow = static_cast<int>(500 + 200 * factor);
  for (int rank = 0; rank < 4; ++rank) {
    const int end = rank < 2 ? slow : 700;
    step.ranks.push_back(samples::trace(rank, {0, end}, {{0, 500}, {500, end}}));
  }
  samples::set_trace(point, samples::point(point.mesh, std::vector<Script>(4, script), step));
  point.traces.clear();
  for (int i = 0; i < 4; ++i) {
    const auto number = static_cast<std::uint32_t>(point.step_times.size());
    point.step_times.emplace_back(4, 1e-6);
    point.traced.push_back(1);
    point.dropped.push_back(0);
    for (timeline::StepTrace& rank : step.ranks) rank.step = number;
    point.traces.push_back(step);
  }
  return point;
}

TEST(SlowRank, IsFoundWithItsHost) {
  results::PointData point = four_ranks({800, 800, 800, 800});
  add_gemm_sums(point, 2, 1.25);
  const auto found = finding(point, "slow-rank");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("rank 2 (node17) is slow"));
  const double factor = evidence(*found, "GEMM time");
  EXPECT_NEAR(factor, 1.25, 0.01);
  // It computes for 80% of its step, of which 1 - 1/1.25 could be saved.
  EXPECT_NEAR(found->severity.value(), 0.8 * (1 - 1 / factor), 1e-9);
}

TEST(SlowRank, IsNamedAsInTheWorld) {
  results::PointData point = four_ranks({800, 800, 800, 800});
  point.world_rank = {0, 2, 1, 3};
  add_gemm_sums(point, 2, 1.25);
  const auto found = finding(point, "slow-rank");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("rank 1 ("));
}

TEST(SlowRank, IsNoneAmongLikeRanksOrOnSharedCores) {
  results::PointData point = four_ranks({800, 800, 800, 800});
  add_gemm_sums(point, 2, 1.0);
  EXPECT_FALSE(finding(point, "slow-rank"));
  point.op_sums.clear();
  add_gemm_sums(point, 2, 1.25);
  point.labels = {"oversubscribed"};
  EXPECT_TRUE(findings_of(point).empty());
}

TEST(SlowLink, IsFoundByTheTimeOfAByte) {
  const auto found = finding(two_groups(2), "slow-link");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("the link among ranks 0, 1 takes 2.00 times"));
  // Transfer is 400 of 900 and 200 of 700 ns; half of its share of the mean step could be saved.
  EXPECT_NEAR(found->severity.value(), (300.0 / 800) / 2, 1e-9);
  EXPECT_FALSE(finding(two_groups(1), "slow-link"));
}

TEST(Imbalance, IsFoundOfWaitingThatIsNotDivided) {
  // One traced step: ranks wait 600, 600, 600 and 0 of 1000.
  const auto found = finding(four_ranks({200, 200, 200, 800}), "imbalance");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->severity.value(), 0.45);
  EXPECT_THAT(found->sentence, HasSubstr("mostly for rank 3 (node17); it may be chance"));
  EXPECT_FALSE(finding(four_ranks({780, 780, 780, 800}), "imbalance"));
}

TEST(Imbalance, IsNotSaidOfARankThatIsSlow) {
  results::PointData point = four_ranks({200, 200, 200, 800});
  add_gemm_sums(point, 3, 4);
  const auto all = findings_of(point);
  EXPECT_NE(find(all, "slow-rank"), nullptr);
  EXPECT_EQ(find(all, "imbalance"), nullptr);
}

/// The point has this cause, whatever its traces say.
std::vector<Finding> found_with(const NamedCause& cause) {
  const results::RunData run = samples::run_of(four_ranks({800, 800, 800, 800}));
  RunReport report = make_report(run, "a.h5", {});
  report.curves.front().points.front().causes.named = {cause};
  return findings_of(report);
}

TEST(Noise, IsFoundFromFivePercentOn) {
  const auto all =
      found_with({.kind = "noise", .ranks = {}, .size = 0.07, .text = "noise: 7.0% of the step"});
  const Finding* const found = find(all, "noise");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(found->severity.value(), 0.07);
  EXPECT_EQ(find(found_with({.kind = "noise", .ranks = {}, .size = 0.04, .text = ""}), "noise"),
            nullptr);
}

/// 20 steps that lie up to `spread` to either side of 10 ms, in an order that does not correlate.
results::PointData scattered(double spread) {
  results::PointData point = samples::measured(0, {.dp = 2}, 10e-3);
  for (int i = 0; i < 22; ++i) {
    const double off = spread * ((i * 8) % 21 - 10) / 10;
    point.step_times[static_cast<std::size_t>(i)] = {1e-3, 10e-3 * (1 + off)};
  }
  return point;
}

TEST(WideInterval, IsFoundOfScatteredSteps) {
  const auto found = finding(scattered(0.3), "wide-interval");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->severity);
  EXPECT_GT(evidence(*found, "half width of the 95% interval"), 0.05);
  EXPECT_THAT(found->next_step, HasSubstr("--max-time"));
  EXPECT_FALSE(finding(scattered(0.01), "wide-interval"));
}

}  // namespace
}  // namespace isoscale::analysis
