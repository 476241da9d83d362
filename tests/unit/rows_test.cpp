// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/bench.hpp"
#include "analysis/render/bench_tables.hpp"
#include "bench_samples.hpp"
#include "calibration/calibration.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

microbench::RowReport reported(const results::RowData& row,
                               const microbench::RowReference& context = {}) {
  return microbench::report_row(row, context);
}

microbench::BenchReport report_of(const results::PointData& point,
                                  const results::RunData& run = {}) {
  return microbench::report_bench(run, point, {});
}

TEST(Row, TimesOfACallAreTheSlowestRanksOverTheCalls) {
  results::RowData row{.calls = 4, .times = {{1, 8, 2}, {4, 1, 1}, {1, std::nan(""), 1}, {}}};
  EXPECT_THAT(calibration::call_times(row), ElementsAre(2, 1));
  row.times = {};
  EXPECT_FALSE(reported(row).time);
}

TEST(Row, ALopsidedIntervalShowsBothSides) {
  const statistics::Estimate time{.median = 1, .lower = 0.9, .upper = 13.59};
  EXPECT_EQ(render::interval_cell(nullptr, time), "-10.0% +1259.0%");
  const results::RowData few{.times = {{1}, {2}}};
  EXPECT_EQ(render::interval_cell(&few, reported(few).time), "n=2: too few");
}

TEST(Row, BandwidthsFollowNcclTests) {
  // From its sources: bytes / time, times a factor for n = 4.
  for (const auto& [op, factor] : {std::pair{"all_reduce", 1.5},
                                   {"reduce_scatter", 0.75},
                                   {"all_gather", 0.75},
                                   {"all_to_all", 0.75},
                                   {"gather", 0.75},
                                   {"scatter", 0.75},
                                   {"broadcast", 1.0},
                                   {"reduce", 1.0},
                                   {"sendrecv", 1.0}}) {
    const results::RowData row = samples::collective(op, 4096, 1e-6);
    const microbench::RowReport report = reported(row);
    EXPECT_DOUBLE_EQ(report.algbw.value(), 4.096e9) << op;
    EXPECT_DOUBLE_EQ(report.busbw.value(), 4.096e9 * factor) << op;
    EXPECT_FALSE(report.bandwidth || report.flops) << op;
  }
  using microbench::bus_factor;
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 2).value(), 1);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 3).value(), 4.0 / 3);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 1).value(), 0);
  EXPECT_FALSE(bus_factor("barrier", 4) || bus_factor("gemm", 4) || bus_factor("all_reduce", 0));
  const microbench::RowReport barrier = reported(samples::collective("barrier", 0, 1e-6));
  EXPECT_TRUE(barrier.time);
  EXPECT_FALSE(barrier.algbw || barrier.busbw);
}

TEST(Row, HasRatesUnlessItWasNotMeasuredOrIsAlone) {
  results::RowData row = samples::collective("all_reduce", 1024, 1e-3);
  row.status = results::PointStatus::failed;  // for wrong elements, or for being slow
  EXPECT_TRUE(reported(row).algbw);
  row.status = results::PointStatus::skipped;
  EXPECT_FALSE(reported(row).algbw);
  row.status = results::PointStatus::failed;
  row.times.clear();  // it had no answer
  EXPECT_FALSE(reported(row).algbw);
  row = samples::collective("broadcast", 1024, 1e-3);
  EXPECT_TRUE(reported(row).busbw);
  row.number["members"] = 1;
  EXPECT_FALSE(reported(row).busbw);
}

TEST(Row, RatesOfMultiplicationsAreSetAgainstCeilingAndDatasheet) {
  const results::CalibrationData calibration{
      .ceilings = {{.dtype = "bf16", .cache = "cold", .rate = 800e12}}};
  const microbench::RowReference context{.calibration = &calibration,
                                         .datasheet = microbench::datasheet_of("NVIDIA H200")};
  const auto report = reported(samples::gemm("bf16", "cold", 4096, 400e12), context);
  EXPECT_NEAR(report.flops.value(), 400e12, 1);
  EXPECT_NEAR(report.of_ceiling.value(), 0.5, 1e-12);
  EXPECT_NEAR(report.of_peak.value(), 400.0 / 989, 1e-12);
  const auto single = reported(samples::gemm("f32", "cold", 4096, 400e12), context);
  EXPECT_FALSE(single.of_ceiling || single.of_peak);
}

TEST(Datasheets, KnowGpusByNameAndNothingElse) {
  const auto peak = [](const char* name, const char* dtype) {
    const microbench::Datasheet* const sheet = microbench::datasheet_of(name);
    return sheet == nullptr ? std::nullopt : sheet->peak(dtype);
  };
  for (const auto& [gpu, dtype, wanted] :
       std::vector<std::tuple<const char*, const char*, std::optional<double>>>{
           {"NVIDIA H100 80GB HBM3", "bf16", 989.4e12},
           {"NVIDIA H100 80GB HBM3", "f64", std::nullopt},
           {"NVIDIA H100 PCIe", "f16", 756e12},
           {"NVIDIA H100 NVL", "f16", std::nullopt},
           {"NVIDIA B200", "e4m3", 4500e12},
           {"NVIDIA A100-SXM4-80GB", "bf16", 312e12},
           {"Tesla V100-SXM2-16GB", "f16", std::nullopt}}) {
    EXPECT_EQ(peak(gpu, dtype), wanted) << gpu << ' ' << dtype;
  }
  EXPECT_EQ(microbench::datasheet_of("NVIDIA GH200 480GB")->memory, std::nullopt);
  EXPECT_EQ(microbench::datasheet_of("NVIDIA H200")->memory, 4.8e12);
  EXPECT_EQ(microbench::datasheet_of(results::RankFacts{.text = {{"cpu_model", "EPYC"}}}), nullptr);
  results::RankFacts part{.text = {{"gpu_name", "NVIDIA H200"}, {"gpu_mig", "off"}}};
  EXPECT_NE(microbench::datasheet_of(part), nullptr);
  part.text["gpu_mig"] = "on";
  EXPECT_EQ(microbench::datasheet_of(part), nullptr);
  for (const char* const gpu :
       {"GB200", "GB300", "B200", "B300", "GH200", "H200 NVL", "H200", "H100 NVL", "H100 PCIe",
        "H100 80GB HBM3", "H100 SXM", "A100-SXM4-80GB", "A100"}) {
    EXPECT_EQ(microbench::datasheet_of(gpu)->gpu, gpu) << gpu << " is hidden by an earlier entry";
  }
}

TEST(Datasheets, ApplyToRowsWhoseRanksAreAlike) {
  results::RunData run;
  for (int rank = 0; rank < 4; ++rank) {
    run.rank_facts.push_back(
        {.rank = rank, .text = {{"gpu_name", rank < 3 ? "NVIDIA H200" : "NVIDIA B200"}}});
  }
  results::PointData point = samples::bench_point(0, "gemm", 4);
  point.rows = {samples::gemm("bf16", "cold", 64, 1e12),
                samples::gemm("bf16", "cold", 64, 1e12, 2)};
  point.rows[1].ranks = {0, 2};
  const microbench::BenchReport report = report_of(point, run);
  EXPECT_FALSE(report.rows[0].of_peak);
  EXPECT_NEAR(report.rows[1].of_peak.value(), 1.0 / 989, 1e-12);
}

TEST(Pairs, ThatAreSlowAreNamedByHostDeviceAndClass) {
  results::RunData run;
  for (int rank = 0; rank < 4; ++rank) {
    run.rank_facts.push_back({.rank = rank,
                              .host = "node" + std::to_string(rank / 2),
                              .text = {{"gpu_pci", "0000:0" + std::to_string(rank)}}});
  }
  const results::PointData point = samples::pairs(0);
  const microbench::BenchReport report = report_of(point, run);
  ASSERT_EQ(report.slow.size(), 1U);
  EXPECT_EQ(report.slow[0].from, "rank 1 on node0, GPU 0000:01");
  EXPECT_EQ(report.slow[0].to, "rank 2 on node1, GPU 0000:02");
  EXPECT_EQ(report.slow[0].link_class, "same node");
  EXPECT_EQ(report.slow[0].quantity, "bandwidth");
  EXPECT_NEAR(report.slow[0].value, 2e9, 1);
  EXPECT_NEAR(report.slow[0].typical, 5.03e9, 0.01e9);
}

TEST(Pairs, AreSlowByTheRule) {
  using microbench::PairReport;
  struct Case {
    std::optional<double> PairReport::*quantity;
    std::vector<double> values;
    std::vector<int> slow;  ///< the slowest first
  };
  const auto bandwidth = &PairReport::bandwidth, latency = &PairReport::latency;
  for (const Case& at : std::vector<Case>{
           {bandwidth, {}, {}},
           {bandwidth, {5}, {}},
           // Fewer than four: 25% below the best.
           {bandwidth, {10, 7.6}, {}},
           {bandwidth, {10, 7.4}, {1}},
           {bandwidth, {3, 10, 2}, {2, 0}},
           // All alike: at least 10% below the median.
           {bandwidth, {10, 10, 10, 10, 9.1}, {}},
           {bandwidth, {10, 10, 10, 10, 8.9}, {4}},
           // A class that spreads widely has a wide limit: log MAD of 8 ... 12 is about 0.2.
           {bandwidth, {8, 9, 10, 11, 12.5, 6}, {}},
           {bandwidth, {8, 9, 10, 11, 12.5, 1}, {5}},
           // Two slow ones among six, as where one link of three ranks is shaped.
           {bandwidth, {0.11, 0.12, 5, 5.1, 4.9, 5}, {0, 1}},
           // The others spread so widely that their deviations say nothing.
           {bandwidth, {0.024, 0.0241, 0.3, 0.6, 1.2, 2.4}, {0, 1}},
           // No pair is slower than a fourth of the median, so none counts as slow.
           {bandwidth, {0.3, 0.4, 0.9, 1.1, 2.4, 3}, {}},
           {latency, {2e-6, 2.1e-6, 2e-6, 2.2e-6}, {}},
           {latency, {2e-6, 34e-6, 2e-6, 2e-6}, {1}},
           {latency, {2e-6, 3.9e-6}, {}},
           {latency, {2e-6, 4.1e-6}, {1}}}) {
    std::vector<PairReport> pairs;
    for (const double value : at.values) {
      pairs.push_back({.dst = static_cast<int>(pairs.size()), .link_class = "net"});
      pairs.back().*at.quantity = value;
    }
    std::vector<int> slow;
    for (const microbench::SlowPair& pair : microbench::slow_pairs(pairs, {}, {})) {
      EXPECT_EQ(pair.quantity, at.quantity == latency ? "latency" : "bandwidth");
      EXPECT_LT(pair.share(), 1);
      slow.push_back(pair.dst);
    }
    EXPECT_EQ(slow, at.slow) << testing::PrintToString(at.values);
  }
}

TEST(Overlap, LacksWhatFailedOrIsNotKnown) {
  results::PointData failed = samples::overlaps(0), few = failed, scattered = failed;
  failed.rows[1] = samples::excused(failed.rows[1], results::PointStatus::failed, "timed out");
  const microbench::OverlapReport without = report_of(failed).overlaps[0];
  EXPECT_FALSE(without.hidden);
  EXPECT_TRUE(without.gemm_slowdown);
  EXPECT_EQ(without.failure, "collective failed: timed out");
  few.rows[2].times.resize(5);
  const microbench::OverlapReport of_few = report_of(few).overlaps[0];
  EXPECT_FALSE(of_few.hidden || of_few.hidden_known);
  EXPECT_EQ(of_few.failure, "");
  EXPECT_THAT(of_few.why_unknown, HasSubstr("together 5"));
  // On a busy machine times scatter by half of themselves: no share follows from that.
  for (auto& play : scattered.rows[2].times) play.back() *= play.back() > 5e-2 ? 1.5 : 0.7;
  const microbench::BenchReport report = report_of(scattered);
  const microbench::OverlapReport& at = report.overlaps[0];
  ASSERT_TRUE(at.hidden && at.hidden->lower);
  EXPECT_GT(*at.hidden->upper - *at.hidden->lower, 1);
  EXPECT_FALSE(at.hidden_known);
  EXPECT_NE(at.why_unknown, "");
  EXPECT_TRUE(report.overlaps[1].hidden_known);
}

}  // namespace
}  // namespace isoscale::analysis
