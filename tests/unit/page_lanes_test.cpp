// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include "analysis/page/lane_spans.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;
using samples::Script;
using samples::Spans;
using units::Nanoseconds;

/// The lanes of a point without anything derived from it.
Json lanes_of(const results::PointData& data, const page::DetailLimits& limits = {}) {
  PointReport point;
  point.data = &data;
  return lanes({}, point, limits);
}

std::vector<int> column(const Json& object, const char* name) {
  return object[name].get<std::vector<int>>();
}

/// A point of one rank, with one traced step.
results::PointData alone(const Script& script, int length, const Spans& spans) {
  return samples::point({}, {script}, {{samples::trace(0, {0, length}, spans)}});
}

TEST(Lanes, ShowEachOpOfEachRankAndWhenNothingIsDone) {
  const results::RunData run = samples::two_curves();
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
  const results::RunData run = samples::two_curves();
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
  const results::RunData run = samples::two_curves();
  for (const std::size_t index : {1U, 2U, 4U}) {
    const results::PointData& data = run.points[index];
    PointReport point;
    point.data = &data;
    point.breakdown = breakdown::breakdown(data);
    const Json timeline = page::lanes({}, point, {});
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
  const auto step = page::typical_traced_step(data);
  const std::vector<int> ranks = page::lane_ranks(point, step.value(), {});
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
  EXPECT_TRUE(lanes_of(samples::measured(0, {.dp = 2}, 1)).is_null());
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

TEST(Lanes, PutNeighboursTogetherAndKeepTheirTime) {
  // Ops of 8 and 12 ns after each other on one stream, 2 ns between them.
  constexpr int ops = 3000;
  Script script;
  Spans ran;
  for (int i = 0; i < ops; ++i) {
    script.op(i % 2 == 0 ? program::OpKind::gemm : program::OpKind::add);
    const int begin = 12 * i - i % 2 * 2;
    ran.emplace_back(begin, begin + (i % 2 == 0 ? 8 : 12));
  }
  const Json timeline = lanes_of(alone(script, 12 * ops, ran), {.spans = 100});
  const Json& spans = timeline["spans"];
  EXPECT_LE(spans["start"].size(), 100U);
  EXPECT_GE(spans["start"].size(), 1U);
  std::int64_t length = 0;
  for (const Json& of : spans["length"]) length += of.get<std::int64_t>();
  EXPECT_GE(length, ops * 10) << "the boxes are as long as their ops";
  EXPECT_LE(length, ops * 12) << "and hold no more than the gaps between them";
  EXPECT_EQ(timeline["merged"].get<std::size_t>() + spans["length"].size(), ops);
  EXPECT_EQ(timeline["spans_left_out"], 0);
  EXPECT_EQ(timeline["ops"], Json{"compute"});
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
    return page::LaneSpan{
        .op = static_cast<std::uint8_t>(kind),
        .place = {.phase = program::Phase::forward, .layer = layer, .microbatch = microbatch},
        .start = Nanoseconds{start},
        .end = Nanoseconds{start + 10}};
  };
  using program::OpKind;
  const std::vector spans{span(0, OpKind::gemm, 0, 1),   span(11, OpKind::gemm, 0, 2),
                          span(22, OpKind::cast, 0, 2),  span(33, OpKind::cast, 1, 2),
                          span(143, OpKind::cast, 1, 2), span(154, OpKind::all_reduce, 1, 2)};
  const auto merged = [&](page::Alike alike, int longest) {
    return page::merged(spans, alike, Nanoseconds{1}, Nanoseconds{longest});
  };
  EXPECT_THAT(mapped(merged(page::Alike::same_kind, 1000), &page::LaneSpan::merged),
              ElementsAre(2, 1, 1, 1, 1));
  const std::vector<page::LaneSpan> boxes = merged(page::Alike::any_kind, 1000);
  EXPECT_THAT(mapped(boxes, &page::LaneSpan::merged), ElementsAre(3, 1, 2));
  EXPECT_EQ(boxes.front().place.layer, -1);
  EXPECT_EQ(boxes.front().place.microbatch, 0);
  EXPECT_EQ(boxes.front().op, static_cast<std::uint8_t>(page::LaneOp::compute));
  EXPECT_EQ(boxes.front().end.value(), 32);
  EXPECT_EQ(boxes.back().op, static_cast<std::uint8_t>(page::LaneOp::mixed));
  // 21 ns are enough: the third begins anew.
  EXPECT_EQ(merged(page::Alike::any_kind, 21).front().merged, 2U);
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
}  // namespace isoscale::analysis
