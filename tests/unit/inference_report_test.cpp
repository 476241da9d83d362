// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/render/inference.hpp"
#include "analysis/render/render.hpp"
#include "bench_samples.hpp"
#include "report_samples.hpp"
#include "reported.hpp"

/// Reports of inference, latency against throughput; and of serving: what is stored under which
/// name, and what foreign files may hold.
namespace isoscale::analysis {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A batch size of a point: both rows; tpot of one token, of 16 in a play's pass.
void add(results::PointData& point, double batch, double ttft, double tpot) {
  for (const bool decodes : {false, true}) {
    results::RowData row =
        samples::row({{"op", "infer"}, {"part", decodes ? "decode" : "prefill"}, {"dtype", "f32"}},
                     {{"batch", batch},
                      {"prompt", 32},
                      {"output", 64},
                      {"replicas", point.mesh.dp},
                      {"cache_bytes", batch * 1000},
                      {"flop", 3e9}},
                     decodes ? tpot : ttft, point.ranks);
    point.rows.push_back(std::move(row));
  }
}

results::PointData point_of(int index, const mesh::Shape& mesh) {
  results::PointData point = samples::bench_point(index, "infer", mesh.size());
  point.model = "tiny";
  point.mesh = mesh;
  return point;
}

/// tp=4 is quick, dp=4 yields most; two batch sizes of dp=4 are beaten.
results::RunData run_of() {
  results::RunData run = samples::run();
  results::PointData tp = point_of(0, {.tp = 4}), dp = point_of(1, {.dp = 4});
  add(tp, 1, 0.010, 0.001);  // 250 tokens/s a rank
  add(tp, 8, 0.020, 0.002);  // 1000
  add(dp, 1, 0.015, 0.002);  // 500: as quick as tp with 8, half the rate
  add(dp, 8, 0.040, 0.005);  // 1600
  add(dp, 9, 0.050, 0.006);  // 1500: slower and less
  run.points = {tp, dp};
  return run;
}

std::vector<bool> marks(const results::RunData& run) {
  const RunReport report = make_report(run, "infer.h5", {});
  std::vector<bool> result;
  for (const render::Inference& at : render::inferences_of(report))
    result.push_back(at.on_frontier);
  return result;
}

TEST(InferReport, TheFrontierIsWhatNothingBeats) {
  EXPECT_THAT(marks(run_of()), ElementsAre(true, true, false, true, false));
}

TEST(InferReport, OnlyPointsThatAreOkCount) {
  results::RunData run = run_of();
  run.points[0].status = results::PointStatus::failed;
  EXPECT_THAT(marks(run), ElementsAre(false, false, true, true, false));
}

TEST(InferReport, OtherQuestionsAreNoRivals) {
  results::RunData run = run_of();
  run.points[1].model = "gpt-125m";
  EXPECT_THAT(marks(run), ElementsAre(true, true, true, true, false));
  run = run_of();
  run.points[1].options["vocabulary"] = "off";
  EXPECT_THAT(marks(run), ElementsAre(true, true, true, true, false));
}

TEST(InferReport, EqualOnesAreBothOnTheFrontier) {
  results::RunData run = samples::run();
  results::PointData one = point_of(0, {.tp = 4}), other = point_of(1, {.tp = 4});
  add(one, 4, 0.01, 0.001);
  add(other, 4, 0.02, 0.001);
  run.points = {one, other};
  EXPECT_THAT(marks(run), ElementsAre(true, true));
}

TEST(InferReport, JsonHasARowForEachBatchSize) {
  const auto rows = json_of(run_of())["points"][1]["rows"];
  ASSERT_EQ(rows.size(), 3U);
  expect_holds(rows[1], {{"op", "infer"},
                         {"batch", 8},
                         {"ttft", {{"median", 0.040}}},
                         {"tpot", {{"median", 0.005}}},
                         {"tokens_per_second", 4 * 8 / 0.005},
                         {"tokens_per_second_per_rank", 8 / 0.005},
                         {"cache_bytes", 8000},
                         {"on_frontier", true},
                         {"status", "ok"}});
  EXPECT_LT(rows[1]["tpot"]["lower"].get<double>(), rows[1]["tpot"]["upper"].get<double>());
}

TEST(InferReport, SaysThatItsResultsAreRight) {
  results::RunData run = run_of();
  for (results::PointData& point : run.points) point.verified = true;
  EXPECT_THAT(rendered(run, render::render_text),
              testing::ContainsRegex("verified +all results are as expected"));
}

TEST(InferReport, ARowThatFailedSaysWhyAndHasNoTime) {
  results::RunData run = run_of();
  auto& rows = run.points[0].rows;
  rows[1] = samples::excused(rows[1], results::PointStatus::skipped, "evil \x1b[31m reason");
  const auto document = nlohmann::json::parse(rendered(run, render::render_json));
  const auto& row = document["runs"][0]["points"][0]["rows"][0];
  EXPECT_TRUE(row["tpot"]["median"].is_null());
  EXPECT_TRUE(row["tokens_per_second"].is_null());
  EXPECT_EQ(row["status"], "skipped");
  EXPECT_EQ(row["on_frontier"], false);
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, AllOf(HasSubstr("decode skipped: evil"), Not(HasSubstr("\x1b[31m"))));
}

TEST(InferReport, TablesAreOverAllMeshes) {
  const results::RunData run = run_of();
  const RunReport report = make_report(run, "infer.h5", {});
  std::vector<render::TitledTable> tables;
  for (const auto& table : render::inference_tables(report)) tables.push_back(as_text(table));
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_THAT(tables[0].title, HasSubstr("tiny, f32, prompt 32, output 64"));
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
  results::RunData run = samples::run();
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
  run.points = {point};
  return run;
}

TEST(ServeReport, TimesAreNestedAndWhatIsUndefinedIsNull) {
  const auto rows = json_of(served_run())["points"][0]["rows"];
  ASSERT_EQ(rows.size(), 5U);
  expect_holds(rows[0], {{"latency", {{"median", 0.5}, {"p99", nullptr}}},
                         {"requests", 60},
                         {"saturated", true},
                         {"rate_arrived", nullptr}});
  expect_holds(rows[1], {{"highest", true}, {"rate", 10}, {"rate_arrived", 12.5}});
  EXPECT_EQ(rows[2]["busy"], 77);
  EXPECT_FALSE(rows[2].contains("latency"));
  EXPECT_EQ(rows[4]["arrival"], 0.125);
}

TEST(ServeReport, ReplicasAreThoseOfTheRateThatIsKept) {
  const results::RunData run = served_run();
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, HasSubstr("replicas where 12.5 requests/s arrived"));
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
  const auto document = nlohmann::json::parse(rendered(run, render::render_json));
  EXPECT_TRUE(document["runs"][0]["points"][0]["rows"][0]["latency"].is_object());
  EXPECT_THAT(rendered(run, render::render_text), Not(HasSubstr("\x1b[31m")));
}

}  // namespace
}  // namespace isoscale::analysis
