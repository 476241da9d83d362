// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include "analysis/page/point_details.hpp"
#include "analysis/render/render.hpp"
#include "base/error.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"

/// The tests check what a page holds of a report, and how it stays small.
namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json data_of(const OneRun& one, std::size_t most = page::most_page_bytes) {
  return page::page_data(one.report(), most);
}

std::vector<std::string> notes_of(const Json& data) {
  return data["notes"].get<std::vector<std::string>>();
}

TEST(PageNumber, HasSoManyDigitsAndNoMore) {
  for (const auto& [number, text] : {std::pair{0.001234567, "0.00123457"},
                                     {1234567.0, "1234570"},
                                     {1.98e9, "1980000000"},
                                     {-2.0, "-2"},
                                     {0.0, "0"},
                                     {9.9999996, "10"},
                                     {0.1 + 0.2, "0.3"},
                                     {1e-300, "1e-300"},
                                     {1e300, "1e+300"},
                                     {std::numeric_limits<double>::quiet_NaN(), "null"},
                                     {std::numeric_limits<double>::infinity(), "null"}}) {
    EXPECT_EQ(page::drawn(number).dump(), text);
  }
  EXPECT_TRUE(page::drawn(std::optional<double>{}).is_null());
}

TEST(PageData, HasTheReportAndDetailsOfEveryPointWithSteps) {
  const OneRun one{samples::two_curves()};
  const Json data = data_of(one);
  EXPECT_EQ(data["kind"], "report");
  EXPECT_TRUE(data["notes"].is_array());
  std::vector<int> points;
  for (const Json& at : data["details"]) {
    EXPECT_EQ(at["run"], 0);
    points.push_back(at["point"].get<int>());
  }
  EXPECT_THAT(points, UnorderedElementsAre(0, 1, 2, 4, 5));  // 3 was skipped
  // The page holds the report's values as they stand there, digit by digit.
  const Json whole = render::report_json(one.report());
  const Json& pruned = data["report"];
  for (const char* const key : {"step_time", "throughput", "efficiency", "breakdown", "findings"}) {
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(pruned["runs"][0]["points"][i][key], whole["runs"][0]["points"][i][key]) << key;
    }
  }
  EXPECT_FALSE(pruned["runs"][0]["points"][0].contains("breakdown_of_rank"));
  EXPECT_FALSE(pruned["runs"][0]["system"].contains("ranks"));
}

TEST(PageData, OfSeveralLaunchesHasTheTypicalOnes) {
  const samples::JoinedLaunches joined{{samples::launch_of("launch0", 2, 2, 1.0e-3),
                                        samples::launch_of("launch1", 2, 2, 3.0e-3),
                                        samples::launch_of("launch2", 2, 2, 2.0e-3)}};
  const Json data = page::page_data(joined.report());
  ASSERT_EQ(data["details"].size(), 1U);
  EXPECT_EQ(data["details"][0]["run"], 2);  // 2 ms is the one in the middle
  EXPECT_EQ(data["report"]["runs"].size(), 3U);
}

Json rank_json(int rank, int host, const Json& text) {
  return {{"rank", rank},
          {"host", "n" + std::to_string(host)},
          {"node", 0},
          {"text", text},
          {"number", {{"cores", 64}}}};
}

TEST(Prune, PutsRanksThatAreAlikeTogether) {
  Json ranks = Json::array(), hosts = Json::array();
  for (int rank = 0; rank < 24; ++rank) {
    ranks.push_back(rank_json(rank, rank / 2,
                              {{"gpu_name", rank == 7 ? "GPU B" : "GPU A"},
                               {"bound_cpus", std::to_string(rank % 2)},
                               {"odd_fact", std::to_string(rank)}}));
    hosts.push_back(rank_json(rank, rank, {{"os", rank == 2 ? "old" : "new"}}));
  }
  const Json kinds = page::kinds_of_ranks(ranks);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0]["ranks"], "0-6, 8-23");
  EXPECT_EQ(kinds[0]["count"], 23);
  EXPECT_EQ(kinds[0]["hosts"].size(), 8U);
  EXPECT_EQ(kinds[0]["more_hosts"], 4);
  EXPECT_EQ(kinds[0]["text"], (Json{{"gpu_name", "GPU A"}}));
  EXPECT_EQ(kinds[0]["number"], (Json{{"cores", 64}}));
  EXPECT_EQ(kinds[1]["ranks"], "7");
  EXPECT_EQ(page::kinds_of_ranks(hosts).size(), 2U);
}

TEST(Prune, CutsLongTextsAndKeysAtWholeCharacters) {
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "ü";
  Json data{{"a", umlauts}, {std::string(5000, 'k'), Json::array({"short", umlauts})}};
  page::PageNotes notes, none;
  page::cut_texts(data, notes);
  EXPECT_EQ(data["a"], umlauts.substr(0, 4000) + "… (3000 characters)");
  const std::string key = std::string(2000, 'k') + "… (5000 characters)";
  ASSERT_TRUE(data.contains(key));
  EXPECT_EQ(data[key][0], "short");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("3 texts longer than")));
  Json small{{"a", std::string(2000, 'x')}};
  page::cut_texts(small, none);
  EXPECT_EQ(small["a"], std::string(2000, 'x'));
  EXPECT_TRUE(none.empty());
}

/// Adds a point whose every rank has a trace of so many ops, and lines of so many values.
results::PointData& add_pictured(results::RunData& run, int ranks, int ops, int lines, int values) {
  results::PointData& point = samples::add(run, {.dp = ranks}, 1e-3);
  samples::Script script;
  samples::Spans spans;
  for (int i = 0; i < ops; ++i) {
    script.compute(static_cast<program::StreamId>(i % 3));
    spans.emplace_back(100'000 * i, 100'000 * i + 98'765);
  }
  timeline::Timeline step;
  for (int rank = 0; rank < ranks; ++rank) {
    step.ranks.push_back(samples::trace(rank, {0, 100'000 * ops}, spans));
    for (int line = 0; line < lines; ++line) {
      results::DeviceSeries& of = point.device_series.emplace_back();
      of = {.rank = rank, .device = "gpu 0", .quantity = fmt::format("sensor{}", line)};
      for (int at = 0; at < values; ++at) {
        of.time.push_back(at * 0.123456);
        of.value.push_back(500.123456 + (at * (rank + line)) % 71);
      }
    }
  }
  const std::vector scripts(static_cast<std::size_t>(ranks), script);
  samples::set_trace(point, samples::point({.dp = ranks}, scripts, std::move(step)));
  return point;
}

TEST(PageBudget, SamplesPicturesThenLeavesPointsOfFewRanksOut) {
  results::RunData run = samples::launch("many", 8, 8);
  for (int ranks = 1; ranks <= 64; ranks *= 2) add_pictured(run, ranks, 120, 1, 600);
  const OneRun one{std::move(run)};
  const Json whole = data_of(one);
  ASSERT_EQ(whole["details"].size(), 7U);
  const std::size_t report = page::page_bytes(whole["report"]);
  EXPECT_THAT(notes_of(whole), Not(Contains(HasSubstr("points have pictures"))));
  for (const std::size_t points : {7U, 3U, 1U}) {
    const std::size_t most = 40'000 + report * 3 / 2 + points * 64'000;
    const Json data = data_of(one, most);
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
  constexpr std::size_t ranks = 512, steps = 1500;
  results::RunData run = samples::launch("large", ranks / 8, 8);
  results::PointData& data = add_pictured(run, ranks, 300, 10, 250);
  data.step_times.assign(steps, std::vector(ranks, 1.23456e-3));
  for (std::size_t i = 0; i < steps; ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      data.step_times[i][rank] += 1.2345678e-6 * static_cast<double>((i * rank) % 97);
    }
  }
  const OneRun one{std::move(run)};
  const std::vector<page::DetailedPoint> points = page::detailed_points(one.report());
  ASSERT_EQ(points.size(), 1U);
  for (const std::size_t bytes : {64'000U, 150'000U, 400'000U, 1'000'000U, 3'000'000U}) {
    const Json details =
        page::point_details(points[0], page::limits_within(*points[0].point->data, bytes));
    EXPECT_LE(page::page_bytes(details), bytes);
    for (const auto& [part, eighths] :
         {std::pair{"timeline", 3U}, {"devices", 2U}, {"rank_map", 2U}, {"steps", 1U}}) {
      EXPECT_LE(page::page_bytes(details[part]), eighths * bytes / 8) << part;
    }
    EXPECT_GE(page::page_bytes(details), std::min<std::size_t>(bytes, 1'000'000) / 3);
    page::PageNotes notes;
    page::note_details(points, Json::array({details}), notes);
    EXPECT_THAT(notes, Contains(HasSubstr(" of 512 ranks have")));
    EXPECT_THAT(notes, Contains(HasSubstr(" of 5120 lines of devices are drawn")));
  }
}

TEST(PageBudget, ThinsOutRowsButKeepsSlowPairsAndFailures) {
  results::RunData run = samples::run();
  run.ranks = 32;
  const auto time = [](int src, int dst) { return src == 5 && dst == 9 ? 4e-3 : 1e-3; };
  run.points = {samples::all_pairs(32, 4e6, time, "same node")};
  results::RowData& failed =
      *std::ranges::find(run.points[0].rows, std::vector{30, 3}, &results::RowData::ranks);
  failed = samples::excused(failed, results::PointStatus::failed, "no answer");
  const OneRun one{std::move(run)};
  const std::size_t most = page::page_bytes(data_of(one)) / 2 + 20'000;
  const Json data = data_of(one, most);
  EXPECT_LE(page::page_bytes(data), most);
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
  const samples::JoinedLaunches joined{mapped(std::views::iota(0, 40), [](int i) {
    return samples::launch_of("launch" + std::to_string(i), 2, 2, 1e-3 + i * 1e-6);
  })};
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
  const Json data = data_of(OneRun{std::move(run)});
  EXPECT_LT(page::page_bytes(data), 500'000U);
  EXPECT_THAT(notes_of(data), Contains(HasSubstr("longer than 2000 characters")));
}

TEST(PageDocument, HoldsTextsAsDataNotAsMarkup) {
  if (!page::page_asset()) GTEST_SKIP() << "this build has no page";
  const std::string markup = "</script><img src=x onerror=alert(1)><!--<script>";
  const Json given{{"warnings", {markup}}, {markup, {{"device", markup}}}};
  const std::string page = page::page_document(given);
  const std::string opening = "<script id=\"data\" type=\"application/json\">";
  const std::size_t begin = page.find(opening) + opening.size();
  ASSERT_NE(page.find(opening), std::string::npos);
  const std::size_t end = page.find('<', begin);
  EXPECT_EQ(page.compare(end, 9, "</script>"), 0) << page.substr(end, 80);
  EXPECT_EQ(Json::parse(page.substr(begin, end - begin)), given);
  EXPECT_THAT(page.substr(begin, end - begin), HasSubstr("\\u003c/script>"));
}

TEST(PageDocument, SaysHowToGetAPageWhereThereIsNone) {
  if (page::page_asset()) GTEST_SKIP() << "this build has a page";
  EXPECT_THROW(page::require_page(), base::UsageError);
}

}  // namespace
}  // namespace isoscale::analysis
