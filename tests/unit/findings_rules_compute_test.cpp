// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "cause_samples.hpp"
#include "findings_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::evidence;
using samples::find;
using samples::finding;
using samples::findings_of;
using samples::Script;
using samples::traced_point;
using testing::HasSubstr;

/// One rank, a GEMM of `flop` that takes 800 of the step's 1000 ns, then an update.
results::PointData gemm_point(double flop) {
  const Script script = Script{}.compute().op(program::OpKind::update);
  results::PointData point = traced_point({}, script, {{{0, 800}, {800, 1000}}});
  point.outline.outlines.front().ops.front().flop = flop;
  point.flop_of_rank = {flop};
  point.options["microbatch"] = "4";
  point.model_shape = {{"sequence", "512"}};
  return point;
}

/// A calibration whose shapes reach `small` FLOP/s at 2e3 FLOP and 100 GFLOP/s at 2e9.
results::RunData calibrated(results::PointData point, double small) {
  results::RunData run = samples::run_of(std::move(point));
  run.calibration.emplace();
  run.calibration->gemms = {
      {.dtype = "f32", .cache = "cold", .m = 10, .n = 10, .k = 10, .rate = small},
      {.dtype = "f32", .cache = "cold", .m = 1e3, .n = 1e3, .k = 1e3, .rate = 100e9}};
  run.calibration->ceilings = {
      {.dtype = "f32", .cache = "cold", .rate = 100e9, .m = 1e3, .n = 1e3, .k = 1e3}};
  return run;
}

TEST(SmallGemms, AreFoundBelowHalfOfTheCeiling) {
  // 24000 FLOP in 800 ns: 30 GFLOP/s.
  const auto found = finding(calibrated(gemm_point(24e3), 30e9), "small-gemms");
  ASSERT_TRUE(found);
  // Calibration reached no more at this size.
  EXPECT_NEAR(found->severity.value(), 0, 1e-12);
  EXPECT_THAT(found->sentence, HasSubstr("30.0% of the measured ceiling"));
  EXPECT_NEAR(evidence(*found, "calibration at this size"), 30e9, 1);
  EXPECT_NEAR(evidence(*found, "rate as traced"), 30e9, 1);
  EXPECT_THAT(found->next_step, HasSubstr("microbatch (now 4)"));
}

TEST(SmallGemms, CostWhatTheyLoseBeyondTheirSize) {
  const auto found = finding(calibrated(gemm_point(24e3), 60e9), "small-gemms");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->severity.value(), 0.8 * 0.5, 1e-12);
}

TEST(SmallGemms, HaveNoSeverityWhereTheirSizeWasNotCalibrated) {
  results::RunData run = calibrated(gemm_point(24e3), 30e9);
  run.calibration->gemms.clear();
  const auto found = finding(run, "small-gemms");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->severity);
  EXPECT_NEAR(found->size.value(), 0.8 * 0.7, 1e-12);
}

/// On a model as small as `tiny` the GEMMs of its size are as slow, and communication comes first.
TEST(SmallGemms, ComeBehindCommunicationWhereTheirSizeIsAsSlow) {
  const Script script = Script{}.compute().all_reduce(mesh::Axis::dp);
  results::PointData point = traced_point({.dp = 2}, script, {{{0, 600}, {600, 1000}}});
  point.outline.outlines.front().ops.front().flop = 18e3;  // in 600 ns: 30 GFLOP/s
  const auto all = findings_of(calibrated(point, 31e9));
  ASSERT_NE(find(all, "small-gemms"), nullptr);
  ASSERT_NE(find(all, "communication-ratio"), nullptr);
  EXPECT_LT(find(all, "communication-ratio"), find(all, "small-gemms"));
}

TEST(SmallGemms, AreNoneWhereTheyAreFast) {
  EXPECT_FALSE(finding(calibrated(gemm_point(48e3), 30e9), "small-gemms"));
}

TEST(SmallGemms, AreNoneWhereShapesOfThisSizeCanBeFast) {
  EXPECT_FALSE(finding(calibrated(gemm_point(24e3), 90e9), "small-gemms"));
}

TEST(SmallGemms, AreJudgedByWhatTheyTakeAlone) {
  // As traced they reach 30%, without communication 60%.
  results::PointData point = gemm_point(24e3);
  point.solo_times = {samples::solo(0, {400, 200})};
  EXPECT_FALSE(finding(calibrated(point, 30e9), "small-gemms"));
  point.solo_times = {samples::solo(0, {600, 200})};
  const auto found = finding(calibrated(point, 30e9), "small-gemms");
  ASSERT_TRUE(found);
  EXPECT_NEAR(evidence(*found, "rate alone"), 40e9, 1);
}

TEST(SmallGemms, AreGuessedByFlopOnGpusWithoutACeiling) {
  results::RunData run = samples::run_of(gemm_point(0.5e9));
  EXPECT_FALSE(finding(run, "small-gemms"));
  run.device = "cuda";
  const auto found = finding(run, "small-gemms");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->severity);
  EXPECT_THAT(found->sentence, HasSubstr("may be"));
  run.points[0].outline.outlines[0].ops[0].flop = 2e9;
  EXPECT_FALSE(finding(run, "small-gemms"));
}

/// A curve of one and two ranks, whose GEMM takes 800 ns of 1000 and `gemm` of 1000.
results::RunData scaled(int gemm) {
  const Script script = Script{}.compute().op(program::OpKind::update);
  results::PointData one = traced_point({}, script, {{{0, 800}, {800, 1000}}});
  results::PointData two = traced_point({.dp = 2}, script, {{{0, gemm}, {gemm, 1000}}});
  two.index = 1;
  results::RunData run = samples::run_of(std::move(one));
  run.points.push_back(std::move(two));
  return run;
}

TEST(SlowerGemms, AreFoundAgainstTheBaseline) {
  // Half of 800 ns would be ideal: 300 of 1000 ns are lost to GEMMs of 700.
  const auto found = finding(scaled(700), "slower-gemms");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->severity.value(), 0.3, 0.001);
  EXPECT_THAT(found->next_step, HasSubstr("share memory"));
  EXPECT_FALSE(finding(scaled(450), "slower-gemms"));
}

/// An H100: 989.4 TFLOP/s over 3.35 TB/s = 295 FLOP a byte.
results::RunData on_h100(int microbatch, int sequence) {
  results::PointData point = gemm_point(24e3);
  point.dtype = "bf16";
  point.options["microbatch"] = std::to_string(microbatch);
  point.model_shape["sequence"] = std::to_string(sequence);
  results::RunData run = samples::run_of(std::move(point));
  run.device = "cuda";
  for (results::RankFacts& facts : run.rank_facts) facts.text["gpu_name"] = "NVIDIA H100 80GB HBM3";
  return run;
}

TEST(SmallMicrobatch, IsFoundBelowTheFlopPerByteOfTheGpu) {
  const auto all = findings_of(on_h100(1, 128));
  const Finding* const found = find(all, "small-microbatch");
  ASSERT_NE(found, nullptr);
  const double machine = 989.4e12 / 3.35e12;
  EXPECT_NEAR(found->severity.value(), 0.8 * (1 - 128 / machine), 1e-12);
  EXPECT_THAT(found->sentence, HasSubstr("128 tokens"));
  EXPECT_EQ(find(all, "small-gemms"), nullptr) << "it stands for them";
  EXPECT_FALSE(finding(on_h100(4, 128), "small-microbatch"));
}

TEST(SmallMicrobatch, IsFoundOfOneSampleAtALowMfu) {
  results::PointData point = gemm_point(24e3);
  point.options["microbatch"] = "1";
  // 24000 FLOP a step of 1 us: 24 GFLOP/s of 100.
  const auto found = finding(calibrated(point, 30e9), "small-microbatch");
  ASSERT_TRUE(found);
  EXPECT_NEAR(evidence(*found, "MFU"), 0.24, 0.001);
  point.options["microbatch"] = "2";
  EXPECT_FALSE(finding(calibrated(point, 30e9), "small-microbatch"));
  point.options["microbatch"] = "1";
  point.flop_of_rank = {32e3};
  EXPECT_FALSE(finding(calibrated(point, 30e9), "small-microbatch"));
}

/// A step of 1 us: 100,000 FLOP are as many a second as the ceiling.
TEST(AboveCeiling, IsFoundAboveAMeasuredMfuOf100PercentAndNotBelow) {
  results::PointData point = gemm_point(104e3);
  const auto found = finding(calibrated(point, 30e9), "above-ceiling");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->concern, Concern::measurement);
  EXPECT_FALSE(found->severity);
  EXPECT_NEAR(found->size.value(), 0.04, 1e-3);
  EXPECT_NEAR(evidence(*found, "MFU"), 1.04, 1e-3);  // nothing is cut off
  EXPECT_NEAR(evidence(*found, "ceiling"), 100e9, 1);
  EXPECT_FALSE(finding(calibrated(gemm_point(99e3), 30e9), "above-ceiling"));
  EXPECT_FALSE(finding(samples::run_of(point), "above-ceiling")) << "no ceiling";
}

/// A GPU that gives `bits` as reasons in the last `count` of 20 samples.
results::RunData sampled(double bits, int count) {
  results::PointData point = gemm_point(1e9);
  results::DeviceSeries reasons{
      .rank = 0, .device = "gpu 0", .quantity = "throttle_reasons", .unit = "1"};
  results::DeviceSeries clock{.rank = 0, .device = "gpu 0", .quantity = "sm_clock", .unit = "Hz"};
  for (int i = 0; i < 20; ++i) {
    reasons.time.push_back(0.1 * i);
    reasons.value.push_back(i >= 20 - count ? bits : 0);
    clock.time.push_back(0.1 * i);
    clock.value.push_back(1.5e9);
  }
  point.device_series = {reasons, clock};
  results::RunData run = samples::run_of(std::move(point));
  run.rank_facts[0].number["gpu_sm_clock_max"] = 2e9;
  return run;
}

TEST(Throttling, IsFoundWithItsReasonAndClock) {
  constexpr double hardware_thermal = 0x40;
  const auto found = finding(sampled(hardware_thermal, 5), "throttling");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sentence,
            "1 rank: clocks of rank 0 (node17), gpu 0 were held down by hardware thermal slowdown");
  EXPECT_NEAR(found->severity.value(), 0.8 * 0.25, 1e-12);
  // The first of the 20 samples is of warm-up.
  EXPECT_DOUBLE_EQ(evidence(*found, "of the samples"), 5.0 / 19);
}

TEST(Throttling, IsNoneOfAnIdleGpuOrARarePowerCap) {
  constexpr double idle = 0x01, power_cap = 0x04;
  EXPECT_FALSE(finding(sampled(idle, 20), "throttling"));
  EXPECT_FALSE(finding(sampled(power_cap, 1), "throttling"));
  EXPECT_TRUE(finding(sampled(power_cap, 2), "throttling"));
}

}  // namespace
}  // namespace isoscale::analysis
