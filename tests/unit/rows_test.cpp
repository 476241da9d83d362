// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/microbench/bench.hpp"
#include "analysis/render/bench_tables.hpp"
#include "bench_samples.hpp"
#include "calibration/calibration.hpp"

namespace isoscale::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

microbench::RowReport reported(const results::RowData& row) {
  return microbench::report_row(row, {});
}

TEST(Row, TimesOfACallAreTheSlowestRanksOverTheCalls) {
  results::RowData row{.calls = 4, .times = {{1, 8, 2}, {4, 1, 1}, {1, std::nan(""), 1}, {}}};
  EXPECT_THAT(calibration::call_times(row), ElementsAre(2, 1));
  row.times = {};
  EXPECT_FALSE(reported(row).time);
}

TEST(Row, HasAnIntervalFromSixPlaysOn) {
  results::RowData row = samples::collective("all_reduce", 1024, 1e-3);
  const microbench::RowReport full = reported(row);
  EXPECT_DOUBLE_EQ(full.time->median, 1e-3);
  EXPECT_DOUBLE_EQ(full.time->minimum, 0.99e-3);
  // The second smallest and largest of 11 enclose the median with 1 - 2 * 12/2048 = 98.8%.
  EXPECT_NEAR(*full.time->lower, 0.992e-3, 1e-9);
  EXPECT_NEAR(*full.time->upper, 1.008e-3, 1e-9);
  row.times.resize(5);
  EXPECT_TRUE(reported(row).time);
  EXPECT_FALSE(reported(row).time->lower);
}

TEST(Row, ALopsidedIntervalShowsBothSides) {
  microbench::RowReport row;
  row.time = statistics::Estimate{.median = 1, .lower = 0.9, .upper = 13.59};
  EXPECT_EQ(render::interval_cell(row), "-10.0% +1259.0%");
  results::RowData data;
  data.times = {{1}, {2}};
  EXPECT_EQ(render::interval_cell(reported(data)), "n=2: too few");
}

TEST(Row, HasAP99FromAHundredSingleCallsOn) {
  results::RowData row = samples::collective("all_reduce", 1024, 1e-3);
  for (int i = 1; i <= 99; ++i) row.call_times.push_back(i);
  EXPECT_FALSE(reported(row).p99);
  row.call_times.push_back(100);
  EXPECT_EQ(reported(row).p99->value, 99);
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
  EXPECT_DOUBLE_EQ(microbench::bus_factor("all_reduce", 2).value(), 1);
  EXPECT_DOUBLE_EQ(microbench::bus_factor("all_reduce", 3).value(), 4.0 / 3);
  EXPECT_DOUBLE_EQ(microbench::bus_factor("all_gather", 1).value(), 0);
  EXPECT_FALSE(microbench::bus_factor("barrier", 4));
  EXPECT_FALSE(microbench::bus_factor("gemm", 4));
  EXPECT_FALSE(microbench::bus_factor("all_reduce", 0));
  const microbench::RowReport barrier = reported(samples::collective("barrier", 0, 1e-6));
  EXPECT_TRUE(barrier.time);
  EXPECT_FALSE(barrier.algbw || barrier.busbw);
}

TEST(Row, HasRatesUnlessItWasNotMeasured) {
  results::RowData row = samples::collective("all_reduce", 1024, 1e-3);
  row.status = results::PointStatus::failed;  // for wrong elements, or for being slow
  EXPECT_TRUE(reported(row).algbw);
  row.status = results::PointStatus::skipped;
  EXPECT_FALSE(reported(row).algbw);
  row.status = results::PointStatus::failed;
  row.times.clear();  // it had no answer
  EXPECT_FALSE(reported(row).algbw);
}

TEST(Row, AloneHasNoBusBandwidth) {
  results::RowData row = samples::collective("broadcast", 1024, 1e-3);
  EXPECT_TRUE(reported(row).busbw);
  row.number["members"] = 1;
  EXPECT_FALSE(reported(row).busbw);
}

TEST(Row, RatesOfMultiplicationsAreSetAgainstCeilingAndDatasheet) {
  const results::CalibrationData calibration{
      .ceilings = {{.dtype = "bf16", .cache = "cold", .rate = 800e12}}};
  const microbench::Datasheet* const h200 = microbench::datasheet_of("NVIDIA H200");
  const results::RowData row = samples::gemm("bf16", "cold", 4096, 400e12);
  const microbench::RowReport report =
      microbench::report_row(row, {.calibration = &calibration, .datasheet = h200});
  EXPECT_NEAR(report.flops.value(), 400e12, 1);
  EXPECT_NEAR(report.of_ceiling.value(), 0.5, 1e-12);
  EXPECT_NEAR(report.of_peak.value(), 400.0 / 989, 1e-12);
  const results::RowData single = samples::gemm("f32", "cold", 4096, 400e12);
  const microbench::RowReport other =
      microbench::report_row(single, {.calibration = &calibration, .datasheet = h200});
  EXPECT_FALSE(other.of_ceiling || other.of_peak);
}

TEST(Datasheets, KnowGpusByNameAndNothingElse) {
  const auto peak = [](const char* name, const char* dtype) {
    const microbench::Datasheet* const sheet = microbench::datasheet_of(name);
    return sheet == nullptr ? std::nullopt : sheet->peak(dtype);
  };
  EXPECT_EQ(peak("NVIDIA H100 80GB HBM3", "bf16"), 989.4e12);
  EXPECT_EQ(peak("NVIDIA H100 80GB HBM3", "fp8"), 1979e12);
  EXPECT_EQ(peak("NVIDIA H100 80GB HBM3", "f64"), std::nullopt);
  EXPECT_EQ(peak("NVIDIA H100 PCIe", "f16"), 756e12);
  EXPECT_EQ(peak("NVIDIA H100 NVL", "f16"), std::nullopt);
  EXPECT_EQ(peak("NVIDIA GH200 480GB", "bf16"), 989e12);
  EXPECT_EQ(microbench::datasheet_of("NVIDIA GH200 480GB")->memory, std::nullopt);
  EXPECT_EQ(microbench::datasheet_of("NVIDIA H200")->memory, 4.8e12);
  EXPECT_EQ(peak("NVIDIA GB200", "bf16"), 2500e12);
  EXPECT_EQ(peak("NVIDIA B200", "e4m3"), 4500e12);
  EXPECT_EQ(peak("NVIDIA A100-SXM4-80GB", "bf16"), 312e12);
  EXPECT_EQ(peak("Tesla V100-SXM2-16GB", "f16"), std::nullopt);
  EXPECT_EQ(microbench::datasheet_of(results::RankFacts{.text = {{"cpu_model", "EPYC"}}}), nullptr);
  results::RankFacts part{.text = {{"gpu_name", "NVIDIA H200"}, {"gpu_mig", "off"}}};
  EXPECT_NE(microbench::datasheet_of(part), nullptr);
  part.text["gpu_mig"] = "on";
  EXPECT_EQ(microbench::datasheet_of(part), nullptr);
  for (const microbench::Datasheet& sheet : microbench::datasheets()) {
    EXPECT_EQ(microbench::datasheet_of(sheet.gpu), &sheet)
        << sheet.gpu << " is hidden by an earlier entry";
    const bool says = sheet.peak_16bit || sheet.peak_8bit || sheet.memory || sheet.link;
    EXPECT_EQ(says, !sheet.source.empty()) << sheet.gpu;
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
  const microbench::BenchReport report = microbench::report_bench(run, point, {});
  EXPECT_FALSE(report.rows[0].of_peak);
  EXPECT_NEAR(report.rows[1].of_peak.value(), 1.0 / 989, 1e-12);
}

TEST(Pairs, AreMergedInOrder) {
  const results::PointData point = samples::pairs(0);
  const microbench::BenchReport report = microbench::report_bench({}, point, {});
  ASSERT_EQ(report.pairs.size(), 12U);
  const microbench::PairReport& first = report.pairs[0];
  EXPECT_EQ(std::pair(first.src, first.dst), std::pair(0, 1));
  EXPECT_NEAR(first.latency.value(), 1.1e-6, 1e-12);
  EXPECT_NEAR(first.bandwidth.value(), 5.01e9, 1);
  EXPECT_NEAR(first.bidirectional.value(), 8e9, 1);
  const microbench::PairReport& failed = report.pairs[9];  // 3 to 0
  EXPECT_EQ(std::pair(failed.src, failed.dst), std::pair(3, 0));
  EXPECT_FALSE(failed.bandwidth);
  EXPECT_NEAR(failed.latency.value(), 1.3e-6, 1e-12);  // measured from 0 to 3
  EXPECT_THAT(failed.failure, HasSubstr("took longer than 5 s"));
  ASSERT_EQ(report.classes.size(), 1U);
  EXPECT_EQ(report.classes[0].pairs, 12);
  EXPECT_NEAR(report.classes[0].lowest.value(), 2e9, 1);
}

TEST(Pairs, ThatAreSlowAreNamedByHostDeviceAndClass) {
  results::RunData run;
  for (int rank = 0; rank < 4; ++rank) {
    run.rank_facts.push_back({.rank = rank,
                              .host = "node" + std::to_string(rank / 2),
                              .text = {{"gpu_pci", "0000:0" + std::to_string(rank)}}});
  }
  const results::PointData point = samples::pairs(0);
  const microbench::BenchReport report = microbench::report_bench(run, point, {});
  ASSERT_EQ(report.slow.size(), 1U);
  EXPECT_EQ(report.slow[0].from, "rank 1 on node0, GPU 0000:01");
  EXPECT_EQ(report.slow[0].to, "rank 2 on node1, GPU 0000:02");
  EXPECT_EQ(report.slow[0].link_class, "same node");
  EXPECT_EQ(report.slow[0].quantity, "bandwidth");
  EXPECT_NEAR(report.slow[0].value, 2e9, 1);
  EXPECT_NEAR(report.slow[0].typical, 5.03e9, 0.01e9);
}

/// Pairs (0, i) of one class whose `quantity` is so: which of them are slow, the slowest first.
std::vector<int> slow_of(std::optional<double> microbench::PairReport::*quantity, const char* name,
                         const std::vector<double>& values) {
  std::vector<microbench::PairReport> pairs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    pairs.push_back({.dst = static_cast<int>(i), .link_class = "net"});
    pairs.back().*quantity = values[i];
  }
  std::vector<int> slow;
  for (const microbench::SlowPair& at : microbench::slow_pairs(pairs, {}, {})) {
    EXPECT_EQ(at.quantity, name);
    EXPECT_LT(at.share(), 1);
    slow.push_back(at.dst);
  }
  return slow;
}

TEST(Pairs, AreSlowByTheRule) {
  const auto slow_bandwidths = [](const std::vector<double>& values) {
    return slow_of(&microbench::PairReport::bandwidth, "bandwidth", values);
  };
  EXPECT_THAT(slow_bandwidths({}), ElementsAre());
  EXPECT_THAT(slow_bandwidths({5}), ElementsAre());
  // Fewer than four: 25% below the best.
  EXPECT_THAT(slow_bandwidths({10, 7.6}), ElementsAre());
  EXPECT_THAT(slow_bandwidths({10, 7.4}), ElementsAre(1));
  EXPECT_THAT(slow_bandwidths({3, 10, 2}), ElementsAre(2, 0));
  // All alike: at least 10% below the median.
  EXPECT_THAT(slow_bandwidths({10, 10, 10, 10, 9.1}), ElementsAre());
  EXPECT_THAT(slow_bandwidths({10, 10, 10, 10, 8.9}), ElementsAre(4));
  // A class that spreads widely has a wide limit: log MAD of 8 ... 12 is about 0.2.
  EXPECT_THAT(slow_bandwidths({8, 9, 10, 11, 12.5, 6}), ElementsAre());
  EXPECT_THAT(slow_bandwidths({8, 9, 10, 11, 12.5, 1}), ElementsAre(5));
  // Two slow ones among six, as where one link of three ranks is shaped.
  EXPECT_THAT(slow_bandwidths({0.11, 0.12, 5, 5.1, 4.9, 5}), ElementsAre(0, 1));
  // And where the others spread so widely that their deviations tell nothing.
  EXPECT_THAT(slow_bandwidths({0.024, 0.0241, 0.3, 0.6, 1.2, 2.4}), ElementsAre(0, 1));
  // No pair is slower than a fourth of the median, so none counts as slow.
  EXPECT_THAT(slow_bandwidths({0.3, 0.4, 0.9, 1.1, 2.4, 3}), ElementsAre());
  const auto slow_latencies = [](const std::vector<double>& values) {
    return slow_of(&microbench::PairReport::latency, "latency", values);
  };
  EXPECT_THAT(slow_latencies({2e-6, 2.1e-6, 2e-6, 2.2e-6}), ElementsAre());
  EXPECT_THAT(slow_latencies({2e-6, 34e-6, 2e-6, 2e-6}), ElementsAre(1));
  EXPECT_THAT(slow_latencies({2e-6, 3.9e-6}), ElementsAre());
  EXPECT_THAT(slow_latencies({2e-6, 4.1e-6}), ElementsAre(1));
}

TEST(Overlap, SharesAndSlowdownsAreByTheirFormulas) {
  const results::PointData point = samples::overlaps(0);
  const microbench::BenchReport report = microbench::report_bench({}, point, {});
  ASSERT_EQ(report.overlaps.size(), 2U);
  const microbench::OverlapReport& first = report.overlaps[0];
  EXPECT_NEAR(value_of(first.hidden).value(), (4.0 + 2 - 5) / 2, 1e-9);
  EXPECT_NEAR(first.gemm_slowdown.value(), 1.25, 1e-9);
  EXPECT_NEAR(first.communication_slowdown.value(), 1.5, 1e-9);
  EXPECT_EQ(first.collective, "all_reduce");
  const microbench::OverlapReport& second = report.overlaps[1];
  EXPECT_NEAR(value_of(second.hidden).value(), (4.0 + 1 - 5.5) / 1, 1e-9);  // shown as it is
  EXPECT_FALSE(second.gemm_slowdown || second.communication_slowdown);
}

TEST(Overlap, LacksWhatFailed) {
  results::PointData point = samples::overlaps(0);
  point.rows[1] = samples::excused(point.rows[1], results::PointStatus::failed, "timed out");
  const microbench::BenchReport report = microbench::report_bench({}, point, {});
  EXPECT_FALSE(report.overlaps[0].hidden);
  EXPECT_TRUE(report.overlaps[0].gemm_slowdown);
  EXPECT_EQ(report.overlaps[0].failure, "collective failed: timed out");
}

TEST(Overlap, OfFewPlaysSaysNothing) {
  results::PointData point = samples::overlaps(0);
  point.rows[2].times.resize(5);
  const microbench::OverlapReport few = microbench::report_bench({}, point, {}).overlaps[0];
  EXPECT_FALSE(few.hidden || few.hidden_known);
  EXPECT_EQ(few.failure, "");
  EXPECT_THAT(few.why_unknown, HasSubstr("together 5"));
}

/// Each median's interval is 0.8% of its time to either side: ranks 2 and 10 of 11.
TEST(Overlap, SharesHaveAnIntervalFromThoseOfTheThreeTimes) {
  const results::PointData point = samples::overlaps(0);
  const microbench::OverlapReport at = microbench::report_bench({}, point, {}).overlaps[0];
  const double off = 0.002 * 4;
  // (4 + 2 - 5) / 2 moves by half of what 4 and 5 move by; by 2, it is (4 - 5) / 2 + 1.
  EXPECT_TRUE(at.hidden_known);
  EXPECT_EQ(at.why_unknown, "");
  ASSERT_TRUE(at.hidden->lower && at.hidden->upper);
  EXPECT_NEAR(*at.hidden->lower, 0.5 - std::hypot(4 * off / 2, 5 * off / 2, 0.5 * off), 2e-4);
  EXPECT_NEAR(*at.hidden->upper, 0.5 + std::hypot(4 * off / 2, 5 * off / 2, 0.5 * off), 2e-4);
}

/// On a busy machine times scatter by half of themselves: no share follows from that.
TEST(Overlap, SharesOfScatteredTimesAreNotKnown) {
  results::PointData point = samples::overlaps(0);
  for (auto& play : point.rows[2].times) play.back() *= play.back() > 5e-2 ? 1.5 : 0.7;
  const microbench::BenchReport report = microbench::report_bench({}, point, {});
  const microbench::OverlapReport& at = report.overlaps[0];
  ASSERT_TRUE(at.hidden && at.hidden->lower);
  EXPECT_GT(*at.hidden->upper - *at.hidden->lower, 1);
  EXPECT_FALSE(at.hidden_known);
  EXPECT_NE(at.why_unknown, "");
  EXPECT_TRUE(report.overlaps[1].hidden_known);
}

TEST(Bench, IsToldFromCurves) {
  EXPECT_TRUE(microbench::is_bench(samples::collectives(0)));
  results::PointData skipped = samples::bench_point(0, "p2p", 3);
  EXPECT_TRUE(microbench::is_bench(skipped));
  skipped.workload = "dp";
  EXPECT_FALSE(microbench::is_bench(skipped));
}

}  // namespace
}  // namespace isoscale::analysis
