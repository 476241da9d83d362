// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/traces/trace_export.hpp"

#include "analysis/breakdown/traced_steps.hpp"
#include "report_samples.hpp"
#include "reported.hpp"

/// Hand-made traces as a viewer of timelines gets them.
namespace isoscale::analysis {
namespace {

using samples::Script;
using samples::trace;

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

TEST(TraceExport, OfSeveralLaunchesSaysWhoseATimelineIs) {
  std::vector<results::RunData> runs(2);
  runs[0].points = runs[1].points = {two_stages()};
  runs[1].points.push_back(two_stages());
  runs[1].points[1].traces.clear();
  const auto [result, events] = exported(runs);
  EXPECT_THAT(result.left_out, ElementsAre(HasSubstr("launch 2, point 0")));
  std::set<std::string> launches;
  for (const json& event : of_kind(events, "M")) {
    if (event.at("name") != "process_name") continue;
    launches.insert(event.at("args").at("name").get<std::string>().substr(0, 9));
  }
  EXPECT_THAT(launches, ElementsAre("launch 1,", "launch 2,"));
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
  // Who is alone in a group waits for nobody.
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
}  // namespace isoscale::analysis
