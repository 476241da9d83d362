// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "findings_samples.hpp"
#include "preflight/job_facts.hpp"

namespace isoscale::analysis {
namespace {

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
  results::RunData run = run_of(std::move(point));
  run.calibration = {
      .gemms = {{.dtype = "f32", .cache = "cold", .m = 10, .n = 10, .k = 10, .rate = small},
                {.dtype = "f32", .cache = "cold", .m = 1e3, .n = 1e3, .k = 1e3, .rate = 100e9}},
      .ceilings = {{.dtype = "f32", .cache = "cold", .rate = 100e9, .m = 1e3, .n = 1e3, .k = 1e3}}};
  return run;
}

TEST(SmallGemms, AreFoundBelowHalfOfTheCeiling) {
  // 24000 FLOP in 800 ns: 30 GFLOP/s. Calibration reached no more at this size, or twice as much.
  expect_finding(calibrated(gemm_point(24e3), 30e9), "small-gemms",
                 {.severity = about(0),
                  .sentence = HasSubstr("30.0%"),
                  .next_step = HasSubstr("(now 4)"),
                  .evidence = {{"calibration at this size", DoubleNear(30e9, 1)},
                               {"rate as traced", DoubleNear(30e9, 1)}}});
  expect_finding(calibrated(gemm_point(24e3), 60e9), "small-gemms", {.severity = about(0.8 * 0.5)});
  results::RunData uncalibrated = calibrated(gemm_point(24e3), 30e9);
  uncalibrated.calibration->gemms.clear();
  expect_finding(uncalibrated, "small-gemms",
                 {.severity = Eq(std::nullopt), .size = about(0.8 * 0.7)});
  EXPECT_FALSE(finding(calibrated(gemm_point(48e3), 30e9), "small-gemms")) << "they are fast";
  EXPECT_FALSE(finding(calibrated(gemm_point(24e3), 90e9), "small-gemms")) << "they could be fast";
}

TEST(SmallGemms, ComeBehindCommunicationWhereTheirSizeIsAsSlow) {
  const Script script = Script{}.compute().all_reduce(Axis::dp);
  results::PointData point = traced_point({.dp = 2}, script, {{{0, 600}, {600, 1000}}});
  point.outline.outlines.front().ops.front().flop = 18e3;  // in 600 ns: 30 GFLOP/s
  const auto all = findings_of(calibrated(point, 31e9));
  ASSERT_NE(find(all, "communication-ratio"), nullptr);
  EXPECT_LT(find(all, "communication-ratio"), find(all, "small-gemms"));
}

TEST(SmallGemms, AreJudgedByWhatTheyTakeAloneAndGuessedByFlopOnGpus) {
  // The traced GEMMs reach 30% of the ceiling, and 60% without communication.
  results::PointData point = gemm_point(24e3);
  point.solo_times = {solo(0, {400, 200})};
  EXPECT_FALSE(finding(calibrated(point, 30e9), "small-gemms"));
  point.solo_times = {solo(0, {600, 200})};
  expect_finding(calibrated(point, 30e9), "small-gemms",
                 {.evidence = {{"rate alone", DoubleNear(40e9, 1)}}});
  // Without a ceiling.
  results::RunData run = run_of(gemm_point(0.5e9));
  EXPECT_FALSE(finding(run, "small-gemms"));
  run.device = "cuda";
  expect_finding(run, "small-gemms",
                 {.severity = Eq(std::nullopt), .sentence = HasSubstr("may be")});
  run.points[0].outline.outlines[0].ops[0].flop = 2e9;
  EXPECT_FALSE(finding(run, "small-gemms"));
}

/// A curve of one and two ranks, whose GEMM takes 800 ns of 1000 and `gemm` of 1000.
results::RunData scaled(int gemm) {
  const Script script = Script{}.compute().op(program::OpKind::update);
  results::PointData one = traced_point({}, script, {{{0, 800}, {800, 1000}}});
  results::PointData two = traced_point({.dp = 2}, script, {{{0, gemm}, {gemm, 1000}}});
  two.index = 1;
  results::RunData run = run_of(std::move(one));
  run.points.push_back(std::move(two));
  return run;
}

TEST(SlowerGemms, AreFoundAgainstTheBaseline) {
  // Half of 800 ns would be ideal: 300 of 1000 ns are lost to GEMMs of 700.
  expect_finding(scaled(700), "slower-gemms",
                 {.severity = about(0.3, 0.001), .next_step = HasSubstr("share memory")});
  EXPECT_FALSE(finding(scaled(450), "slower-gemms"));
}

/// An H100: 989.4 TFLOP/s over 3.35 TB/s = 295 FLOP a byte.
results::RunData on_h100(int microbatch, int sequence) {
  results::PointData point = gemm_point(24e3);
  point.dtype = "bf16";
  point.options["microbatch"] = std::to_string(microbatch);
  point.model_shape["sequence"] = std::to_string(sequence);
  results::RunData run = run_of(std::move(point));
  run.device = "cuda";
  for (results::RankFacts& facts : run.rank_facts) facts.text["gpu_name"] = "NVIDIA H100 80GB HBM3";
  return run;
}

TEST(SmallMicrobatch, IsFoundBelowTheFlopPerByteOfTheGpu) {
  constexpr double machine = 989.4e12 / 3.35e12;
  expect_finding(
      on_h100(1, 128), "small-microbatch",
      {.severity = about(0.8 * (1 - 128 / machine)), .sentence = HasSubstr("128 tokens")});
  EXPECT_FALSE(finding(on_h100(1, 128), "small-gemms")) << "it stands for them";
  EXPECT_FALSE(finding(on_h100(4, 128), "small-microbatch"));
}

TEST(SmallMicrobatch, IsFoundOfOneSampleAtALowMfu) {
  results::PointData point = gemm_point(24e3);
  point.options["microbatch"] = "1";
  // 24000 FLOP a step of 1 us: 24 GFLOP/s of 100.
  expect_finding(calibrated(point, 30e9), "small-microbatch",
                 {.evidence = {{"MFU", DoubleNear(0.24, 0.001)}}});
  point.options["microbatch"] = "2";
  EXPECT_FALSE(finding(calibrated(point, 30e9), "small-microbatch"));
  point.options["microbatch"] = "1";
  point.flop_of_rank = {32e3};
  EXPECT_FALSE(finding(calibrated(point, 30e9), "small-microbatch"));
}

/// A step of 1 us: 100,000 FLOP are as many a second as the ceiling.
TEST(AboveCeiling, IsFoundAboveAMeasuredMfuOf100PercentAndNotBelow) {
  results::PointData point = gemm_point(104e3);
  expect_finding(calibrated(point, 30e9), "above-ceiling",
                 {.severity = Eq(std::nullopt),
                  .size = about(0.04, 1e-3),
                  .evidence = {{"MFU", DoubleNear(1.04, 1e-3)},  // nothing is cut off
                               {"ceiling", DoubleNear(100e9, 1)}}});
  EXPECT_EQ(finding(calibrated(point, 30e9), "above-ceiling")->concern,
            advice::Concern::measurement);
  EXPECT_FALSE(finding(calibrated(gemm_point(99e3), 30e9), "above-ceiling"));
  EXPECT_FALSE(finding(run_of(point), "above-ceiling")) << "no ceiling";
}

/// A GPU that gives `bits` as reasons in the last `count` of 20 samples.
results::RunData sampled(double bits, int count) {
  results::DeviceSeries reasons{
      .rank = 0, .device = "gpu 0", .quantity = "throttle_reasons", .unit = "1"};
  for (int i = 0; i < 20; ++i) {
    reasons.time.push_back(0.1 * i);
    reasons.value.push_back(i >= 20 - count ? bits : 0);
  }
  results::DeviceSeries clock = reasons;
  clock.quantity = "sm_clock";
  clock.unit = "Hz";
  clock.value.assign(20, 1.5e9);
  results::RunData run = run_of(gemm_point(1e9));
  run.points[0].device_series = {reasons, clock};
  run.rank_facts[0].number["gpu_sm_clock_max"] = 2e9;
  return run;
}

TEST(Throttling, IsFoundWithItsReasonAndClock) {
  constexpr double idle = 0x01, power_cap = 0x04, hardware_thermal = 0x40;
  // The first of the 20 samples is of warm-up.
  expect_finding(sampled(hardware_thermal, 5), "throttling",
                 {.severity = about(0.8 * 0.25),
                  .sentence = AllOf(HasSubstr("rank 0 (node17), gpu 0"), HasSubstr("thermal")),
                  .evidence = {{"of the samples", DoubleEq(5.0 / 19)}}});
  EXPECT_FALSE(finding(sampled(idle, 20), "throttling"));
  EXPECT_FALSE(finding(sampled(power_cap, 1), "throttling")) << "rarely";
  EXPECT_TRUE(finding(sampled(power_cap, 2), "throttling"));
}

/// Eight GPUs of a node.
results::RunData gpus(const char* model, double links) {
  results::RunData run = samples::run();
  run.device = "cuda";
  for (results::RankFacts& facts : run.rank_facts) {
    facts.text["gpu_name"] = model;
    facts.number["gpu_nvlinks"] = links;
  }
  return run;
}

results::RunData with_check(const char* name, results::Verdict verdict) {
  results::RunData run = samples::run();
  run.preflight.emplace();
  run.preflight->results = {{.name = name,
                             .verdict = verdict,
                             .host = "node17",
                             .device = "GPU 3",
                             .what = "what was found",
                             .fix = "what to do"},
                            {.name = "persistence", .verdict = results::Verdict::warning}};
  return run;
}

TEST(SlowPair, IsFoundOfMeasuredPairs) {
  results::RunData run = samples::run();
  run.points = {pairs(0)};
  const double lacking = 1 - 0.398;  // of what other pairs reach
  expect_finding(run, "slow-pair",
                 {.size = about(lacking, 5e-4),
                  .sentence = AllOf(HasSubstr("ranks 1 and 2"), HasSubstr("39.8%")),
                  .evidence = {{"bandwidth", DoubleNear(2e9, 1)}}});
  EXPECT_EQ(finding(run, "slow-pair")->concern, advice::Concern::hardware);
  EXPECT_TRUE(finding(run, "slow-pair")->ranks.empty());
  run.points[0].labels = {"oversubscribed"};
  EXPECT_FALSE(finding(run, "slow-pair"));
  run.points = {collectives(0)};
  EXPECT_FALSE(finding(run, "slow-pair"));
}

TEST(PcieForNvlink, IsFoundWithoutALinkOrOfPairsOverPcieWhereThereAreLinks) {
  results::RunData run = gpus("NVIDIA H100 80GB HBM3", 0);
  expect_finding(run, "pcie-for-nvlink", {.sentence = HasSubstr("node17")});
  EXPECT_FALSE(finding(gpus("NVIDIA H100 80GB HBM3", 18), "pcie-for-nvlink"));
  EXPECT_FALSE(finding(gpus("NVIDIA H100 PCIe", 0), "pcie-for-nvlink"));
  run.rank_facts.resize(1);
  EXPECT_FALSE(finding(run, "pcie-for-nvlink"));
  run = gpus("some GPU", 4);
  run.points = {pairs(0)};
  EXPECT_FALSE(finding(run, "pcie-for-nvlink"));
  for (results::RowData& row : run.points[0].rows) row.text["class"] = "same node, PCIe";
  expect_finding(run, "pcie-for-nvlink", {.evidence = {{"over PCIe", testing::Gt(4e9)}}});
  for (results::RankFacts& facts : run.rank_facts) facts.number["gpu_nvlinks"] = 0;
  EXPECT_FALSE(finding(run, "pcie-for-nvlink"));
}

TEST(ChecksOfPreflight, AreFindings) {
  using results::Verdict;
  const std::vector<results::CheckResult> all = preflight::check_job({}, {});
  for (const auto& [check, rule] : {std::pair{"nvlink-pairs", "pcie-for-nvlink"},
                                    {"nvlinks", "pcie-for-nvlink"},
                                    {"gpu-cores", "far-numa"},
                                    {"gpu-nic", "far-numa"},
                                    {"numa-mask", "far-numa"}}) {
    expect_finding(with_check(check, Verdict::warning), rule,
                   {.sentence = HasSubstr("node17, GPU 3: what was"), .next_step = "what to do"});
    EXPECT_TRUE(findings_of(with_check(check, Verdict::ok)).empty()) << check;
    EXPECT_TRUE(findings_of(with_check(check, Verdict::not_checked)).empty()) << check;
    EXPECT_EQ(std::ranges::count(all, check, &results::CheckResult::name), 1)
        << check << " is no check of preflight";
  }
  EXPECT_TRUE(findings_of(with_check("ecc", Verdict::warning)).empty());
}

}  // namespace
}  // namespace isoscale::analysis
