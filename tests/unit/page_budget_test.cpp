// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/page/asset.hpp"
#include "analysis/page/point_details.hpp"
#include "base/error.hpp"
#include "bench_samples.hpp"
#include "launch_samples.hpp"
#include "report_samples.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;
using testing::Contains;
using testing::HasSubstr;

Json data_of(const results::RunData& run, std::size_t most = page::most_page_bytes) {
  const RunReport made = make_report(run, "a.h5", {});
  return page::page_data({.runs = {&made, 1}}, most);
}

std::vector<std::string> notes_of(const Json& data) {
  return data["notes"].get<std::vector<std::string>>();
}

/// Points of 1 to 64 ranks with steps, lines and traces.
results::RunData many_points() {
  results::RunData run = samples::launch("many", 8, 8);
  samples::Script script;
  for (int i = 0; i < 40; ++i) script.compute().all_reduce(mesh::Axis::dp, 1).copy();
  for (int ranks = 1; ranks <= 64; ranks *= 2) {
    results::PointData& point = samples::add(run, {.dp = ranks}, 1e-3);
    timeline::Timeline step;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::pair<int, int>> spans;
      for (int i = 0; i < 120; ++i) spans.emplace_back(1000 * i, 1000 * i + 700);
      step.ranks.push_back(samples::trace(rank, {0, 120'000}, spans));
      results::DeviceSeries& line = point.device_series.emplace_back();
      line = {.rank = rank, .device = "gpu 0", .quantity = "power", .unit = "W"};
      for (int i = 0; i < 600; ++i) {
        line.time.push_back(i * 0.1);
        line.value.push_back(500 + i % 7);
      }
    }
    samples::set_trace(
        point, samples::point({.dp = ranks}, std::vector(static_cast<std::size_t>(ranks), script),
                              std::move(step)));
  }
  return run;
}

TEST(PageBudget, SamplesPicturesThenLeavesPointsOfFewRanksOut) {
  const results::RunData run = many_points();
  const Json whole = data_of(run);
  ASSERT_EQ(whole["details"].size(), 7U);
  const std::size_t report = page::page_bytes(whole["report"]);
  EXPECT_THAT(notes_of(whole), testing::Not(Contains(HasSubstr("points have pictures"))));
  for (const std::size_t points : {7U, 3U, 1U}) {
    const std::size_t most = 20'000 + report * 3 / 2 + points * 64'000;
    const Json data = data_of(run, most);
    EXPECT_LE(page::page_bytes(data), most);
    const std::size_t shown = data["details"].size();
    EXPECT_GE(shown, points);
    EXPECT_EQ(data["details"].back()["ranks"], 64);
    EXPECT_EQ(data["report"], whole["report"]) << "numbers in tables are never sampled";
    if (shown < 7) {
      EXPECT_THAT(notes_of(data), Contains(HasSubstr(std::to_string(shown) + " of 7 points")));
    }
  }
}

TEST(PageBudget, PicturesOfAnyPointTakeTheirShare) {
  constexpr int ranks = 512, ops = 300, steps = 1500, quantities = 10, values = 250;
  samples::Script script;
  std::vector<std::pair<int, int>> spans;
  for (int i = 0; i < ops; ++i) {
    script.compute(static_cast<program::StreamId>(i % 3));
    spans.emplace_back(100'000 * i, 100'000 * i + 98'765);
  }
  timeline::Timeline step;
  for (int rank = 0; rank < ranks; ++rank) {
    step.ranks.push_back(samples::trace(rank, {0, 100'000 * ops}, spans));
  }
  results::RunData run = samples::launch("large", ranks / 8, 8);
  results::PointData& data = samples::add(run, {.dp = ranks}, 1e-3);
  samples::set_trace(data, samples::point({.dp = ranks}, std::vector(ranks, script), step));
  data.step_times.assign(steps, std::vector(ranks, 1.23456e-3));
  for (std::size_t i = 0; i < steps; ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      data.step_times[i][rank] += 1.2345678e-6 * static_cast<double>((i * rank) % 97);
    }
  }
  for (int i = 0; i < ranks * quantities; ++i) {
    results::DeviceSeries& line = data.device_series.emplace_back();
    line = {.rank = i / quantities, .device = "gpu 0", .quantity = fmt::format("sensor{}", i % 10)};
    for (int at = 0; at < values; ++at) {
      line.time.push_back(at * 0.123456);
      line.value.push_back(500.123456 + (at * i) % 71);
    }
  }
  const RunReport made = make_report(run, "a.h5", {});
  const std::vector<page::DetailedPoint> points = page::detailed_points({.runs = {&made, 1}});
  ASSERT_EQ(points.size(), 1U);
  for (const std::size_t bytes : {64'000U, 150'000U, 400'000U, 1'000'000U, 3'000'000U}) {
    const Json details =
        page::point_details(points[0], page::limits_within(*points[0].point->data, bytes));
    EXPECT_LE(page::page_bytes(details), bytes);
    EXPECT_GE(page::page_bytes(details), std::min<std::size_t>(bytes, 1'000'000) / 3);
    page::PageNotes notes;
    page::note_details(points, Json::array({details}), notes);
    EXPECT_THAT(notes, Contains(HasSubstr(" of 512 ranks have a row in rank maps")));
  }
}

TEST(PageBudget, ThinsOutRowsButKeepsSlowPairsAndFailures) {
  results::RunData run = samples::run();
  run.ranks = 32;
  results::PointData point = samples::bench_point(0, "p2p", 32);
  for (int src = 0; src < 32; ++src) {
    for (int dst = 0; dst < 32; ++dst) {
      if (src == dst) continue;
      const double time = src == 5 && dst == 9 ? 4e-3 : 1e-3;
      results::RowData row =
          samples::row({{"op", "p2p"}, {"kind", "bandwidth"}, {"class", "same node"}},
                       {{"src", src}, {"dst", dst}, {"bytes", 4e6}}, time, 2);
      row.ranks = {src, dst};
      if (src == 30 && dst == 3) {
        row = samples::excused(row, results::PointStatus::failed, "no answer");
      }
      point.rows.push_back(std::move(row));
    }
  }
  run.points.push_back(std::move(point));
  const std::size_t whole = page::page_bytes(data_of(run));
  const Json data = data_of(run, whole / 2 + 20'000);
  EXPECT_LE(page::page_bytes(data), whole / 2 + 20'000);
  const Json& rows = data["report"]["runs"][0]["points"][0]["rows"];
  EXPECT_LT(rows.size(), 992U);
  EXPECT_GT(rows.size(), 100U);
  const auto has = [&](int src, int dst) {
    return std::ranges::any_of(
        rows, [&](const Json& row) { return row["src"] == src && row["dst"] == dst; });
  };
  EXPECT_TRUE(has(5, 9));
  EXPECT_TRUE(has(30, 3));
  EXPECT_THAT(notes_of(data), Contains(HasSubstr(std::to_string(rows.size()) + " of 992 rows")));
}

TEST(PageBudget, HoldsForManyLaunches) {
  std::vector<results::RunData> launches;
  for (int i = 0; i < 40; ++i) {
    launches.push_back(samples::launch_of("launch" + std::to_string(i), 2, 2, 1e-3 + i * 1e-6));
  }
  const samples::JoinedLaunches joined{std::move(launches)};
  const std::size_t most = page::page_bytes(page::page_data(joined.report())) * 9 / 10;
  const Json data = page::page_data(joined.report(), most);
  EXPECT_LE(page::page_bytes(data), most);
  EXPECT_FALSE(data["report"]["curves"].empty());
}

TEST(PageBudget, CutsNamesOfAMillionCharacters) {
  results::RunData run = samples::two_curves();
  const std::string name(1'000'000, '<');
  run.points[0].workload = name;
  run.points[0].options[name] = name;
  run.warnings = {name};
  run.rank_facts[0].host = name;
  run.rank_facts[1].text[name] = name;
  run.points[1].injections = {name};
  const Json data = data_of(run);
  EXPECT_LT(page::page_bytes(data), 500'000U);
  EXPECT_THAT(notes_of(data), Contains(HasSubstr("longer than 2000 characters are cut")));
}

TEST(PageDocument, HasNoMarkupOfRunFiles) {
  if (!page::page_asset()) GTEST_SKIP() << "this build has no page";
  results::RunData run = samples::hostile_run();
  const std::string markup = "</script><img src=x onerror=alert(1)><!--<script>";
  run.warnings = {markup};
  run.rank_facts[0].text[markup] = markup;
  for (results::PointData& point : run.points) {
    point.workload = markup;
    point.reason = markup;
    point.options[markup] = markup;
    point.injections = {markup};
    point.device_series = {{.rank = 0,
                            .device = markup,
                            .quantity = markup,
                            .unit = markup,
                            .time = {0, 1},
                            .value = {0, 1}}};
    for (auto& outline : point.outline.outlines) outline.streams = {markup, markup, markup};
  }
  const RunReport made = make_report(run, markup, {});
  const std::string page = page::page_document(page::page_data({.runs = {&made, 1}}));
  const std::string opening = "<script id=\"data\" type=\"application/json\">";
  const std::size_t begin = page.find(opening) + opening.size();
  ASSERT_NE(page.find(opening), std::string::npos);
  const std::size_t end = page.find('<', begin);
  EXPECT_EQ(page.compare(end, 9, "</script>"), 0) << page.substr(end, 80);
  const Json data = Json::parse(page.substr(begin, end - begin));
  EXPECT_EQ(data["report"]["warnings"].is_array(), true);
  EXPECT_EQ(data["report"]["runs"][0]["warnings"][0], markup);
  EXPECT_THAT(page.substr(begin, end - begin), testing::HasSubstr("\\u003c/script>"));
}

TEST(PageDocument, SaysHowToGetAPageWhereThereIsNone) {
  if (page::page_asset()) GTEST_SKIP() << "this build has a page";
  EXPECT_THROW(page::require_page(), base::UsageError);
}

}  // namespace
}  // namespace isoscale::analysis
