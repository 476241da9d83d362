// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_render.hpp"
#include "analysis/page/page.hpp"
#include "analysis/render/render.hpp"
#include "compare_samples.hpp"

namespace isoscale::analysis {
namespace {

/// The metrics of the product, and one more.
std::vector<render::Metric<PointReport>> with_one_more() {
  std::vector<render::Metric<PointReport>> metrics{render::point_metrics().begin(),
                                                   render::point_metrics().end()};
  metrics.push_back({"twice", "doubled ranks", Unit::count, "ranks, twice",
                     [](auto& at) { return render::Value{render::Json(2 * at.data->ranks)}; },
                     render::Keep::always, render::Readers::everywhere});
  return metrics;
}

TEST(Metrics, OneMoreIsInEveryFormatOfAReport) {
  using render::Style;
  const std::vector<render::Metric<PointReport>> metrics = with_one_more();
  const OneRun one{samples::two_curves()};
  const merge::Report whole = one.report();
  for (const Style style : {Style::text, Style::markdown}) {
    const std::string text = render::render_as(style, whole, metrics);
    EXPECT_THAT(text, HasSubstr("doubled ranks")) << text;
  }
  EXPECT_THAT(render::render_as(Style::csv, whole, metrics),
              AllOf(HasSubstr(",twice\n"), HasSubstr(",4\n")));
  EXPECT_EQ(
      json::parse(render::render_as(Style::json, whole, metrics))["runs"][0]["points"][1]["twice"],
      4);
  EXPECT_EQ(page::page_data(whole, page::most_page_bytes,
                            metrics)["report"]["runs"][0]["points"][1]["twice"],
            4);
  EXPECT_FALSE(json::parse(render::render_json(whole))["runs"][0]["points"][1].contains("twice"));
}

TEST(Metrics, OneMoreIsInEveryFormatOfAComparison) {
  const std::vector<render::Metric<PointReport>> metrics = with_one_more();
  const samples::Compared of{{samples::side("a", {1}), samples::side("b", {1})}};
  EXPECT_THAT(compare::render_text(*of, metrics), HasSubstr("doubled ranks"));
  EXPECT_THAT(compare::render_markdown(*of, metrics), HasSubstr("doubled ranks"));
  EXPECT_THAT(compare::render_csv(*of, metrics), AllOf(HasSubstr(",twice\n"), HasSubstr(",4\n")));
  const json data = json::parse(compare::render_json(*of, metrics));
  EXPECT_EQ(data["curves"][0]["sides"][1]["points"][1]["twice"], 4);
}

}  // namespace
}  // namespace isoscale::analysis
