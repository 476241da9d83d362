// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/page/timeline_spans.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis_test.hpp"

/// The tests check what a page shows of one point.
namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;

/// The lanes of a point without anything derived from it.
Json lanes_of(const results::PointData& data, const DetailLimits& limits = {}) {
  PointReport point;
  point.data = &data;
  return lanes({}, point, limits);
}

TEST(StepSeries, HasEveryStepWithItsSlowestRankAndItsKind) {
  results::PointData point = measured(0, {.dp = 2}, 1e-3);
  add_traced_steps(point, 1e-3, 1.5);
  const Json series = step_series(point, 1000);
  ASSERT_EQ(series["first"].size(), 26U);
  EXPECT_EQ(series["every"], 1);
  for (std::size_t step = 0; step < 26; ++step) {
    EXPECT_EQ(series["first"][step], step);
    const auto& of_rank = point.step_times[step];
    EXPECT_NEAR(series["time"][step].get<double>(), std::max(of_rank[0], of_rank[1]), 1e-8);
    const int kind = step < 2 ? 3 : step < 22 ? 0 : step == 22 ? 2 : 1;
    EXPECT_EQ(series["kind"][step], kind) << step;
  }
  ASSERT_EQ(series["quantiles"].size(), 101U);
  // The 20 measured steps lie at 1 ms * (1 + 0.001 k) for 20 of the k from -10 to 10.
  std::vector<double> measured;
  for (std::size_t step = 2; step < 22; ++step) measured.push_back(point.step_times[step].back());
  std::ranges::sort(measured);
  EXPECT_NEAR(series["quantiles"][0].get<double>(), measured.front(), 1e-8);
  EXPECT_NEAR(series["quantiles"][100].get<double>(), measured.back(), 1e-8);
  EXPECT_NEAR(series["quantiles"][50].get<double>(), (measured[9] + measured[10]) / 2, 1e-8);
}

TEST(StepSeries, ThinsOutWithoutLosingALargestOrMixingKinds) {
  results::PointData point = measured(0, {.dp = 2}, 1e-3);
  for (int block = 0; block < 500; ++block) {
    for (int i = 0; i < 9; ++i) {
      point.step_times.push_back({1e-3, 1e-3});
      point.traced.push_back(i >= 6 ? 1 : 0);
      point.dropped.push_back(i == 0 ? 1 : 0);
    }
  }
  point.step_times[774] = {1e-3, 0.5};  // one of the measured
  ASSERT_EQ(kind_of_step(point, 774), StepKind::measured);
  const Json series = step_series(point, 300);
  EXPECT_LE(series["first"].size(), 300U);
  EXPECT_GT(series["first"].size(), 75U);
  const std::size_t every = series["every"].get<std::size_t>();
  ASSERT_GT(every, 1U);
  const auto firsts = series["first"].get<std::vector<std::size_t>>();
  EXPECT_EQ(std::ranges::adjacent_find(firsts, std::greater_equal{}), firsts.end());
  std::vector<std::size_t> longest;
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    EXPECT_EQ(series["kind"][i], static_cast<int>(kind_of_step(point, firsts[i])));
    if (series["time"][i] == 0.5 && series["kind"][i] == 0) longest.push_back(firsts[i] / every);
  }
  EXPECT_THAT(longest, ElementsAre(774 / every));
}

TEST(StepSeries, HasNoTimeWhereARankHasNone) {
  results::PointData point = measured(0, {.dp = 2}, 1e-3);
  point.step_times[5][0] = std::numeric_limits<double>::quiet_NaN();
  const Json series = step_series(point, 1000);
  EXPECT_TRUE(series["time"][5].is_null());
  EXPECT_FALSE(series["time"][6].is_null());
  point.step_times.resize(1);
  EXPECT_TRUE(step_series(point, 1000)["quantiles"].is_null());
}

TEST(RankMap, SortsHostsByTheirNumbers) {
  std::vector<std::string> hosts{"node10", "node2", "a", "node1", "node02", "b3x10", "b3x9", ""};
  std::ranges::sort(hosts, render::before_naturally);
  EXPECT_THAT(hosts, ElementsAre("", "a", "b3x9", "b3x10", "node1", "node02", "node2", "node10"));
}

/// 24 ranks on 12 hosts, two each.
results::RunData twelve_hosts() {
  results::RunData run = launch("big", 12, 2);
  results::PointData& point = add(run, {.dp = 24}, 1e-3);
  for (auto& times : point.step_times) times.assign(24, 1e-3);
  point.step_times[7][5] = 1.25e-3;  // a measured step
  for (auto& times : point.step_times) times[9] = 1.1e-3;
  return run;
}

TEST(RankMap, HasARowPerRankByHostAndItsStepsAgainstTheMedian) {
  const OneRun one{twelve_hosts()};
  const Json map = rank_map(one.run.rank_facts, one.point(0), {});
  ASSERT_EQ(map["rank"].size(), 24U);
  ASSERT_EQ(map["hosts"].size(), 12U);
  EXPECT_EQ(map["hosts"][2], "node2");
  EXPECT_EQ(map["hosts"][10], "node10");
  for (std::size_t row = 0; row < 24; ++row) {
    EXPECT_EQ(map["rank"][row], row);
    EXPECT_EQ(map["host"][row], row / 2);
    EXPECT_NEAR(map["step"][row].get<double>(), row == 9 ? 1.1e-3 : 1e-3, 1e-9);
    EXPECT_TRUE(map["wait"][row].is_null());  // nothing was traced
  }
  const Json& cells = map["cells"];
  ASSERT_EQ(cells["first"].size(), 20U);
  EXPECT_EQ(cells["first"][5], 7);
  EXPECT_EQ(map["median"]["step"], 1e-3);
  EXPECT_EQ(cells["time"][5][5], 0.25);
  EXPECT_EQ(cells["time"][5][6], 0);
  EXPECT_EQ(cells["time"][9][6], 0.1);
}

TEST(RankMap, OfVeryManyRanksKeepsTheFirstAndTheSlowest) {
  const OneRun one{twelve_hosts()};
  PointReport point = one.point(0);
  for (int rank = 0; rank < 24; ++rank) {
    point.breakdown.ranks.push_back(rank);
    point.breakdown.of_rank.push_back({.compute = rank == 14 ? 2.0 : 1.0});
    point.breakdown.caused.of_rank.push_back(rank == 21 ? 2.0 : 0.0);
  }
  const Json map = rank_map(one.run.rank_facts, point, {.columns = 7, .rows = 8});
  const auto ranks = map["rank"].get<std::vector<int>>();
  ASSERT_EQ(ranks.size(), 8U);
  EXPECT_THAT(ranks, IsSupersetOf({0, 9, 14, 21}));
  EXPECT_TRUE(std::ranges::is_sorted(ranks));
  EXPECT_EQ(map["traced"], 24);
  EXPECT_EQ(map["median"]["step"], 1e-3) << "of all ranks, not of those that are shown";
  EXPECT_EQ(map["median"]["compute"], 1);
  EXPECT_EQ(map["cells"]["every"], 3);
  EXPECT_EQ(map["cells"]["steps"], 20);
  EXPECT_EQ(map["cells"]["first"].size(), 7U);
  const Json all = rank_map(one.run.rank_facts, point, {.columns = 7});
  EXPECT_EQ(all["cells"]["time"][5][1], 0.25) << "step 7 is the furthest from the median of three";
}

TEST(RankMap, HasWhatTracesTellInTheOrderOfTheRanksInTheWorld) {
  results::RunData run = two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  const OneRun one{std::move(run)};
  const Json map = rank_map(one.run.rank_facts, one.point(2), {});
  EXPECT_EQ(map["world_rank"], (Json{0, 1, 2, 3}));
  EXPECT_EQ(map["rank"], (Json{0, 2, 1, 3}));
  // Each rank computes 640 + 50 rank ns, by the hand-made trace: [0, 400 + 50 r] and [720, 960].
  for (std::size_t row = 0; row < 4; ++row) {
    const double rank = map["rank"][row];
    EXPECT_NEAR(map["compute"][row].get<double>(), (640 + 50 * rank) * 1e-9, 1e-15);
    EXPECT_NEAR(map["copies"][row].get<double>(), 20e-9, 1e-15);
    EXPECT_NEAR(map["wait"][row].get<double>(), (150 - 50 * rank) * 1e-9, 1e-15);
  }
  EXPECT_NEAR(map["caused_wait"][3].get<double>(), (150 + 100 + 50) * 1e-9, 1e-15);
}

results::DeviceSeries series(int rank, const char* quantity, const char* unit,
                             std::vector<double> values) {
  results::DeviceSeries made{.rank = rank,
                             .device = "gpu " + std::to_string(rank),
                             .quantity = quantity,
                             .unit = unit,
                             .value = std::move(values)};
  for (std::size_t i = 0; i < made.value.size(); ++i) {
    made.time.push_back(0.1 * static_cast<double>(i));
  }
  return made;
}

TEST(DeviceLines, KeepWhatIsLeastAndMost) {
  results::PointData point = measured(0, {.dp = 2}, 1e-3);
  std::vector<double> power(1000, 500), reasons(1000, 0);
  for (std::size_t i = 0; i < 1000; ++i) power[i] += 10.0 * static_cast<double>(i / 10 % 2);
  power[123] = 100;
  power[777] = 700;
  reasons[400] = 8;
  reasons[401] = 64;
  point.device_series = {series(0, "throttle_reasons", "1", reasons),
                         series(0, "power", "W", power),
                         series(0, "energy", "J", std::vector<double>(1000, 5)),
                         series(0, "sample_time", "s", std::vector<double>(1000, 1e-3)),
                         series(1, "sm_clock", "Hz", {1.5e9, 1.5e9})};
  const results::RunData run = launch("one", 2, 1);
  const Json lines = device_lines(run.rank_facts, point, {.samples = 100});
  ASSERT_EQ(lines.size(), 3U);
  expect_holds(lines[0],
               {{"quantity", "sm_clock"}, {"host", "node1"}, {"value", {1500000000, 1500000000}}});
  EXPECT_FALSE(lines[0].contains("low"));
  expect_holds(lines[1], {{"quantity", "power"}, {"averaged", 10}});
  ASSERT_EQ(lines[1]["value"].size(), 100U);
  EXPECT_EQ(lines[1]["low"][12], 100);
  EXPECT_EQ(lines[1]["high"][77], 700);
  EXPECT_EQ(lines[1]["value"][77], 529);
  EXPECT_NEAR(lines[1]["time"][1].get<double>(), 1.45, 1e-9);
  // A line that stays level needs no values in between.
  EXPECT_EQ(lines[2]["value"],
            (Json{"", "", "hardware slowdown, hardware thermal slowdown", "", ""}));
  EXPECT_NEAR(lines[2]["time"][2].get<double>(), 40.45, 1e-9);
}

TEST(DeviceLines, AndLanesNameTheRanksInTheWorld) {
  results::RunData run = launch("one", 4, 1);
  results::PointData point = two_curves().points[2];
  point.world_rank = {0, 2, 1, 3};
  const Json lanes = lanes_of(point)["lanes"];
  ASSERT_EQ(lanes.size(), 4U);
  expect_holds(lanes[1], {{"rank", 1}, {"world_rank", 2}, {"label", "rank 2"}});
  EXPECT_EQ(lanes[2]["world_rank"], 1);
  point.device_series = {series(1, "sm_clock", "Hz", {1.5e9, 1.5e9})};
  const Json lines = device_lines(run.rank_facts, point, {});
  ASSERT_EQ(lines.size(), 1U);
  expect_holds(lines[0], {{"rank", 1}, {"world_rank", 2}, {"host", "node2"}});
}

TEST(DeviceLines, AreOfTheDevicesThatDifferMost) {
  results::PointData point = measured(0, {.dp = 24}, 1e-3);
  for (int rank = 0; rank < 24; ++rank) {
    point.device_series.push_back(series(rank, "sm_clock", "Hz", {rank == 20 ? 1e9 : 2e9, 2e9}));
    point.device_series.push_back(series(rank, "temperature", "K", {rank == 22 ? 350. : 320.}));
  }
  const Json lines = device_lines({}, point, {});
  ASSERT_EQ(lines.size(), 32U);
  EXPECT_EQ(lines[0]["devices"], 24);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < 16; ++i) ranks.push_back(lines[i]["rank"].get<int>());
  EXPECT_THAT(ranks, IsSupersetOf({20, 22}));
  EXPECT_TRUE(std::ranges::is_sorted(ranks));
  EXPECT_EQ(count_device_lines(point, 16), 32U);
  EXPECT_EQ(count_device_lines(point, 100), 48U);
}

std::vector<int> column(const Json& object, const char* name) {
  return object[name].get<std::vector<int>>();
}

/// A point of one rank, with one traced step.
results::PointData alone(const Script& script, int length, const Spans& spans) {
  return samples::point({}, {script}, {{samples::trace(0, {0, length}, spans)}});
}

TEST(Lanes, ShowEachOpOfEachRankAndWhenNothingIsDone) {
  const results::RunData run = two_curves();
  const Json timeline = lanes_of(run.points[2]);
  ASSERT_EQ(timeline["lanes"].size(), 4U);
  expect_holds(timeline["lanes"][3], {{"label", "rank 3"},
                                      {"coordinates", {{"dp", 3}, {"tp", 0}, {"pp", 0}}},
                                      {"streams", {"compute", "second", "third"}}});
  EXPECT_EQ(timeline["lanes"][3]["coordinates"].size(), 3U);
  expect_holds(timeline, {{"length", 1e-6},
                          {"step_time", 1e-6},
                          {"ops", {"gemm", "all_reduce", "copy"}},
                          {"merged", 0},
                          {"left_out", 0}});
  std::vector<int> lane, start, length;  // by stream, then in time
  for (int rank = 0; rank < 4; ++rank) {
    const int late = 50 * rank;
    lane.insert(lane.end(), 4, rank);
    start.insert(start.end(), {0, 720, 400 + late, 960});
    length.insert(length.end(), {400 + late, 240, 320 - late, 20});
  }
  EXPECT_EQ(column(timeline["spans"], "lane"), lane);
  EXPECT_EQ(column(timeline["spans"], "start"), start);
  EXPECT_EQ(column(timeline["spans"], "length"), length);
  const Json& idle = timeline["idle"];
  EXPECT_THAT(column(idle, "kind"), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(column(idle, "start"), ElementsAre(400, 980, 450, 980, 500, 980, 550, 980));
  EXPECT_THAT(column(idle, "length"), ElementsAre(320, 20, 270, 20, 220, 20, 170, 20));
}

TEST(Lanes, OfAPipelineAreItsStagesOnOneClock) {
  const results::RunData run = two_curves();
  const Json timeline = lanes_of(run.points[4]);
  ASSERT_EQ(timeline["lanes"].size(), 2U);
  EXPECT_EQ(timeline["lanes"][1]["label"], "stage 1");
  EXPECT_EQ(timeline["length"], 92e-9);  // stage 1 begins 20 ns before stage 0, and ends before it
  EXPECT_EQ(timeline["step_time"], 72e-9);
  // The send and the receive of stage 0 follow each other at once, and are drawn as one.
  EXPECT_THAT(column(timeline["spans"], "start"), ElementsAre(20, 30, 72, 0, 32, 50, 70));
  EXPECT_THAT(column(timeline["spans"], "length"), ElementsAre(10, 42, 20, 32, 10, 20, 2));
  EXPECT_EQ(timeline["merged"], 1);
}

/// Seconds of a column of timeline["totals"].
double total(const Json& timeline, const char* name, std::size_t lane) {
  return timeline["totals"][name][lane].get<double>() * 1e-9;
}

TEST(Lanes, DivideEachStepAsTheBreakdownDoes) {
  const results::RunData run = two_curves();
  for (const std::size_t index : {1U, 2U, 4U}) {
    const results::PointData& data = run.points[index];
    PointReport point;
    point.data = &data;
    point.breakdown = breakdown::breakdown(data);
    const Json timeline = lanes({}, point, {});
    const auto& of_rank = point.breakdown.of_rank;
    ASSERT_EQ(timeline["lanes"].size(), of_rank.size());
    ASSERT_EQ(point.breakdown.steps, 1U);  // a mean over steps is this step's
    double wait = 0, transfer = 0;
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      const breakdown::Breakdown& of = of_rank[rank];
      EXPECT_NEAR(total(timeline, "step", rank), of.step, 1e-15);
      EXPECT_NEAR(total(timeline, "exposed", rank), of.transfer + of.wait + of.bubble, 1e-15);
      EXPECT_NEAR(total(timeline, "gap", rank), of.gap + of.other, 1e-15);
      transfer += of.transfer / static_cast<double>(of_rank.size());
      wait += of.wait / static_cast<double>(of_rank.size());
    }
    EXPECT_NEAR(timeline["breakdown"]["transfer"].get<double>(), transfer, 1e-15);
    EXPECT_NEAR(timeline["breakdown"]["wait"].get<double>(), wait, 1e-15);
  }
  EXPECT_TRUE(lanes_of(run.points[2])["breakdown"].is_null());
}

TEST(Lanes, OfAHybridAreStagesFirstThenRanksThatStandOut) {
  const results::PointData data =
      samples::point({.tp = 2, .dp = 8, .pp = 2}, std::vector(32, Script{}.compute()),
                     samples::step({0, 100}, std::vector<Spans>(32, {{0, 90}})));
  PointReport point;
  point.data = &data;
  for (int rank = 0; rank < 32; ++rank) {
    point.breakdown.ranks.push_back(rank);
    point.breakdown.of_rank.push_back({.compute = rank == 13 ? 2.0 : 1.0});
    point.breakdown.caused.of_rank.push_back(rank == 21 ? 2.0 : 1.0);
  }
  const auto step = typical_traced_step(data);
  const std::vector<int> ranks = lane_ranks(point, step.value(), {});
  ASSERT_EQ(ranks.size(), 8U);
  EXPECT_EQ(ranks[0], 0);
  EXPECT_EQ(ranks[1], 16);
  EXPECT_THAT(ranks, IsSupersetOf({13, 21, 31}));
  EXPECT_EQ(lanes_of(data)["left_out"], 24);
}

TEST(Lanes, AreOfTheStepInTheMiddle) {
  results::PointData data = samples::point({}, {Script{}.compute()}, {});
  data.traces.clear();
  for (const int length : {100, 300, 200, 5000}) {
    timeline::StepTrace trace = samples::trace(0, {0, length}, {{0, length - 10}});
    trace.step = static_cast<std::uint32_t>(data.traces.size());
    data.traces.push_back({.ranks = {trace}});
  }
  data.dropped = {0, 0, 0, 1};  // the longest counts for nothing
  EXPECT_EQ(lanes_of(data)["step"], 2);
}

TEST(Lanes, AreNoneWithoutATraceOfUse) {
  EXPECT_TRUE(lanes_of(measured(0, {.dp = 2}, 1)).is_null());
  EXPECT_TRUE(lanes_of(alone(Script{}.compute(), -100, {{0, 10}})).is_null());
}

TEST(Lanes, PutSuchRanksAtTheBeginThatHaveNoClock) {
  const results::PointData data = samples::point(
      {.dp = 2}, {Script{}.compute(), Script{}.compute()},
      {{samples::trace(0, {1000, 1100}, {{1010, 1020}}),
        samples::trace(1, {900'000'000, 900'000'100}, {{900'000'050, 900'000'060}})}});
  EXPECT_EQ(lanes_of(data)["length"], 1e-7);
  EXPECT_THAT(column(lanes_of(data)["spans"], "start"), ElementsAre(10, 50));
}

TEST(Lanes, KnowWhatIsExposedHoweverLittleIsDrawn) {
  // 900 times 8 ns of computing, 3 ns of communication and 1 ns of nothing, on one stream.
  constexpr int rounds = 900;
  Script script;
  Spans spans;
  for (int i = 0; i < rounds; ++i) {
    script.compute(0).all_reduce(mesh::Axis::tp, 0);
    spans.emplace_back(12 * i, 12 * i + 8);
    spans.emplace_back(12 * i + 8, 12 * i + 11);
  }
  const results::PointData data = alone(script, 12 * rounds, spans);
  for (const std::size_t most : {2000U, 50U, 1U}) {
    const Json totals = lanes_of(data, {.spans = most})["totals"];
    expect_holds(
        totals,
        {{"step", Json{12 * rounds}}, {"exposed", Json{3 * rounds}}, {"gap", Json{rounds}}});
  }
  // Boxes that hold both say so: they are no computation.
  EXPECT_EQ(lanes_of(data, {.spans = 50})["ops"], Json{"mixed"});
}

TEST(Lanes, MergeOnlyWhatIsAlike) {
  const auto span = [](int start, program::OpKind kind, int microbatch, int layer) {
    return LaneSpan{
        .op = static_cast<std::uint8_t>(kind),
        .place = {.phase = program::Phase::forward, .layer = layer, .microbatch = microbatch},
        .start = Nanoseconds{start},
        .end = Nanoseconds{start + 10}};
  };
  using program::OpKind;
  const std::vector spans{span(0, OpKind::gemm, 0, 1),   span(11, OpKind::gemm, 0, 2),
                          span(22, OpKind::cast, 0, 2),  span(33, OpKind::cast, 1, 2),
                          span(143, OpKind::cast, 1, 2), span(154, OpKind::all_reduce, 1, 2)};
  const auto merged = [&](Alike alike, int longest) {
    return page::merged(spans, alike, Nanoseconds{1}, Nanoseconds{longest});
  };
  EXPECT_THAT(mapped(merged(Alike::same_kind, 1000), &LaneSpan::merged),
              ElementsAre(2, 1, 1, 1, 1));
  const std::vector<LaneSpan> boxes = merged(Alike::any_kind, 1000);
  EXPECT_THAT(mapped(boxes, &LaneSpan::merged), ElementsAre(3, 1, 2));
  EXPECT_EQ(boxes.front().place.layer, -1);
  EXPECT_EQ(boxes.front().place.microbatch, 0);
  EXPECT_EQ(boxes.front().op, static_cast<std::uint8_t>(LaneOp::compute));
  EXPECT_EQ(boxes.front().end.value(), 32);
  EXPECT_EQ(boxes.back().op, static_cast<std::uint8_t>(LaneOp::mixed));
  // 21 ns are enough: the third begins anew.
  EXPECT_EQ(merged(Alike::any_kind, 21).front().merged, 2U);
}

TEST(Lanes, SampleTheLongestOfEachStretchWhereMergingIsNotEnough) {
  // 1000 microbatches, which are never merged, with one long op in each ten.
  Script script;
  Spans spans;
  for (int i = 0; i < 1000; ++i) {
    script.compute();
    spans.emplace_back(100 * i, 100 * i + (i % 10 == 3 ? 80 : 50));
  }
  results::PointData data = alone(script, 100'000, spans);
  std::int32_t microbatch = 0;
  for (auto& op : data.outline.outlines.front().ops) op.place.microbatch = microbatch++;
  const Json timeline = lanes_of(data, {.spans = 100});
  ASSERT_EQ(timeline["spans"]["length"].size(), 100U);
  for (const Json& length : timeline["spans"]["length"]) EXPECT_EQ(length, 80);
  EXPECT_EQ(timeline["spans"]["start"][99], 99'300);
  EXPECT_EQ(timeline["spans_left_out"], 900);
}

}  // namespace
}  // namespace isoscale::analysis::page
