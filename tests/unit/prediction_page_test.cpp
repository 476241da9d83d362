// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "analysis/page/asset.hpp"
#include "analysis/predict/prediction.hpp"
#include "base/error.hpp"

namespace isoscale::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

predict::Forecast forecast(int ranks, double step) {
  predict::Forecast at{.ranks = ranks, .nodes = ranks / 8};
  at.request.mesh = {.tp = 8, .dp = ranks / 8};
  at.request.options = {{"microbatch", "2"}};
  at.step_time = {.value = step, .lower = 0.9 * step, .upper = 1.1 * step};
  at.throughput = {.value = 1 / step, .lower = 0.8 / step, .upper = 1.2 / step};
  at.efficiency = {.value = 0.75, .lower = 0.5, .upper = 0.875};
  at.uncertainty = {.noise = 0.01, .launch = 0.02, .fit = 0.04};
  at.breakdown = breakdown::Breakdown{};
  at.breakdown->compute = 0.75 * step;
  at.breakdown->transfer = 0.25 * step;
  at.breakdown->step = step;
  at.waterfall = efficiency::Waterfall{};
  at.waterfall->ideal = 0.75 * step;
  at.waterfall->measured = step;
  at.waterfall->lost = {{.cause = "dp transfer", .seconds = 0.25 * step}};
  return at;
}

/// Returns a prediction from a run, with a what-if, a search and a measurement to make.
predict::Prediction prediction() {
  predict::Prediction made{
      .source = "run.h5", .machine = "2 x A", .workload = "hybrid", .title = "hybrid"};
  made.baseline = 8;
  made.measured = {{.ranks = 8, .nodes = 1, .step_time = 4, .throughput = 0.25, .efficiency = 1.0}};
  made.base = {.title = "as measured", .points = {forecast(16, 2), forecast(512, 0.5)}};
  made.base.points.back().extrapolated = true;
  made.base.points.push_back({.ranks = 1000, .nodes = 125, .refused = "tp=8 does not divide 1000"});
  made.what_if = {{.title = "gemm=2x", .points = {forecast(16, 1), forecast(512, 0.25)}}};
  made.next = predict::NextMeasurement{.what = "the run on 64 ranks",
                                       .command = "isoscale run",
                                       .width_now = 0.375,
                                       .width_then = 0.125};
  made.searched = 99;
  made.best = {{.step_time = 1, .throughput = 1}, {.step_time = 2, .why_not = "more bubbles"}};
  made.limits = {"all along: dp transfer costs most"};
  return made;
}

TEST(PredictionPage, HoldsTheNumbersOfThePrediction) {
  const auto data = page::page_data(prediction());
  EXPECT_EQ(data["kind"], "predict");
  EXPECT_TRUE(data["notes"].empty());
  const auto& predicted = data["prediction"];
  const auto& points = predicted["curve"]["points"];
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0]["ranks"], 16);
  EXPECT_EQ(points[0]["mesh"]["dp"], 2);
  EXPECT_EQ(points[0]["options"]["microbatch"], "2");
  EXPECT_EQ(points[0]["efficiency"]["lower"], 0.5);
  EXPECT_EQ(points[0]["efficiency"]["value"], 0.75);
  EXPECT_EQ(points[0]["efficiency"]["upper"], 0.875);
  EXPECT_EQ(points[0]["uncertainty"]["fit"], 0.04);
  EXPECT_EQ(points[0]["breakdown"]["transfer"], 0.5);
  EXPECT_EQ(points[0]["waterfall"]["predicted"], 2);
  EXPECT_EQ(points[0]["waterfall"]["lost"]["dp transfer"], 0.5);
  EXPECT_EQ(points[0]["extrapolated"], false);
  EXPECT_EQ(points[1]["extrapolated"], true);
  EXPECT_EQ(points[2]["refused"], "tp=8 does not divide 1000");
  EXPECT_EQ(predicted["measured"][0]["throughput"], 0.25);
  EXPECT_EQ(predicted["what_if"][0]["points"][1]["step_time"]["value"], 0.25);
  EXPECT_EQ(predicted["next"]["width_then"], 0.125);
  EXPECT_EQ(predicted["best"][1]["why_not"], "more bubbles");
  EXPECT_EQ(predicted["limits"].size(), 1U);
}

TEST(PredictionCsv, HasAValueInEveryColumnOfAFullPoint) {
  predict::Prediction made = prediction();
  made.throughput_unit = "tokens/s";
  made.what_if.clear();
  made.base.points.resize(1);
  predict::Forecast& full = made.base.points.front();
  full.request.mesh = {.dp = 16};
  full.fits = true;
  full.mfu = 0.5;
  full.limit = "dp transfer";
  std::istringstream lines{render_csv(made)};
  std::string heading, row;
  ASSERT_TRUE(std::getline(lines, heading) && std::getline(lines, row));
  std::istringstream columns{heading}, cells{row};
  int filled = 0;
  for (std::string column, cell; std::getline(columns, column, ',');) {
    ASSERT_TRUE(std::getline(cells, cell, ',')) << column;
    EXPECT_EQ(cell.empty(), column == "refused") << column;
    if (!cell.empty()) ++filled;
  }
  EXPECT_EQ(filled, 40);
  EXPECT_EQ(cells.peek(), std::istringstream::traits_type::eof());
}

TEST(PredictionPage, OneCountAloneHasNoEfficiency) {
  predict::Prediction made = prediction();
  EXPECT_EQ(page::page_data(made)["prediction"]["has_efficiency"], true);
  made.base.points.erase(made.base.points.begin());
  EXPECT_EQ(page::page_data(made)["prediction"]["has_efficiency"], true) << "8 are measured";
  made.measured.clear();
  made.baseline = 512;
  const auto data = page::page_data(made);
  EXPECT_EQ(data["prediction"]["has_efficiency"], false) << "1000 ranks are refused";
  EXPECT_EQ(data["prediction"]["curve"]["points"][0]["step_time"]["value"], 0.5);
  EXPECT_THAT(render_text(made), Not(HasSubstr("fficiency")));
}

TEST(PredictionPage, OfVeryManyRankCountsShowsSomeWithBothEnds) {
  predict::Prediction made = prediction();
  for (predict::ForecastCurve* const curve : {&made.base, &made.what_if.front()}) {
    curve->points.clear();
    for (int ranks = 8; ranks <= 8 * 10'000; ranks += 8)
      curve->points.push_back(forecast(ranks, 1));
  }
  const auto data = page::page_data(made);
  const auto& base = data["prediction"]["curve"]["points"];
  const auto& changed = data["prediction"]["what_if"][0]["points"];
  EXPECT_EQ(base.size() + changed.size(), page::most_page_forecasts);
  EXPECT_EQ(base.front()["ranks"], 8);
  EXPECT_EQ(base.back()["ranks"], 80'000);
  ASSERT_EQ(base.size(), changed.size());
  for (std::size_t i = 0; i < base.size(); ++i) EXPECT_EQ(base[i]["ranks"], changed[i]["ranks"]);
  ASSERT_EQ(data["notes"].size(), 1U);
  EXPECT_EQ(data["notes"][0], "750 of 10000 rank counts of each curve are shown");
  if (page::page_asset()) {
    EXPECT_LT(page::page_document(data).size(), 8'000'000U);
  }
}

TEST(PredictionPage, OfVeryManyWhatIfsShowsTheFirst) {
  predict::Prediction made = prediction();
  made.what_if.resize(5000, made.what_if.front());
  const auto data = page::page_data(made);
  EXPECT_EQ(data["prediction"]["what_if"].size(), page::most_page_forecasts / 2 - 1);
  EXPECT_FALSE(data["notes"].empty());
}

TEST(PredictionPage, CutsTextsThatAreTooLongAndSaysSo) {
  predict::Prediction made = prediction();
  made.machine = std::string(1'000'000, 'x');
  const auto data = page::page_data(made);
  EXPECT_LT(data.dump().size(), 100'000U);
  EXPECT_FALSE(data["notes"].empty());
}

TEST(PredictionPage, TextOfSourcesIsNoMarkup) {
  if (!page::page_asset()) GTEST_SKIP() << "this build has no page";
  predict::Prediction made = prediction();
  made.machine = "</script><img src=x onerror=alert(1)>";
  const std::string document = page::page_document(page::page_data(made));
  EXPECT_THAT(document, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(document, HasSubstr("\\u003c/script>\\u003cimg src=x onerror=alert(1)>"));
}

TEST(PredictionPage, IsNotWrittenOverAFileUnlessToldTo) {
  if (!page::page_asset()) GTEST_SKIP() << "this build has no page";
  const auto path = std::filesystem::path{testing::TempDir()} / "isoscale_prediction_page.html";
  std::ofstream{path} << "mine";
  EXPECT_THROW(page::write_page_file(prediction(), path, settings::IfExists::refuse),
               base::UsageError);
  EXPECT_EQ(std::filesystem::file_size(path), 4U);
  page::write_page_file(prediction(), path, settings::IfExists::overwrite);
  EXPECT_GT(std::filesystem::file_size(path), 100'000U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace isoscale::analysis
