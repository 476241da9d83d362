// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>

#include "analysis/advice/rules.hpp"
#include "analysis/render/summary_findings_and_index.hpp"
#include "findings_samples.hpp"
#include "preflight/job_facts.hpp"

namespace isoscale::analysis::advice {
namespace {

using samples::findings_of;

/// Pipelines of 2, 4 and 8 stages with 8 microbatches.
results::RunData pipelines() {
  results::RunData run = samples::run({pipeline(2, 8), pipeline(4, 8), pipeline(8, 8)});
  for (int i = 0; i < 3; ++i) run.points[static_cast<std::size_t>(i)].index = i;
  return run;
}

TEST(Findings, AreOneForAllPointsOfACurve) {
  const auto all = findings_of(pipelines());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].ranks, (std::vector{2, 4, 8}));
  // The gravest stands for all.
  EXPECT_DOUBLE_EQ(all[0].severity.value(), 7.0 / 15);
  EXPECT_THAT(all[0].sentence, AllOf(HasSubstr("46.7%"), EndsWith("(on 8)")));
  EXPECT_EQ(all[0].evidence.front().ranks, 8);
  EXPECT_EQ(all[0].evidence.back().ranks, 2);
}

TEST(Findings, AreNoneOfPointsThatTellNothingOfTheMachineAndTheseAreNamed) {
  results::RunData run = pipelines();
  EXPECT_TRUE(left_out_of(make_report(run, "a.h5", {})).empty());
  run.points.push_back(pipeline(16, 8));
  run.points.back().index = 3;
  run.points[0].labels = run.points[3].labels = {"shared-gpu"};
  run.points[1].labels = {"injected"};
  run.points[2].labels = {"oversubscribed", "injected"};
  EXPECT_TRUE(findings_of(run).empty());
  const auto rows = render::left_out_json(left_out_of(make_report(run, "a.h5", {})));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["ranks"], nlohmann::json({2, 16}));
  EXPECT_EQ(rows[0]["why"], "shared-gpu");
  EXPECT_THAT(rows[0]["curve"].get<std::string>(), StartsWith("dp, tiny"));
  EXPECT_EQ(render::left_out_text(left_out_of(make_report(run, "a.h5", {}))),
            "dp on 2, 16 ranks (shared-gpu); dp on 4 ranks (injected); "
            "dp on 8 ranks (oversubscribed, injected)");
  // Points without a result have no times to judge.
  run = pipelines();
  run.points[0].status = results::PointStatus::failed;
  run.points[1].verified = false;
  run.points[2].status = results::PointStatus::skipped;
  EXPECT_TRUE(findings_of(run).empty());
  for (results::PointData& point : run.points) {
    point.labels = {"shared-gpu"};
    point.status = results::PointStatus::failed;
  }
  EXPECT_TRUE(left_out_of(make_report(run, "a.h5", {})).empty());
}

TEST(Findings, OfInjectedFaultsSayWhatWasInjected) {
  results::PointData point = traced_point({.dp = 4}, Script{}.compute().all_reduce(Axis::dp),
                                          {{{0, 200}, {200, 1000}}, {{0, 800}, {800, 1000}}});
  point.labels = {"injected"};
  point.injections = {"slow-rank=1:4"};
  const auto all = findings_of(point);
  const Finding* const found = find(all, "imbalance");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->evidence.back().text, "slow-rank=1:4");
  EXPECT_EQ(find(all, "communication-ratio"), nullptr) << "which is no fault";
}

/// Launches of dp on 1 and 2 ranks, and of pp on 2; each factor is of the point's step time.
results::RunData spread_launch(const std::string& id, double one, double two, double stages) {
  results::RunData run = launch(id, 1, 2);
  add(run, {}, 20e-3 * one);
  add(run, {.dp = 2}, 10e-3 * two);
  add(run, {.pp = 2}, 10e-3 * stages).workload = "pp";
  return run;
}

TEST(Findings, WithoutSeverityAreOfTheLargestPointAndTheLargestFirst) {
  const JoinedLaunches launches{{spread_launch("a", 1, 1, 1), spread_launch("b", 1.4, 1.2, 4)}};
  std::vector<Finding> found = findings_of(launches.report());
  std::erase_if(found, [](const Finding& at) { return at.rule != "launch-spread"; });
  ASSERT_EQ(found.size(), 2U);
  // (slowest - fastest) over the median, which of two is the mean.
  EXPECT_NEAR(found[0].size.value(), 3.0 / 2.5, 1e-9);
  EXPECT_THAT(found[0].curve, HasSubstr("pp"));
  EXPECT_NEAR(found[1].size.value(), 0.4 / 1.2, 1e-9);
  EXPECT_THAT(found[1].sentence, AllOf(HasSubstr("33.3%"), EndsWith("(on 1)")));
  EXPECT_EQ(found[1].ranks, (std::vector{1, 2}));
  EXPECT_TRUE(findings_of(launches.reports.front()).empty()) << "one launch has no spread";
  const JoinedLaunches close{{launch_of("a", 1, 2, 10e-3), launch_of("b", 1, 2, 10.3e-3)}};
  EXPECT_TRUE(findings_of(close.report()).empty());
}

TEST(Findings, OfHardwareComeBeforeOthersOfUnknownSeverity) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 10e-3), launch_of("b", 1, 2, 90e-3)};
  runs.front().points.push_back(pairs(1));
  const JoinedLaunches launches{std::move(runs)};
  const auto all = findings_of(launches.report());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rule, "slow-pair");
  EXPECT_EQ(all[1].rule, "launch-spread");
  EXPECT_GT(all[1].size.value(), all[0].size.value());
}

TEST(Findings, OfSeveralRunsAreSaidOnceWhereTheyAreTheSame) {
  std::vector<results::RunData> runs;
  for (const char* const id : {"a", "b", "c"}) {
    runs.push_back(launch_of(id, 1, 2, 10e-3));
    runs.back().preflight.emplace();
    runs.back().preflight->results = {
        {.name = "gpu-nic", .verdict = results::Verdict::warning, .what = "is far"}};
  }
  runs.back().preflight->results[0].what = "is elsewhere";
  const JoinedLaunches launches{std::move(runs)};
  EXPECT_THAT(findings_of(launches.report()),
              ElementsAre(Field(&Finding::sentence, "launch 1: is far"),
                          Field(&Finding::sentence, "launch 3: is elsewhere")));
}

TEST(FindingsText, HidesNoKindOfFaultOfHardware) {
  std::vector<Finding> many(12);
  for (const std::size_t i : {10U, 11U}) {
    many[i].rule = "slow-pair";
    many[i].concern = Concern::hardware;
  }
  EXPECT_EQ(render::shown_findings(many, 8), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 10}))
      << "the gravest of a kind is enough";
  for (const auto& [i, rule] : {std::pair{3U, "slow-rank"},
                                {5U, "slow-link"},
                                {7U, "throttling"},
                                {9U, "pcie-for-nvlink"}}) {
    many[i].rule = rule;
    many[i].concern = Concern::hardware;
  }
  EXPECT_EQ(render::shown_findings(many, 3), (std::vector<std::size_t>{3, 5, 7, 9, 10}))
      << "the limit hides none of five kinds";
  EXPECT_TRUE(render::findings_document({}).empty());
}

TEST(FindingsDocs, NameEveryRuleWithItsThresholdsAndSourceAndNoOther) {
  // The cells of the table in docs/findings.md, by the rule that they begin with: "| `noise` |
  // ...".
  std::ifstream file{ISOSCALE_DOCS "/findings.md"};
  std::map<std::string, std::vector<std::string>> documented;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t begin = 2; begin < line.size();) {
      const std::size_t end = std::min(line.find(" |", begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 3;
    }
    const std::string name = cells[0].substr(1, cells[0].size() - 2);
    EXPECT_TRUE(documented.emplace(name, cells).second) << line;
  }
  for (const Rule& rule : rules()) {
    SCOPED_TRACE(rule.name);
    const auto row = documented.extract(std::string{rule.name});
    ASSERT_FALSE(row.empty());
    const auto& cells = row.mapped();
    ASSERT_EQ(cells.size(), 4U) << "rule, finds, threshold, source";
    EXPECT_EQ(rule.thresholds[0].what.empty(), cells[2] == "—");
    for (const Threshold& at : rule.thresholds) {
      if (at.what.empty()) continue;
      EXPECT_THAT(
          cells[2],
          HasSubstr(to_text({.what = std::string{at.what}, .unit = at.unit, .value = at.value})));
    }
    EXPECT_EQ(cells[3], rule.source);
    EXPECT_FALSE(rule.source.empty());
    EXPECT_EQ(rule.source.find("://"), std::string_view::npos);
  }
  for (const auto& [name, cells] : documented) ADD_FAILURE() << "no such rule: " << name;
}

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
  EXPECT_EQ(finding(calibrated(point, 30e9), "above-ceiling")->concern, Concern::measurement);
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
                  .evidence = {{"share of samples", DoubleEq(5.0 / 19)}}});
  EXPECT_FALSE(finding(sampled(idle, 20), "throttling"));
  EXPECT_FALSE(finding(sampled(power_cap, 1), "throttling")) << "rarely";
  EXPECT_TRUE(finding(sampled(power_cap, 2), "throttling"));
}

/// A GPU under full load runs at its power limit, and loses only if it is slower than others.
TEST(Throttling, ByThePowerCapIsJudgedAgainstOtherGpus) {
  constexpr double power_cap = 0x04;
  results::RunData run = sampled(power_cap, 20);
  EXPECT_FALSE(finding(run, "throttling")->severity);
  auto& series = run.points[0].device_series;
  for (const int gpu : {1, 2}) {
    for (const std::size_t i : {0U, 1U}) {
      series.push_back(series[i]);
      series.back().device = fmt::format("gpu {}", gpu);
    }
  }
  EXPECT_FALSE(finding(run, "throttling")->severity);
  series.back().value.assign(20, 1.2e9);
  expect_finding(run, "throttling",
                 {.severity = about(0.8 * 0.4), .sentence = HasSubstr("gpu 2 and 2 more")});
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
  EXPECT_EQ(finding(run, "slow-pair")->concern, Concern::hardware);
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
}  // namespace isoscale::analysis::advice
