// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/matched_traces.hpp"
#include "analysis/page/page.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/traces/trace_export.hpp"
#include "analysis_test.hpp"
#include "base/error.hpp"

/// Tests what a page holds of a report, how it stays small, and the export of traces.
namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;

Json data_of(const OneRun& one, std::size_t most = most_page_bytes) {
  return page_data(one.report(), most);
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
    EXPECT_EQ(drawn(number).dump(), text);
  }
  EXPECT_TRUE(drawn(std::optional<double>{}).is_null());
}

TEST(PageData, HasTheReportAndDetailsOfEveryPointWithSteps) {
  const OneRun one{two_curves()};
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
  const JoinedLaunches joined{{launch_of("launch0", 2, 2, 1.0e-3),
                               launch_of("launch1", 2, 2, 3.0e-3),
                               launch_of("launch2", 2, 2, 2.0e-3)}};
  const Json data = page_data(joined.report());
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
  const Json kinds = kinds_of_ranks(ranks);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0]["ranks"], "0-6, 8-23");
  EXPECT_EQ(kinds[0]["count"], 23);
  EXPECT_EQ(kinds[0]["hosts"].size(), 8U);
  EXPECT_EQ(kinds[0]["more_hosts"], 4);
  EXPECT_EQ(kinds[0]["text"], (Json{{"gpu_name", "GPU A"}}));
  EXPECT_EQ(kinds[0]["number"], (Json{{"cores", 64}}));
  EXPECT_EQ(kinds[1]["ranks"], "7");
  EXPECT_EQ(kinds_of_ranks(hosts).size(), 2U);
  hosts[0]["host"] = Json{};  // a host without a name
  EXPECT_EQ(kinds_of_ranks(hosts).size(), 2U);
}

TEST(PageBudget, SamplesPicturesThenLeavesPointsOfFewRanksOut) {
  results::RunData run = launch("many", 8, 8);
  // Every rank has a trace of 120 ops and a line of 600 values.
  Script script;
  Spans spans;
  for (int i = 0; i < 120; ++i) {
    script.compute(static_cast<program::StreamId>(i % 3));
    spans.emplace_back(100'000 * i, 100'000 * i + 98'765);
  }
  for (int ranks = 1; ranks <= 64; ranks *= 2) {
    results::PointData& point = add(run, {.dp = ranks}, 1e-3);
    for (int rank = 0; rank < ranks; ++rank) {
      results::DeviceSeries& line = point.device_series.emplace_back();
      line = {.rank = rank, .device = "gpu 0", .quantity = "sensor"};
      for (int at = 0; at < 600; ++at) {
        line.time.push_back(at * 0.123456);
        line.value.push_back(500.123456 + (at * rank) % 71);
      }
    }
    const auto all = static_cast<std::size_t>(ranks);
    set_trace(point, samples::point({.dp = ranks}, std::vector(all, script),
                                    step({0, 12'000'000}, std::vector(all, spans))));
  }
  const OneRun one{std::move(run)};
  const Json whole = data_of(one);
  ASSERT_EQ(whole["details"].size(), 7U);
  const std::size_t report = page_bytes(whole["report"]);
  EXPECT_THAT(notes_of(whole), Not(Contains(HasSubstr("points have pictures"))));
  for (const std::size_t points : {7U, 3U, 1U}) {
    const std::size_t most = 40'000 + report * 3 / 2 + points * 64'000;
    const Json data = data_of(one, most);
    EXPECT_LE(page_bytes(data), most);
    const std::size_t shown = data["details"].size();
    EXPECT_GE(shown, points);
    EXPECT_EQ(data["details"].back()["ranks"], 64);
    EXPECT_EQ(data["report"], whole["report"]) << "numbers in tables are never sampled";
    if (shown < 7) {
      EXPECT_THAT(notes_of(data), Contains(HasSubstr(std::to_string(shown) + " of 7 points")));
    }
  }
}

TEST(PageBudget, PicturesOfManyStepsTakeTheirShare) {
  constexpr std::size_t ranks = 128, steps = 1000;
  results::RunData run = launch("large", 16, 8);
  results::PointData& point = add(run, {.dp = ranks}, 1e-3);
  point.step_times.assign(steps, std::vector(ranks, 1.23456e-3));
  for (std::size_t i = 0; i < steps * ranks; ++i) {
    point.step_times[i / ranks][i % ranks] += 1.2345678e-6 * static_cast<double>(i * i % 97);
  }
  const OneRun one{std::move(run)};
  const std::vector<DetailedPoint> points = detailed_points(one.report());
  ASSERT_EQ(points.size(), 1U);
  for (const std::size_t bytes : {64'000U, 400'000U}) {
    const Json details = point_details(points[0], limits_within(*points[0].point->data, bytes));
    EXPECT_LE(page_bytes(details["rank_map"]), bytes / 4);
    EXPECT_LE(page_bytes(details["steps"]), bytes / 8);
  }
}

TEST(PageBudget, ThinsOutRowsButKeepsSlowPairsAndFailures) {
  results::RunData run = samples::run();
  run.ranks = 32;
  const auto time = [](int src, int dst) { return src == 5 && dst == 9 ? 4e-3 : 1e-3; };
  run.points = {all_pairs(32, 4e6, time, "same node")};
  results::RowData& failed =
      *std::ranges::find(run.points[0].rows, std::vector{30, 3}, &results::RowData::ranks);
  failed = excused(failed, results::PointStatus::failed, "no answer");
  const OneRun one{std::move(run)};
  const std::size_t most = page_bytes(data_of(one)) / 2 + 20'000;
  const Json data = data_of(one, most);
  EXPECT_LE(page_bytes(data), most);
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
  const JoinedLaunches joined{mapped(std::views::iota(0, 40), [](int i) {
    return launch_of("launch" + std::to_string(i), 2, 2, 1e-3 + i * 1e-6);
  })};
  const std::size_t most = page_bytes(page_data(joined.report())) * 9 / 10;
  const Json data = page_data(joined.report(), most);
  EXPECT_LE(page_bytes(data), most);
  EXPECT_FALSE(data["report"]["curves"].empty());
}

TEST(PageDocument, HoldsTextsAsDataNotAsMarkup) {
  if (!page_asset()) GTEST_SKIP() << "this build has no page";
  const std::string markup = "</script><img src=x onerror=alert(1)><!--<script>";
  const Json given{{"warnings", {markup}}, {markup, {{"device", markup}}}};
  const std::string page = page_document(given);
  const std::string opening = "<script id=\"data\" type=\"application/json\">";
  const std::size_t begin = page.find(opening) + opening.size();
  ASSERT_NE(page.find(opening), std::string::npos);
  const std::size_t end = page.find('<', begin);
  EXPECT_EQ(page.compare(end, 9, "</script>"), 0) << page.substr(end, 80);
  EXPECT_EQ(Json::parse(page.substr(begin, end - begin)), given);
  EXPECT_THAT(page.substr(begin, end - begin), HasSubstr("\\u003c/script>"));
}

TEST(PageDocument, SaysHowToGetAPageWhereThereIsNone) {
  if (page_asset()) GTEST_SKIP() << "this build has a page";
  EXPECT_THROW(require_page(), base::UsageError);
}

/// Rank 0 computes and sends, rank 1 receives on its second stream and computes.
results::PointData two_stages() {
  auto point = samples::point(
      {.pp = 2}, {Script{}.compute().send(1, 1).after(0, 1), Script{}.receive(-1, 1).compute()},
      {{trace(0, {1000, 1100}, {{1000, 1050}, {1050, 1090}}),
        trace(1, {1010, 1200}, {{1010, 1095}, {1095, 1200}})}});
  point.workload = "pp";
  point.model = "tiny";
  point.outline.outlines[0].ops[0].place = {
      .phase = program::Phase::forward, .layer = 3, .microbatch = 0};
  point.outline.outlines[0].ops[0].flop = 1e6;
  return point;
}

struct Exported {
  traces::TraceExport result;
  json events;
};
Exported exported(const std::vector<results::RunData>& runs) {
  std::ostringstream out;
  traces::TraceExport result = traces::export_traces(runs, out);
  return {std::move(result), json::parse(out.str()).at("traceEvents")};
}
Exported exported(const std::vector<results::PointData>& points) {
  results::RunData run;
  run.points = points;
  run.rank_facts = {{.rank = 0, .host = "node\"1", .text = {{"device", "OpenBLAS"}}}};
  return exported(std::vector{run});
}

std::vector<json> of_kind(const json& events, const std::string& kind) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("ph") == kind) found.push_back(event);
  }
  return found;
}

TEST(TraceExport, HasAnEventPerSpanAndStep) {
  const auto [result, events] = exported({two_stages()});
  EXPECT_EQ(result.events, 6U);
  EXPECT_THAT(result.left_out, ElementsAre());
  const std::vector<json> spans = of_kind(events, "X");
  ASSERT_EQ(spans.size(), 6U);
  expect_holds(spans[0], {{"name", "step 0"}, {"ts", 0.0}, {"dur", 0.1}});
  const json &gemm = spans[1], &receive = spans[4];
  expect_holds(gemm, {{"name", "gemm layer 3 mb 0, 1 MFLOP"},
                      {"cat", "forward"},
                      {"dur", 0.05},
                      {"args", {{"flop", 1e6}, {"layer", 3}}}});
  EXPECT_TRUE(gemm.at("args").at("op").is_number_integer());
  expect_holds(receive,
               {{"name", "exchange"}, {"ts", 0.01}, {"args", {{"bytes", 64}, {"axis", "pp"}}}});
  EXPECT_NE(receive.at("pid"), gemm.at("pid"));
  EXPECT_NE(receive.at("tid"), gemm.at("tid"));
}

TEST(TraceExport, NamesProcessesAndThreadsAndTheShapesOfGemms) {
  results::PointData point = two_stages();
  point.outline.outlines[0].ops[0].gemm = {.m = 100, .n = 50, .k = 20, .batch = 5};
  const json events = exported({point}).events;
  std::vector<std::string> names;
  for (const json& event : of_kind(events, "M")) {
    if (event.at("args").contains("name")) names.push_back(event.at("args").at("name"));
  }
  const std::string title = "pp tiny on 2 (pp=2): rank ";
  EXPECT_THAT(names, ElementsAre(title + "0 (node\"1, OpenBLAS)", "steps", "compute", "second",
                                 title + "1", "steps", "compute", "second"));
  expect_holds(of_kind(events, "X")[1],
               {{"name", "gemm layer 3 mb 0, 100 x 50 x 20, batch 5"},
                {"args", {{"m", 100}, {"n", 50}, {"k", 20}, {"batch", 5}}}});
}

TEST(TraceExport, ArrowLeadsFromTheBeginOfASendToTheEndOfItsReceive) {
  const json events = exported({two_stages()}).events;
  const std::vector<json> starts = of_kind(events, "s"), ends = of_kind(events, "f");
  ASSERT_EQ(starts.size(), 1U);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(starts[0].at("id"), ends[0].at("id"));
  EXPECT_EQ(starts[0].at("ts"), 0.05);
  EXPECT_EQ(ends[0].at("ts"), 0.094);  // inside: 1 ns before its end
  EXPECT_EQ(ends[0].at("bp"), "e");
  EXPECT_NE(starts[0].at("pid"), ends[0].at("pid"));
}

TEST(TraceExport, PointsHaveProcessesAndArrowsOfTheirOwn) {
  const json events = exported({two_stages(), two_stages()}).events;
  std::set<int> processes, arrows;
  for (const json& event : of_kind(events, "X")) processes.insert(event.at("pid").get<int>());
  for (const json& event : of_kind(events, "s")) arrows.insert(event.at("id").get<int>());
  EXPECT_EQ(processes.size(), 4U);
  EXPECT_EQ(arrows.size(), 2U);
}

TEST(TraceExport, SaysWhatIsLeftOut) {
  auto damaged = two_stages(), senseless = two_stages(), unaligned = two_stages(),
       untraced = two_stages(), bare = two_stages(), broken = two_stages();
  damaged.traces[0].ranks[1].spans.pop_back();
  senseless.traces[0].ranks[1].rank = 77;
  unaligned.clock_error[1] = std::numeric_limits<double>::quiet_NaN();
  untraced.traces[0].ranks.pop_back();
  bare.traces.clear();
  broken.outline.outline_of_rank = {0, 9};
  struct Case {
    std::vector<results::PointData> points;
    std::vector<std::string> left_out;
    std::size_t spans, arrows;
  };
  for (const Case& at : std::vector<Case>{
           {{damaged}, {"rank 1 left out"}, 3, 0},
           {{senseless}, {"rank 77 left out", "rank 1 not traced"}, 3, 0},
           {{unaligned}, {"rank 1 without arrows"}, 6, 0},
           {{untraced}, {"rank 1 not traced"}, 3, 0},
           {{bare, broken, two_stages()}, {"no step was traced", "op table is missing"}, 6, 1}}) {
    const auto [result, events] = exported(at.points);
    EXPECT_EQ(of_kind(events, "X").size(), at.spans);
    EXPECT_EQ(of_kind(events, "s").size(), at.arrows);
    EXPECT_EQ(of_kind(events, "f").size(), at.arrows);
    ASSERT_EQ(result.left_out.size(), at.left_out.size());
    for (std::size_t i = 0; i < at.left_out.size(); ++i) {
      EXPECT_THAT(result.left_out[i], HasSubstr(at.left_out[i]));
    }
  }
}

/// The argument wait_us of the events of ops, in their order.
std::vector<std::optional<double>> waits(const results::PointData& point) {
  std::vector<std::optional<double>> result;
  for (const json& event : of_kind(exported({point}).events, "X")) {
    const json& arguments = event.at("args");
    if (!arguments.contains("op")) continue;
    result.emplace_back();
    if (arguments.contains("wait_us")) result.back() = arguments.at("wait_us").get<double>();
  }
  return result;
}

TEST(TraceExport, CommunicationSaysHowLongItWaitedWhereThatIsKnown) {
  // Rank 1 is ready to receive 40 ns before rank 0 sends.
  EXPECT_THAT(waits(two_stages()), ElementsAre(std::nullopt, 0.0, 0.04, std::nullopt));
  auto early = two_stages();  // the message leaves before anybody takes it
  early.traces[0].ranks[0].spans[1].end = units::Nanoseconds{1060};
  early.traces[0].ranks[1].spans[0].start = units::Nanoseconds{1080};
  EXPECT_THAT(waits(early), ElementsAre(std::nullopt, 0.01, 0.0, std::nullopt));
  auto unaligned = two_stages(), untraced = two_stages(), dropped = two_stages();
  unaligned.clock_error[1] = std::numeric_limits<double>::quiet_NaN();
  untraced.traces[0].ranks.pop_back();
  dropped.dropped = {1};
  for (const auto& [point, ops] : {std::pair{unaligned, 4U}, {untraced, 2U}, {dropped, 4U}}) {
    EXPECT_EQ(waits(point), std::vector<std::optional<double>>(ops));
  }
}

TEST(TraceExport, AxesAreThoseThatTellRanksApart) {
  using mesh::Axis;
  const Script script =
      Script{}.all_reduce({Axis::dp, Axis::cp, Axis::ep}).all_reduce(mesh::AxisSet{Axis::tp});
  const auto point = samples::point(
      {.dp = 2}, {script, script},
      {{trace(0, {0, 100}, {{10, 50}, {50, 60}}), trace(1, {0, 100}, {{30, 50}, {50, 60}})}});
  const std::vector<json> spans = of_kind(exported({point}).events, "X");
  ASSERT_EQ(spans.size(), 6U);
  EXPECT_EQ(spans[1].at("args").at("axis"), "dp");
  EXPECT_FALSE(spans[2].at("args").contains("axis"));
  // A rank that is alone in a group waits for nobody.
  EXPECT_THAT(waits(point), ElementsAre(0.02, std::nullopt, 0.0, std::nullopt));
}

TEST(TraceEvents, TimesAreExactToTheNanosecond) {
  EXPECT_EQ(traces::microseconds(units::Nanoseconds{0}), "0.000");
  EXPECT_EQ(traces::microseconds(units::Nanoseconds{1'234'567'890'123'456}), "1234567890123.456");
  EXPECT_EQ(traces::microseconds(units::Nanoseconds{-5}), "-0.005");
}

TEST(TraceEvents, TextThatIsNoUtf8StaysJson) {
  results::PointData point = two_stages();
  point.workload = "a\xff\n";
  const json name = of_kind(exported({point}).events, "M").at(0).at("args").at("name");
  EXPECT_THAT(name.get<std::string>(), StartsWith("a\ufffd\n tiny on 2"));
}

TEST(Messages, PairInOrderPerDirection) {
  const auto script0 = Script{}.send(1).compute().send(1).receive(1);
  const auto script1 = Script{}.receive(-1).receive(-1).send(-1);
  const auto point = samples::point({.pp = 2}, {script0, script1},
                                    {{trace(0, {0, 9}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}),
                                      trace(1, {0, 9}, {{0, 1}, {1, 2}, {2, 3}})}});
  breakdown::TraceOfRank traces{&point.traces[0].ranks[0], &point.traces[0].ranks[1]};
  // With two stages, one step forward is one step back: classes differ by their sign all the same.
  EXPECT_THAT(breakdown::messages(point.outline, traces),
              UnorderedElementsAre(
                  breakdown::Message{.sender = 0, .receiver = 1, .send = 0, .receive = 0},
                  breakdown::Message{.sender = 0, .receiver = 1, .send = 2, .receive = 1},
                  breakdown::Message{.sender = 1, .receiver = 0, .send = 2, .receive = 3}));
  traces[1] = nullptr;
  EXPECT_THAT(breakdown::messages(point.outline, traces), IsEmpty());
}

}  // namespace
}  // namespace isoscale::analysis::page
