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

/// Reports of inference: latency against throughput.
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
  for (const Inference& at : inferences_of(report)) result.push_back(at.on_frontier);
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
  const results::RunData run = run_of();
  const RunReport report = make_report(run, "infer.h5", {});
  const auto document = nlohmann::json::parse(render_json({{&report, 1}}));
  const auto& points = document["runs"][0]["points"];
  ASSERT_EQ(points[1]["rows"].size(), 3U);
  const auto& row = points[1]["rows"][1];
  EXPECT_EQ(row["op"], "infer");
  EXPECT_EQ(row["batch"], 8);
  EXPECT_NEAR(row["ttft"]["median"].get<double>(), 0.040, 1e-9);
  EXPECT_NEAR(row["tpot"]["median"].get<double>(), 0.005, 1e-9);
  EXPECT_LT(row["tpot"]["lower"].get<double>(), row["tpot"]["upper"].get<double>());
  EXPECT_NEAR(row["tokens_per_second"].get<double>(), 4 * 8 / 0.005, 1e-3);
  EXPECT_NEAR(row["tokens_per_second_per_rank"].get<double>(), 8 / 0.005, 1e-3);
  EXPECT_EQ(row["cache_bytes"], 8000);
  EXPECT_EQ(row["on_frontier"], true);
  EXPECT_EQ(row["status"], "ok");
}

TEST(InferReport, SaysThatItsResultsAreRight) {
  results::RunData run = run_of();
  for (results::PointData& point : run.points) point.verified = true;
  const RunReport report = make_report(run, "infer.h5", {});
  EXPECT_THAT(render_text({{&report, 1}}),
              testing::ContainsRegex("verified +all results are as expected"));
}

TEST(InferReport, ARowThatFailedSaysWhyAndHasNoTime) {
  results::RunData run = run_of();
  auto& rows = run.points[0].rows;
  rows[1] = samples::excused(rows[1], results::PointStatus::skipped, "evil \x1b[31m reason");
  const RunReport report = make_report(run, "infer.h5", {});
  const auto document = nlohmann::json::parse(render_json({{&report, 1}}));
  const auto& row = document["runs"][0]["points"][0]["rows"][0];
  EXPECT_TRUE(row["tpot"]["median"].is_null());
  EXPECT_TRUE(row["tokens_per_second"].is_null());
  EXPECT_EQ(row["status"], "skipped");
  EXPECT_EQ(row["on_frontier"], false);
  const std::string text = render_text({{&report, 1}});
  EXPECT_THAT(text, AllOf(HasSubstr("decode skipped: evil"), Not(HasSubstr("\x1b[31m"))));
}

TEST(InferReport, TablesAreOverAllMeshes) {
  const results::RunData run = run_of();
  const RunReport report = make_report(run, "infer.h5", {});
  const std::vector<TitledTable> tables = inference_tables(report);
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_THAT(tables[0].title, HasSubstr("tiny, f32, prompt 32, output 64"));
  ASSERT_EQ(tables[0].rows.size(), 5U);
  EXPECT_THAT(tables[0].rows[1].cells,
              ElementsAre("tp=4", "4", "8", "20 ms", HasSubstr("±"), "2 ms", HasSubstr("±"), "4000",
                          "1000", HasSubstr("B"), "*"));
  EXPECT_EQ(tables[0].rows[4].cells.back(), "");
}

}  // namespace
}  // namespace isoscale::analysis
