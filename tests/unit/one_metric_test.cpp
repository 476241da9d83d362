// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_render.hpp"
#include "analysis/page/page.hpp"
#include "compare_samples.hpp"

/// In this program the table of metrics has one line more (see CMakeLists.txt): a metric one_line
/// with the heading "one line", which is 7000 plus the number of ranks.
namespace isoscale::analysis {
namespace {

void expect_metric(const std::string& output, const std::string& name) {
  EXPECT_THAT(output,
              AllOf(HasSubstr(name), HasSubstr("7001"), HasSubstr("7002"), HasSubstr("7004")));
}

void expect_metric(const nlohmann::ordered_json& points) {
  ASSERT_GE(points.size(), 3U);
  for (const auto& point : points) EXPECT_EQ(point["one_line"], 7000 + point["ranks"].get<int>());
}

void expect_described(const nlohmann::ordered_json& page) {
  EXPECT_EQ(page["metrics"]["point"]["one_line"],
            (nlohmann::ordered_json{{"heading", "one line"},
                                    {"form", "count"},
                                    {"unit", "1"},
                                    {"sentence", "a metric in one line"},
                                    {"shown", true}}));
}

TEST(OneMetric, InOneLineIsInAllReports) {
  const OneRun one{samples::two_curves()};
  expect_metric(render::render_text(one.report()), "one line");
  expect_metric(render::render_markdown(one.report()), "| one line |");
  expect_metric(render::render_csv(one.report()), ",one_line\n");
  expect_metric(render::report_json(one.report())["runs"][0]["points"]);
  const auto page = page::page_data(one.report());
  expect_metric(page["report"]["runs"][0]["points"]);
  expect_described(page);
}

TEST(OneMetric, InOneLineIsInAllComparisons) {
  const samples::Compared of{samples::against_a(samples::side_b())};
  expect_metric(compare::render_text(*of), "one line");
  expect_metric(compare::render_markdown(*of), "| one line |");
  expect_metric(compare::render_csv(*of), ",one_line\n");
  const auto page = page::page_data(*of);
  expect_described(page);
  for (const auto& compared : {compare::compare_json(*of), page["compare"]}) {
    for (const auto& side : compared["curves"][0]["sides"]) expect_metric(side["points"]);
  }
}

}  // namespace
}  // namespace isoscale::analysis
