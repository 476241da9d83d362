// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/microbench_report.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis_test.hpp"
#include "calibration/fit_calibration.hpp"
#include "golden.hpp"

/// Reports of micro-benchmarks, of inference (latency against throughput) and of serving.
namespace isoscale::analysis::render {
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
    const results::RowData row = collective(op, 4096, 1e-6);
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
  const microbench::RowReport barrier = reported(collective("barrier", 0, 1e-6));
  EXPECT_TRUE(barrier.time);
  EXPECT_FALSE(barrier.algbw || barrier.busbw);
}

TEST(Row, HasRatesUnlessItWasNotMeasuredOrIsAlone) {
  results::RowData row = collective("all_reduce", 1024, 1e-3);
  row.status = results::PointStatus::failed;  // for wrong elements, or for being slow
  EXPECT_TRUE(reported(row).algbw);
  row.status = results::PointStatus::skipped;
  EXPECT_FALSE(reported(row).algbw);
  row.status = results::PointStatus::failed;
  row.times.clear();  // it had no answer
  EXPECT_FALSE(reported(row).algbw);
  row = collective("broadcast", 1024, 1e-3);
  EXPECT_TRUE(reported(row).busbw);
  row.number["members"] = 1;
  EXPECT_FALSE(reported(row).busbw);
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
  results::PointData point = bench_point(0, "gemm", 4);
  point.rows = {gemm("bf16", "cold", 64, 1e12), gemm("bf16", "cold", 64, 1e12, 2)};
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
  const results::PointData point = pairs(0);
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
  results::PointData failed = overlaps(0), few = failed, scattered = failed;
  failed.rows[1] = excused(failed.rows[1], results::PointStatus::failed, "timed out");
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

results::RunData bench_run() {
  results::RunData run = samples::run();
  run.command_line = "isoscale run --workload collectives,gemm,p2p,memory,overlap --ranks 4";
  run.points = {collectives(0), gemms(1), pairs(2), samples::memory(3), overlaps(4)};
  results::PointData skipped = bench_point(5, "p2p", 1);
  skipped.status = results::PointStatus::skipped;
  skipped.reason = "one rank has no pair";
  run.points.push_back(skipped);
  return run;
}

TEST(RenderBench, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  golden::expect_claims(rendered(bench_run(), render_markdown, "bench.h5"), "bench.md");
  // Programs read the format of nccl-tests, so it is the golden file to the letter.
  EXPECT_EQ(rendered(bench_run(), render_nccl_tests), golden::content("bench.nccl-tests"));
  golden::expect_fits(rendered(bench_run(), render_text), 120);
}

TEST(RenderBench, SaysWhichRowsOfTf32WereMultipliedWithoutItAndWhatGpusWereLike) {
  results::RunData run = samples::run({gemms(0)});
  std::vector<results::RowData>& rows = run.points.front().rows;
  for (results::RowData& row : rows) {
    row.text["dtype"] = "tf32";
    row.text["arithmetic"] = "tensor cores, tf32 inputs, f32 sums";
  }
  EXPECT_THAT(rendered(run, render_text), Not(HasSubstr("NO TF32")));
  EXPECT_FALSE(json_of(run)["points"][0]["rows"][0].contains("sm_clock"));
  rows[0].text["arithmetic"] = "FMA, f32 inputs, f32 sums";
  rows[0].number.insert({{"sm_clock", 1980e6},
                         {"sm_clock_min", 1410e6},
                         {"throttle_reasons", 0x4},
                         {"late_plays", 3}});
  rows[1].number["sm_clock"] = 1755e6;
  expect_holds(
      json_of(run)["points"][0]["rows"][0],
      {{"sm_clock", 1980e6}, {"sm_clock_min", 1410e6}, {"throttle_reasons", 4}, {"late_plays", 3}});
  EXPECT_THAT(
      rendered(run, render_text),
      AllOf(HasSubstr("NO TF32"), HasSubstr("1 row multiplied with"), HasSubstr("1755 to 1980 MHz"),
            HasSubstr("1 row: software power"), HasSubstr("3 plays")));
}

TEST(RenderBench, SummarisesPairsOfMoreThan16Ranks) {
  const auto time = [](int src, int dst) { return src == 4 && dst == 16 ? 1e-3 : 1e-4; };
  const std::string text =
      rendered(samples::run({all_pairs(17, 1e6, time, "other node")}), render_text);
  EXPECT_THAT(text, Not(HasSubstr("(row) to (column)")));
  EXPECT_THAT(text, HasSubstr("other node    272"));
  EXPECT_THAT(text, AllOf(HasSubstr("SLOW     rank 4 on"), HasSubstr("rank 16 (other node)"),
                          HasSubstr("1 GB/s, 10.0% of")));
}

TEST(RenderBench, NamesPairsByTheirRanksInTheWorld) {
  results::PointData point = bench_point(0, "p2p", 4);
  point.world_rank = {0, 2, 1, 3};
  point.rows = {pair_row("bandwidth", 1, 3, 1e6, 1e-4)};
  const results::RunData run = samples::run({point});
  const OneRun one{run};
  const TitledTable matrix = as_text(bench_tables(one.made.benches.at(0)).at(0));
  ASSERT_EQ(matrix.rows.size(), 2U);
  EXPECT_EQ(matrix.rows[0].cells, (std::vector<std::string>{"2", "", "10.0"}));
  EXPECT_EQ(matrix.rows[1].cells[0], "3");
  expect_holds(json_of(run)["points"][0]["rows"].at(0),
               {{"src", 1}, {"src_world_rank", 2}, {"dst_world_rank", 3}});
}

TEST(RenderBench, SaysHowCurvesDidAgainstTheirParts) {
  const results::RunData run = curve_with_parts();
  const std::string text = rendered(run, render_text);
  EXPECT_THAT(text, AllOf(HasSubstr("ran at 35.6%"), HasSubstr("MFU      2 ranks: ")));
  const json two = json_of(run)["points"][1];
  EXPECT_NEAR(two["mfu"].get<double>(), two["flops_per_rank"].get<double>() / 100e9, 1e-12);
  ASSERT_EQ(two["link_share"].size(), 1U);
  EXPECT_NEAR(two["link_share"][0]["share"].get<double>(), 160.0 / 450, 1e-6);
}

TEST(RenderNcclTests, MakesATableOfEveryGroupAndImplementation) {
  results::PointData point = bench_point(0, "collectives", 4);
  for (const char* implementation : {"library", "ring"}) {
    for (const char* dtype : {"bf16", "i32"}) {
      point.rows.push_back(collective("all_reduce", 1024, 1e-6));
      point.rows.back().text["implementation"] = implementation;
      point.rows.back().text["dtype"] = dtype;
    }
  }
  const std::string text = rendered(samples::run({point}), render_nccl_tests);
  EXPECT_THAT(text, AllOf(HasSubstr("on world, library\n"), HasSubstr("on world, ring\n")));
  std::vector<std::string> lines = lines_of(text);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with('#'); });
  EXPECT_THAT(lines, ElementsAre(HasSubstr(" bfloat16 "), HasSubstr(" int32 "),
                                 HasSubstr(" bfloat16 "), HasSubstr(" int32 ")));
  EXPECT_THAT(rendered(two_curves(), render_nccl_tests), HasSubstr("# no collective was"));
}

TEST(RenderBench, TakesRowsOfUnknownOpsAndNumbers) {
  results::RunData run = bench_run();
  run.points[0].rows = {
      {.text = {{"op", hostile}}},
      {.text = {{"op", "gemm"}}, .number = {{"m", 1e300}, {"bytes", -5}, {"flop", INFINITY}}}};
  for (const auto& render :
       {render_text, render_json, render_csv, render_markdown, render_nccl_tests}) {
    golden::expect_harmless(rendered(run, render));
  }
}

results::PointData inference_on(int index, const mesh::Shape& mesh) {
  results::PointData point = bench_point(index, "infer", mesh.size());
  point.model = "tiny";
  point.mesh = mesh;
  return point;
}

/// tp=4 is quick, dp=4 yields most; two batch sizes of dp=4 are beaten.
results::RunData run_of() {
  results::PointData tp = inference_on(0, {.tp = 4}), dp = inference_on(1, {.dp = 4});
  add_batch(tp, 1, 0.010, 0.001);  // 250 tokens/s a rank
  add_batch(tp, 8, 0.020, 0.002);  // 1000
  add_batch(dp, 1, 0.015, 0.002);  // 500: as quick as tp with 8, half the rate
  add_batch(dp, 8, 0.040, 0.005);  // 1600
  add_batch(dp, 9, 0.050, 0.006);  // 1500: slower and less
  return samples::run({tp, dp});
}

std::vector<bool> marks(const results::RunData& run) {
  const OneRun one{run};
  return mapped(inferences_of(one.made), [](const auto& at) { return at.on_frontier; });
}

TEST(InferReport, TheFrontierIsWhatNothingBeatsAmongRivals) {
  EXPECT_THAT(marks(run_of()), ElementsAre(true, true, false, true, false));
  results::RunData failed = run_of(), other_model = run_of(), other_option = run_of();
  failed.points[0].status = results::PointStatus::failed;
  EXPECT_THAT(marks(failed), ElementsAre(false, false, true, true, false));
  other_model.points[1].model = "gpt-125m";
  EXPECT_THAT(marks(other_model), ElementsAre(true, true, true, true, false));
  other_option.points[1].options["vocabulary"] = "off";
  EXPECT_THAT(marks(other_option), ElementsAre(true, true, true, true, false));
  results::PointData one = inference_on(0, {.tp = 4}), equal = inference_on(1, {.tp = 4});
  add_batch(one, 4, 0.01, 0.001);
  add_batch(equal, 4, 0.02, 0.001);
  EXPECT_THAT(marks(samples::run({one, equal})), ElementsAre(true, true));
}

TEST(InferReport, ARowThatFailedSaysWhyAndHasNoTime) {
  results::RunData run = run_of();
  auto& rows = run.points[0].rows;
  rows[1] = excused(rows[1], results::PointStatus::skipped, "evil \x1b[31m reason");
  const json row = json_of(run)["points"][0]["rows"][0];
  EXPECT_TRUE(row["tpot"]["median"].is_null());
  EXPECT_TRUE(row["tokens_per_second"].is_null());
  EXPECT_EQ(row["status"], "skipped");
  EXPECT_EQ(row["on_frontier"], false);
  const std::string text = rendered(run, render_text);
  EXPECT_THAT(text, AllOf(HasSubstr("decode skipped: evil"), Not(HasSubstr("\x1b[31m"))));
}

results::RowData row_of(const char* part, Numbers number, Texts text = {}) {
  results::RowData row{.text = std::move(text), .number = std::move(number)};
  row.text["op"] = "serve";
  row.text["part"] = part;
  return row;
}

results::RunData served_run() {
  results::PointData point = bench_point(0, "serve", 2);
  point.rows = {
      row_of("rate", {{"rate", 20}, {"latency_median_seconds", 0.5}, {"requests", 60}},
             {{"saturated", "yes"}, {"dispatch", "round-robin"}}),
      row_of("rate",
             {{"rate", 10}, {"offered", 12.5}, {"latency_median_seconds", 0.25}, {"requests", 60}},
             {{"saturated", "no"}, {"highest", "yes"}}),
      row_of("replica", {{"rate", 20}, {"replica", 0}, {"busy_seconds", 77}}),
      row_of("replica", {{"rate", 10}, {"replica", 0}, {"busy_seconds", 3}}),
      row_of("request", {{"rate", 10}, {"request", 0}, {"arrival_seconds", 0.125}})};
  return samples::run({point});
}

TEST(ServeReport, ReplicasAreThoseOfTheRateThatIsKept) {
  const results::RunData run = served_run();
  const std::string text = rendered(run, render_text);
  EXPECT_THAT(text, HasSubstr("where 12.5 requests/s"));
  EXPECT_THAT(text, HasSubstr("3 s"));
  EXPECT_THAT(text, Not(HasSubstr("77 s")));
  // Rates ascend whatever order they were tried in.
  EXPECT_LT(text.find("250 ms"), text.find("500 ms"));
}

TEST(ServeReport, AFileMayHoldAnything) {
  results::RunData run = served_run();
  run.points[0].rows[0].number["latency"] = 3;
  run.points[0].rows[0].text["ttft"] = "\x1b[31m";
  run.points[0].rows[0].number["replica"] = 1e300;
  run.points[0].rows[0].text["saturated"] = "\x1b[31m";
  EXPECT_TRUE(json_of(run)["points"][0]["rows"][0]["latency"].is_object());
  EXPECT_THAT(rendered(run, render_text), Not(HasSubstr("\x1b[31m")));
}

}  // namespace
}  // namespace isoscale::analysis::render
