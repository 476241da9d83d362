// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/report.hpp"
#include "analysis/curves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "analysis/render/render.hpp"
#include "report_samples.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

using samples::measured;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

std::vector<std::string> titles(const RunReport& report) {
  std::vector<std::string> result;
  for (const Curve& curve : report.curves) result.push_back(curve.title);
  return result;
}

std::vector<int> rank_counts(const Curve& curve) {
  std::vector<int> result;
  for (const PointReport& point : curve.points) result.push_back(point.data->ranks);
  return result;
}

TEST(Report, AStepIsAsLongAsItsSlowestRankAndWarmUpDoesNotCount) {
  results::RunData run = samples::run({measured(0, {.dp = 4}, 0.2)});
  const RunReport report = make_report(run, "a.h5", {});
  const auto& time = report.curves.at(0).points.at(0).step_time;
  ASSERT_TRUE(time);
  EXPECT_EQ(time->samples, 20U);
  EXPECT_NEAR(time->median, 0.2, 1e-3);
  EXPECT_NEAR(time->minimum, 0.198, 1e-12);
  EXPECT_NEAR(time->maximum, 0.202, 1e-12);
}

TEST(Report, TracedAndDroppedStepsGiveNoStepTimeButTheOverhead) {
  results::RunData run = samples::run({measured(0, {}, 0.2)});
  for (auto& step : run.points[0].step_times) step = {0.2};
  samples::add_traced_steps(run.points[0], 0.2, 1.03);
  const PointReport point = point_of(run);
  EXPECT_EQ(point.step_time->maximum, 0.2);
  ASSERT_TRUE(point.instrumentation_overhead);
  EXPECT_NEAR(point.instrumentation_overhead->value, 0.03, 1e-12);
  EXPECT_FALSE(point.instrumentation_overhead->lower) << "one pair of blocks";
}

TEST(Report, AnIntervalThatWasLookedAtOftenIsWider) {
  results::RunData run = samples::run({measured(0, {}, 0.2)});
  const auto once = point_of(run).step_time;
  run.points[0].looks = {.planned = 12, .made = 4, .growth = 1.5};
  const auto often = point_of(run).step_time;
  ASSERT_TRUE(once->lower && often->lower);
  EXPECT_EQ(often->median, once->median);
  EXPECT_LT(*often->lower, *once->lower);
  EXPECT_GT(*often->upper, *once->upper);
}

TEST(Report, FlagsAreThoseOfUntracedSteps) {
  results::RunData run = samples::run({measured(0, {}, 0.2)});
  samples::add_traced_steps(run.points[0], 0.2, 5);
  EXPECT_TRUE(point_of(run).flags.sentences.empty());
  run.points[0].step_times[10] = {0.9};
  const PointReport point = point_of(run);
  ASSERT_TRUE(point.flags.outliers);
  EXPECT_NEAR(point.flags.outliers->furthest, 4.5, 0.05);
}

TEST(Report, OverheadIsUndefinedWithoutTracedSteps) {
  results::RunData run = samples::run({measured(0, {}, 0.2)});
  EXPECT_FALSE(point_of(run).instrumentation_overhead);
}

TEST(Report, ThroughputSpeedUpAndEfficiencyAreThoseOfTheFormula) {
  results::RunData run = samples::run(
      {measured(0, {}, 0.4), measured(1, {.dp = 2}, 0.25), measured(2, {.dp = 4}, 0.125)});
  constexpr std::array step_times{0.4, 0.25, 0.125};
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    for (auto& step : run.points[i].step_times) step.back() = step_times[i];
  }
  const Curve curve = curve_of(run);
  EXPECT_EQ(curve.baseline, 1);
  EXPECT_DOUBLE_EQ(*curve.points[0].throughput, 1024 / 0.4);
  EXPECT_DOUBLE_EQ(*curve.points[0].efficiency, 1.0);
  EXPECT_DOUBLE_EQ(*curve.points[1].speedup, 1.6);
  EXPECT_DOUBLE_EQ(*curve.points[1].efficiency, 0.8);
  EXPECT_DOUBLE_EQ(*curve.points[2].speedup, 3.2);
  EXPECT_DOUBLE_EQ(*curve.points[2].efficiency, 0.8);
  EXPECT_DOUBLE_EQ(*curve.points[2].flop_per_step, 1.2e9);
  EXPECT_DOUBLE_EQ(*curve.points[2].flops_per_rank, 1.2e9 / 4 / 0.125);
  EXPECT_DOUBLE_EQ(*curve.points[2].memory_per_rank, 64e6);
}

TEST(Report, ABaselineOfSeveralRanksCountsAsThatManyTimesOne) {
  results::RunData run = samples::run(
      {measured(0, {.dp = 2}, 0.4), measured(1, {.dp = 4}, 0.2), measured(2, {.dp = 8}, 0.2)});
  const Curve first = curve_of(run);
  EXPECT_EQ(first.baseline, 2);
  EXPECT_DOUBLE_EQ(*first.points[0].speedup, 2.0);
  EXPECT_NEAR(*first.points[1].speedup, 4.0, 1e-12);
  EXPECT_NEAR(*first.points[2].efficiency, 0.5, 1e-12);

  const Curve chosen = curve_of(run, {.baseline = 8});
  EXPECT_EQ(chosen.baseline, 8);
  EXPECT_DOUBLE_EQ(*chosen.points[2].efficiency, 1.0);
  EXPECT_NEAR(*chosen.points[0].efficiency, 2.0, 1e-12);

  const Curve none = curve_of(run, {.baseline = 16});
  EXPECT_FALSE(none.baseline);
  EXPECT_FALSE(none.points[0].efficiency);
  EXPECT_TRUE(none.points[0].throughput);
}

TEST(Report, FailedWrongAndSkippedPointsAreNoBaselineAndHaveNoThroughput) {
  results::RunData run = samples::run({measured(0, {}, 0.4), measured(1, {.dp = 2}, 0.2),
                                       measured(2, {.dp = 4}, 0.1), measured(3, {.dp = 8}, 0.1)});
  run.points[0].status = results::PointStatus::failed;
  run.points[1].verified = false;
  const Curve curve = curve_of(run);
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_FALSE(curve.points[0].throughput);
  EXPECT_FALSE(curve.points[1].throughput);
  EXPECT_FALSE(curve.points[1].efficiency);
  EXPECT_NEAR(*curve.points[3].efficiency, 0.5, 1e-12);
}

TEST(Report, TellsSamplesAndMemoryApart) {
  results::RunData run = samples::run({samples::measured(0, {.dp = 2}, 0.5)});
  results::PointData& point = run.points[0];
  EXPECT_FALSE(point_of(run).host_memory_per_rank);
  point.memory_of_rank = {70, 90};
  point.host_memory_of_rank = {0, 40};
  point.model_shape["sequence"] = "32";  // 16 samples of 32 tokens, counted twice
  const PointReport report = point_of(run);
  EXPECT_NEAR(*report.samples_per_second, 16 / report.step_time->median, 1e-9);
  EXPECT_DOUBLE_EQ(report.work_growth, 2);
  EXPECT_EQ(report.memory_per_rank, 90);
  EXPECT_EQ(report.device_memory_per_rank, 70);
  EXPECT_EQ(report.host_memory_per_rank, 40);
  const RunReport whole = make_report(run, "", {});
  const auto document = nlohmann::json::parse(render::render_json({.runs = {&whole, 1}}));
  EXPECT_EQ(document["runs"][0]["points"][0]["work_growth"], 2);
}

TEST(Report, WhatWasNotMeasuredIsAbsent) {
  results::RunData run = samples::run();
  run.points.emplace_back();
  run.points.back().ranks = 2;
  const PointReport point = point_of(run);
  EXPECT_FALSE(point.step_time);
  EXPECT_FALSE(point.throughput);
  EXPECT_FALSE(point.flop_per_step);
  EXPECT_FALSE(point.memory_per_rank);
  EXPECT_FALSE(point.traced_step);
  EXPECT_FALSE(point.breakdown.mean);
  EXPECT_FALSE(point.communication_ratio);
}

TEST(Report, AStepWithAnUnknownTimeIsLeftOut) {
  results::RunData run = samples::run({measured(0, {.dp = 2}, 0.4)});
  run.points[0].step_times[5][0] = std::numeric_limits<double>::quiet_NaN();
  run.points[0].step_times[6].clear();
  EXPECT_EQ(point_of(run).step_time->samples, 18U);
}

TEST(Curves, AscendAndKeepWorkloadsApart) {
  results::RunData run = samples::run({measured(0, {.dp = 4}, 1), measured(1, {}, 1),
                                       measured(2, {.pp = 2}, 1), measured(3, {.dp = 2}, 1)});
  run.points[2].workload = "pp";
  const RunReport report = make_report(run, "", {});
  EXPECT_THAT(titles(report), ElementsAre("dp, tiny, f32, strong scaling, packed",
                                          "pp, tiny, f32, strong scaling, packed"));
  EXPECT_THAT(rank_counts(report.curves[0]), ElementsAre(1, 2, 4));
}

TEST(Curves, JoinPointsWhoseOptionsScalingChanged) {
  results::RunData run = samples::run({measured(0, {}, 1), measured(1, {.dp = 2}, 1)});
  run.points[0].options = {{"batch", "16"}, {"microbatch", "2"}, {"microbatches", "8"}};
  run.points[1].options = {{"batch", "16"}, {"microbatch", "2"}, {"microbatches", "4"}};
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 1U);
  for (auto& point : run.points) point.scaling = "weak";
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 2U);
  run.points[1].options = {{"batch", "32"}, {"microbatch", "2"}, {"microbatches", "8"}};
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 1U);
}

TEST(Curves, TakePointsThatWereSkippedBeforeTheirBatchWasKnown) {
  results::RunData run = samples::run({measured(0, {}, 1), measured(1, {.dp = 2}, 1),
                                       measured(2, {}, 1), measured(3, {.dp = 4}, 1)});
  run.points[2].ranks = 3;
  run.points[2].status = results::PointStatus::skipped;
  run.points[2].options = {{"microbatch", "4"}, {"overlap", "on"}};
  EXPECT_THAT(rank_counts(curve_of(run)), ElementsAre(1, 2, 3, 4));
  run.points[2].options["overlap"] = "off";
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 2U);
}

TEST(Curves, AreNamedByTheOptionsThatTellThemApart) {
  results::RunData run = samples::run({measured(0, {}, 1), measured(1, {.dp = 2}, 1),
                                       measured(2, {}, 1), measured(3, {.dp = 2}, 1)});
  run.points[2].options["overlap"] = run.points[3].options["overlap"] = "off";
  const RunReport report = make_report(run, "", {});
  EXPECT_THAT(titles(report), ElementsAre("dp, tiny, f32, strong scaling, packed, overlap=on",
                                          "dp, tiny, f32, strong scaling, packed, overlap=off"));
  EXPECT_THAT(rank_counts(report.curves[1]), ElementsAre(1, 2));
}

TEST(Curves, ASecondMeshOfTheSameRanksOpensACurveOfItsOwn) {
  results::RunData run =
      samples::run({measured(0, {.tp = 2}, 1), measured(1, {.tp = 4}, 1), measured(2, {.dp = 2}, 1),
                    measured(3, {.tp = 2, .dp = 2}, 1)});
  const RunReport report = make_report(run, "", {});
  ASSERT_EQ(report.curves.size(), 2U);
  EXPECT_THAT(rank_counts(report.curves[0]), ElementsAre(2, 4));
  EXPECT_THAT(rank_counts(report.curves[1]), ElementsAre(2, 4));
  EXPECT_EQ(report.curves[1].points[0].data->mesh.dp, 2);
}

/// A traced step of 1000 ns in which `overlap` ns are claimed twice.
results::RunData contradicting(int overlap, const std::string& device) {
  results::RunData run = samples::run();
  run.device = device;
  run.points = {measured(0, {}, 1)};
  samples::set_trace(
      run.points[0],
      samples::point({}, {samples::Script{}.compute().compute()},
                     {{samples::trace(0, {0, 1000}, {{0, 500 + overlap}, {500, 1000}})}}));
  return run;
}

TEST(Report, RanksThatShareCoresOrAGpuAreTheBaselineOnlyAmongThemselves) {
  results::RunData run = samples::run(
      {measured(0, {}, 0.4), measured(1, {.dp = 2}, 0.2), measured(2, {.dp = 4}, 0.1)});
  const auto baseline = [&](const ReportOptions& options) {
    return curve_of(run, options).baseline;
  };
  run.points[0].labels = {"oversubscribed"};
  EXPECT_EQ(baseline({}), 2);
  run.points[1].labels = {"shared-gpu"};
  EXPECT_EQ(baseline({}), 4);
  EXPECT_EQ(baseline({.baseline = 1}), 1) << "as it was asked for";
  run.points[2].labels = {"oversubscribed", "injected"};
  EXPECT_EQ(baseline({}), 1) << "all of them are labelled";
  for (results::PointData& point : run.points) point.labels = {"injected"};
  EXPECT_EQ(baseline({}), 1);
}

TEST(Report, ASerialFractionIsAShareOfAStepOrNotShown) {
  const auto fraction = [](double of_two) {
    results::RunData run = samples::run({measured(0, {}, 0.4), measured(1, {.dp = 2}, of_two)});
    return curve_of(run).points.at(1).causes.serial_fraction;
  };
  ASSERT_TRUE(fraction(0.3));
  EXPECT_NEAR(fraction(0.3)->value, 0.5, 0.02);
  EXPECT_FALSE(fraction(1.2)) << "slower than the baseline";
  EXPECT_FALSE(fraction(0.1)) << "faster than ideal";
}

TEST(Report, ABaselineHasAName) {
  results::RunData run = samples::run({measured(0, {}, 0.4), measured(1, {.dp = 2}, 0.2)});
  EXPECT_EQ(baseline_name(curve_of(run)), "1 rank");
  EXPECT_EQ(baseline_name(curve_of(run, {.baseline = 2})), "2 ranks");
  EXPECT_EQ(baseline_name(curve_of(run, {.baseline = 3})), "");
}

TEST(Labels, NotClosedAboveOnePercentOfTheStepAndThreeOnTheHost) {
  const auto labels = [](int overlap, const std::string& device) {
    return make_report(contradicting(overlap, device), "", {}).curves.at(0).points.at(0).labels;
  };
  EXPECT_THAT(labels(9, "cuda"), Not(Contains("not-closed")));
  EXPECT_THAT(labels(11, "cuda"), Contains("not-closed"));
  EXPECT_THAT(labels(29, "host"), Not(Contains("not-closed")));
  EXPECT_THAT(labels(31, "host"), Contains("not-closed"));
}

TEST(Report, TheSpeedUpsIntervalAddsRelativeErrorsInQuadrature) {
  results::RunData run = samples::run({measured(0, {}, 0.4), measured(1, {.dp = 2}, 0.2)});
  const Curve curve = curve_of(run);
  EXPECT_FALSE(curve.points[0].speedup_interval) << "the baseline is 1 by definition";
  // Both times have the same relative interval: that of the ratio is sqrt(2) times as wide.
  const statistics::Estimate& time = *curve.points[0].step_time;
  const auto& two = curve.points[1].speedup_interval;
  ASSERT_TRUE(time.lower && time.upper && two && two->lower && two->upper);
  const double slower = std::log(*time.upper / time.median);
  const double faster = std::log(time.median / *time.lower);
  EXPECT_NEAR(std::log(*two->upper / two->value), std::hypot(faster, slower), 1e-9);
  EXPECT_NEAR(std::log(two->value / *two->lower), std::hypot(faster, slower), 1e-9);
}

TEST(Labels, KeepThoseOfTheData) {
  results::RunData run = contradicting(500, "cuda");
  run.points[0].labels = {"oversubscribed"};
  EXPECT_THAT(point_of(run).labels, ElementsAre("oversubscribed", "not-closed"));
}

TEST(Report, TracedStepIsWhatTheBreakdownSumsTo) {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  const Curve curve = curve_of(run);
  ASSERT_EQ(curve.points.size(), 4U);
  for (const PointReport& point : std::span{curve.points}.first(3)) {
    ASSERT_TRUE(point.breakdown.mean) << point.breakdown.missing;
    const breakdown::Breakdown& part = *point.breakdown.mean;
    EXPECT_NEAR(*point.traced_step, 1e-6, 1e-15);
    EXPECT_NEAR(part.compute + part.copies + part.transfer + part.wait + part.bubble + part.gap +
                    part.other,
                *point.traced_step, 1e-15);
    EXPECT_NEAR(*point.communication_ratio,
                (part.transfer + part.wait + part.hidden_communication) / 1e-6, 1e-12);
  }
}

}  // namespace
}  // namespace isoscale::analysis
