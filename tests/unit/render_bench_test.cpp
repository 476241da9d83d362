// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/bench_tables.hpp"
#include "golden.hpp"
#include "report_samples.hpp"
#include "reported.hpp"

/// Reports of micro-benchmarks, of inference (latency against throughput) and of serving.
namespace isoscale::analysis {
namespace {

results::RunData bench_run() {
  results::RunData run = samples::run();
  run.command_line = "isoscale run --workload collectives,gemm,p2p,memory,overlap --ranks 4";
  run.points = {samples::collectives(0), samples::gemms(1), samples::pairs(2), samples::memory(3),
                samples::overlaps(4)};
  results::PointData skipped = samples::bench_point(5, "p2p", 1);
  skipped.status = results::PointStatus::skipped;
  skipped.reason = "one rank has no pair";
  run.points.push_back(skipped);
  return run;
}

TEST(RenderBench, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  golden::expect_claims(rendered(bench_run(), render::render_markdown, "bench.h5"), "bench.md");
  // Programs read the format of nccl-tests, so it is the golden file to the letter.
  EXPECT_EQ(rendered(bench_run(), render::render_nccl_tests), golden::content("bench.nccl-tests"));
  golden::expect_fits(rendered(bench_run(), render::render_text), 120);
}

TEST(RenderBench, SaysWhichRowsOfTf32WereMultipliedWithoutItAndWhatGpusWereLike) {
  results::RunData run = samples::run({samples::gemms(0)});
  std::vector<results::RowData>& rows = run.points.front().rows;
  for (results::RowData& row : rows) {
    row.text["dtype"] = "tf32";
    row.text["arithmetic"] = "tensor cores, tf32 inputs, f32 sums";
  }
  EXPECT_THAT(rendered(run, render::render_text), Not(HasSubstr("NO TF32")));
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
      rendered(run, render::render_text),
      AllOf(HasSubstr("NO TF32"), HasSubstr("1 row multiplied with"), HasSubstr("1755 to 1980 MHz"),
            HasSubstr("1 row: software power"), HasSubstr("3 plays")));
}

TEST(RenderBench, SummarisesPairsOfMoreThan16Ranks) {
  const auto time = [](int src, int dst) { return src == 4 && dst == 16 ? 1e-3 : 1e-4; };
  const std::string text = rendered(samples::run({samples::all_pairs(17, 1e6, time, "other node")}),
                                    render::render_text);
  EXPECT_THAT(text, Not(HasSubstr("(row) to (column)")));
  EXPECT_THAT(text, HasSubstr("other node    272"));
  EXPECT_THAT(text, AllOf(HasSubstr("SLOW     rank 4 on"), HasSubstr("rank 16 (other node)"),
                          HasSubstr("1 GB/s, 10.0% of")));
}

TEST(RenderBench, NamesPairsByTheirRanksInTheWorld) {
  results::PointData point = samples::bench_point(0, "p2p", 4);
  point.world_rank = {0, 2, 1, 3};
  point.rows = {samples::pair_row("bandwidth", 1, 3, 1e6, 1e-4)};
  const results::RunData run = samples::run({point});
  const OneRun one{run};
  const render::TitledTable matrix = as_text(render::bench_tables(one.made.benches.at(0)).at(0));
  ASSERT_EQ(matrix.rows.size(), 2U);
  EXPECT_EQ(matrix.rows[0].cells, (std::vector<std::string>{"2", "", "10.0"}));
  EXPECT_EQ(matrix.rows[1].cells[0], "3");
  expect_holds(json_of(run)["points"][0]["rows"].at(0),
               {{"src", 1}, {"src_world_rank", 2}, {"dst_world_rank", 3}});
}

TEST(RenderBench, SaysHowCurvesDidAgainstTheirParts) {
  const results::RunData run = samples::curve_with_parts();
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, AllOf(HasSubstr("ran at 35.6%"), HasSubstr("MFU      2 ranks: ")));
  const json two = json_of(run)["points"][1];
  EXPECT_NEAR(two["mfu"].get<double>(), two["flops_per_rank"].get<double>() / 100e9, 1e-12);
  ASSERT_EQ(two["link_share"].size(), 1U);
  EXPECT_NEAR(two["link_share"][0]["share"].get<double>(), 160.0 / 450, 1e-6);
}

TEST(RenderNcclTests, MakesATableOfEveryGroupAndImplementation) {
  results::PointData point = samples::bench_point(0, "collectives", 4);
  for (const char* implementation : {"library", "ring"}) {
    for (const char* dtype : {"bf16", "i32"}) {
      point.rows.push_back(samples::collective("all_reduce", 1024, 1e-6));
      point.rows.back().text["implementation"] = implementation;
      point.rows.back().text["dtype"] = dtype;
    }
  }
  const std::string text = rendered(samples::run({point}), render::render_nccl_tests);
  EXPECT_THAT(text, AllOf(HasSubstr("on world, library\n"), HasSubstr("on world, ring\n")));
  std::vector<std::string> lines = lines_of(text);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with('#'); });
  EXPECT_THAT(lines, ElementsAre(HasSubstr(" bfloat16 "), HasSubstr(" int32 "),
                                 HasSubstr(" bfloat16 "), HasSubstr(" int32 ")));
  EXPECT_THAT(rendered(samples::two_curves(), render::render_nccl_tests),
              HasSubstr("# no collective was"));
}

TEST(RenderBench, TakesRowsOfUnknownOpsAndNumbers) {
  results::RunData run = bench_run();
  run.points[0].rows = {
      {.text = {{"op", samples::hostile}}},
      {.text = {{"op", "gemm"}}, .number = {{"m", 1e300}, {"bytes", -5}, {"flop", INFINITY}}}};
  for (const auto& render : {render::render_text, render::render_json, render::render_csv,
                             render::render_markdown, render::render_nccl_tests}) {
    golden::expect_harmless(rendered(run, render));
  }
}

results::PointData inference_on(int index, const mesh::Shape& mesh) {
  results::PointData point = samples::bench_point(index, "infer", mesh.size());
  point.model = "tiny";
  point.mesh = mesh;
  return point;
}

/// tp=4 is quick, dp=4 yields most; two batch sizes of dp=4 are beaten.
results::RunData run_of() {
  results::PointData tp = inference_on(0, {.tp = 4}), dp = inference_on(1, {.dp = 4});
  samples::add_batch(tp, 1, 0.010, 0.001);  // 250 tokens/s a rank
  samples::add_batch(tp, 8, 0.020, 0.002);  // 1000
  samples::add_batch(dp, 1, 0.015, 0.002);  // 500: as quick as tp with 8, half the rate
  samples::add_batch(dp, 8, 0.040, 0.005);  // 1600
  samples::add_batch(dp, 9, 0.050, 0.006);  // 1500: slower and less
  return samples::run({tp, dp});
}

std::vector<bool> marks(const results::RunData& run) {
  const OneRun one{run};
  return mapped(render::inferences_of(one.made), [](const auto& at) { return at.on_frontier; });
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
  samples::add_batch(one, 4, 0.01, 0.001);
  samples::add_batch(equal, 4, 0.02, 0.001);
  EXPECT_THAT(marks(samples::run({one, equal})), ElementsAre(true, true));
}

TEST(InferReport, ARowThatFailedSaysWhyAndHasNoTime) {
  results::RunData run = run_of();
  auto& rows = run.points[0].rows;
  rows[1] = samples::excused(rows[1], results::PointStatus::skipped, "evil \x1b[31m reason");
  const json row = json_of(run)["points"][0]["rows"][0];
  EXPECT_TRUE(row["tpot"]["median"].is_null());
  EXPECT_TRUE(row["tokens_per_second"].is_null());
  EXPECT_EQ(row["status"], "skipped");
  EXPECT_EQ(row["on_frontier"], false);
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, AllOf(HasSubstr("decode skipped: evil"), Not(HasSubstr("\x1b[31m"))));
}

TEST(InferReport, TablesAreOverAllMeshes) {
  const OneRun one{run_of()};
  const auto tables =
      mapped(render::inference_tables(one.made), [](const auto& table) { return as_text(table); });
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_THAT(tables[0].title, HasSubstr("f32, prompt 32"));
  ASSERT_EQ(tables[0].rows.size(), 5U);
  EXPECT_THAT(tables[0].rows[1].cells,
              ElementsAre("tp=4", "4", "8", "20 ms", HasSubstr("±"), "2 ms", HasSubstr("±"), "4000",
                          "1000", HasSubstr("B"), "*"));
  EXPECT_EQ(tables[0].rows[4].cells.back(), "");
}

results::RowData row_of(const char* part, samples::Numbers number, samples::Texts text = {}) {
  results::RowData row{.text = std::move(text), .number = std::move(number)};
  row.text["op"] = "serve";
  row.text["part"] = part;
  return row;
}

results::RunData served_run() {
  results::PointData point = samples::bench_point(0, "serve", 2);
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
  const std::string text = rendered(run, render::render_text);
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
  EXPECT_THAT(rendered(run, render::render_text), Not(HasSubstr("\x1b[31m")));
}

}  // namespace
}  // namespace isoscale::analysis
