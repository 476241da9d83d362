// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/render/inference.hpp"
#include "analysis/render/render.hpp"
#include "bench_samples.hpp"
#include "report_samples.hpp"

/// Reports of serving: what is stored under which name, and what foreign files may hold.
namespace isoscale::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

results::RowData row_of(const char* part, samples::Numbers number, samples::Texts text = {}) {
  results::RowData row{.text = std::move(text), .number = std::move(number)};
  row.text["op"] = "serve";
  row.text["part"] = part;
  return row;
}

results::RunData run_of() {
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
  const results::RunData run = run_of();
  const RunReport report = make_report(run, "serve.h5", {});
  const auto document = nlohmann::json::parse(render_json({{&report, 1}}));
  const auto& rows = document["runs"][0]["points"][0]["rows"];
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0]["latency"]["median"], 0.5);
  EXPECT_TRUE(rows[0]["latency"]["p99"].is_null());
  EXPECT_EQ(rows[0]["requests"], 60);
  EXPECT_EQ(rows[0]["saturated"], true);
  EXPECT_EQ(rows[1]["highest"], true);
  EXPECT_EQ(rows[1]["rate"], 10);
  EXPECT_EQ(rows[1]["rate_arrived"], 12.5);
  EXPECT_TRUE(rows[0]["rate_arrived"].is_null());
  EXPECT_EQ(rows[2]["busy"], 77);
  EXPECT_FALSE(rows[2].contains("latency"));
  EXPECT_EQ(rows[4]["arrival"], 0.125);
}

TEST(ServeReport, ReplicasAreThoseOfTheRateThatIsKept) {
  const results::RunData run = run_of();
  const RunReport report = make_report(run, "serve.h5", {});
  const std::string text = render_text({{&report, 1}});
  EXPECT_THAT(text, HasSubstr("replicas where 12.5 requests/s arrived"));
  EXPECT_THAT(text, HasSubstr("3 s"));
  EXPECT_THAT(text, Not(HasSubstr("77 s")));
  // Rates ascend whatever order they were tried in.
  EXPECT_LT(text.find("250 ms"), text.find("500 ms"));
}

TEST(ServeReport, AFileMayHoldAnything) {
  results::RunData run = run_of();
  run.points[0].rows[0].number["latency"] = 3;
  run.points[0].rows[0].text["ttft"] = "\x1b[31m";
  run.points[0].rows[0].number["replica"] = 1e300;
  run.points[0].rows[0].text["saturated"] = "\x1b[31m";
  const RunReport report = make_report(run, "serve.h5", {});
  const auto document = nlohmann::json::parse(render_json({{&report, 1}}));
  EXPECT_TRUE(document["runs"][0]["points"][0]["rows"][0]["latency"].is_object());
  EXPECT_THAT(render_text({{&report, 1}}), Not(HasSubstr("\x1b[31m")));
}

}  // namespace
}  // namespace isoscale::analysis
