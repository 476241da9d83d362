// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "findings_samples.hpp"

namespace isoscale::analysis {
namespace {

/// Four ranks that compute and reduce; rank r begins its all-reduce at arrivals[r] of 1000.
results::PointData four_ranks(const std::vector<int>& arrivals) {
  std::vector<samples::Spans> spans;
  for (const int at : arrivals) spans.push_back({{0, at}, {at, 1000}});
  return traced_point({.dp = 4}, Script{}.compute().all_reduce(Axis::dp), spans);
}

/// A point of dp=2, pp=2 after four traced steps in which the first of the two dp groups takes
/// `factor` times as long for its all-reduce.
results::PointData two_groups(double factor) {
  const int slow = static_cast<int>(500 + 200 * factor);
  results::PointData point =
      traced_point({.dp = 2, .pp = 2}, Script{}.compute().all_reduce(Axis::dp),
                   {{{0, 500}, {500, slow}},
                    {{0, 500}, {500, slow}},
                    {{0, 500}, {500, 700}},
                    {{0, 500}, {500, 700}}});
  for (timeline::StepTrace& rank : point.traces.front().ranks) rank.end = rank.spans.back().end;
  point.traces.resize(4, point.traces.front());
  auto number = static_cast<std::uint32_t>(point.step_times.size() - 4);
  for (timeline::Timeline& step : point.traces) {
    for (timeline::StepTrace& rank : step.ranks) rank.step = number;
    ++number;
  }
  point.dropped.assign(point.dropped.size(), 0);
  return point;
}

TEST(SlowRank, IsFoundWithItsHost) {
  results::PointData point = four_ranks({800, 800, 800, 800});
  samples::add_gemm_sums(point, 2, 1.25);
  const auto found = finding(point, "slow-rank");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("rank 2 (node17)"));
  const double factor = samples::evidence(*found, "GEMM time");
  EXPECT_NEAR(factor, 1.25, 0.01);
  // It computes for 80% of its step, of which 1 - 1/1.25 could be saved.
  EXPECT_NEAR(found->severity.value(), 0.8 * (1 - 1 / factor), 1e-9);
  point.world_rank = {0, 2, 1, 3};
  expect_finding(point, "slow-rank", {.sentence = HasSubstr("rank 1 (")});
  point.labels = {"oversubscribed"};
  EXPECT_TRUE(findings_of(point).empty());
  point.labels.clear();
  point.op_sums.clear();
  samples::add_gemm_sums(point, 2, 1.0);
  EXPECT_FALSE(finding(point, "slow-rank"));
}

TEST(SlowLink, IsFoundByTheTimeOfAByte) {
  // Transfer is 400 of 900 and 200 of 700 ns; half of its share of the mean step could be saved.
  expect_finding(two_groups(2), "slow-link",
                 {.severity = about((300.0 / 800) / 2, 1e-9),
                  .sentence = HasSubstr("ranks 0, 1 takes 2.00 times")});
  EXPECT_FALSE(finding(two_groups(1), "slow-link"));
}

TEST(Imbalance, IsFoundOfWaitingThatIsNotDivided) {
  // One traced step: ranks wait 600, 600, 600 and 0 of 1000.
  results::PointData point = four_ranks({200, 200, 200, 800});
  expect_finding(point, "imbalance",
                 {.severity = about(0.45), .sentence = HasSubstr("rank 3 (node17)")});
  EXPECT_FALSE(finding(four_ranks({780, 780, 780, 800}), "imbalance"));
  // It is not said of a rank that is slow.
  samples::add_gemm_sums(point, 3, 4);
  EXPECT_TRUE(finding(point, "slow-rank"));
  EXPECT_FALSE(finding(point, "imbalance"));
}

TEST(Noise, IsFoundFromFivePercentOn) {
  const results::RunData run = run_of(four_ranks({800, 800, 800, 800}));
  for (const auto& [size, found] : {std::pair{0.07, true}, {0.04, false}}) {
    RunReport report = make_report(run, "a.h5", {});
    report.curves.front().points.front().causes.named = {
        {.kind = "noise", .ranks = {}, .size = size, .text = "noise"}};
    const auto all = advice::findings_of(report);
    const advice::Finding* const noise = find(all, "noise");
    ASSERT_EQ(noise != nullptr, found) << size;
    if (found) {
      EXPECT_DOUBLE_EQ(noise->severity.value(), size);
    }
  }
}

/// 20 steps that lie up to `spread` to either side of 10 ms, in an order that does not correlate.
results::PointData scattered(double spread) {
  results::PointData point = samples::measured(0, {.dp = 2}, 10e-3);
  for (int i = 0; i < 22; ++i) {
    const double off = spread * ((i * 8) % 21 - 10) / 10;
    point.step_times[static_cast<std::size_t>(i)] = {1e-3, 10e-3 * (1 + off)};
  }
  return point;
}

TEST(WideInterval, IsFoundOfScatteredSteps) {
  expect_finding(scattered(0.3), "wide-interval",
                 {.severity = Eq(std::nullopt),
                  .next_step = HasSubstr("--max-time"),
                  .evidence = {{"half width of the 95% interval", testing::Gt(0.05)}}});
  EXPECT_FALSE(finding(scattered(0.01), "wide-interval"));
}

TEST(FewMicrobatches, AreFoundWithTheNumberThatIsEnough) {
  // 27 leave 3/30.
  expect_finding(pipeline(4, 8), "few-microbatches",
                 {.severity = about(3.0 / 11),
                  .sentence = HasSubstr("27.3%"),
                  .next_step = HasSubstr("microbatches=27 leaves 10.0%")});
  for (int stages = 2; stages <= 64; ++stages) {
    const int enough = 9 * (stages - 1);
    EXPECT_FALSE(finding(pipeline(stages, enough), "few-microbatches")) << stages;
    expect_finding(pipeline(stages, enough - 1), "few-microbatches",
                   {.evidence = {{"enough", DoubleEq(enough)}}});
  }
  // By the formula of zb-h1: (p-1)(F+B-W)/(3m) = 3/24 of the work, 1/9 of the step; 9 microbatches
  // leave 3/30.
  expect_finding(pipeline(4, 8, "zb-h1"), "few-microbatches",
                 {.severity = about(1.0 / 9), .evidence = {{"enough", DoubleEq(9)}}});
  // Two virtual stages halve the bubble: 3/16 of the work; 14 are enough, in turns of 4 they
  // are 16.
  auto turns = pipeline(4, 8, "interleaved");
  turns.options["v"] = "2";
  expect_finding(turns, "few-microbatches",
                 {.severity = about(3.0 / 19), .evidence = {{"enough", DoubleEq(16)}}});
  EXPECT_TRUE(finding(pipeline(4, 8, "gpipe"), "few-microbatches"));
  EXPECT_FALSE(finding(pipeline(4, 8, "dualpipe"), "few-microbatches")) << "not known";
  EXPECT_FALSE(finding(pipeline(1, 1), "few-microbatches")) << "one stage";
}

/// Two stages and four messages, then one back; the first computes for `first` before each and
/// after the last, the second for `second` after each; nanoseconds, and a network that takes none.
results::PointData two_stages(int first, int second) {
  constexpr int messages = 4;
  Script front, back;
  samples::Spans of_front, of_back;
  int sent = 0, done = 0;  // when the front had sent the last message, the back computed it
  for (int i = 0; i < messages; ++i) {
    front.compute().send(1);
    back.receive(-1).compute();
    const int ready = sent + first, met = std::max(ready, done);
    of_front.insert(of_front.end(), {{sent, ready}, {ready, met}});
    of_back.insert(of_back.end(), {{done, met}, {met, met + second}});
    sent = met;
    done = met + second;
  }
  front.receive(1).compute();
  back.send(-1);
  of_front.insert(of_front.end(), {{sent, done}, {done, done + first}});
  of_back.emplace_back(done, done);
  results::PointData point = pipeline(2, 9);
  samples::set_trace(point, samples::point({.pp = 2}, {front, back},
                                           {{samples::trace(0, {0, done + first}, of_front),
                                             samples::trace(1, {0, done}, of_back)}}));
  for (program::Outline& outline : point.outline.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      if (op.kind == program::OpKind::gemm) op.flop = 1e3;
    }
  }
  samples::add_traced_steps(point, 80e-3, 1.0);
  return point;
}

TEST(BubbleBeyondSchedule, IsFoundOfUnequalStages) {
  EXPECT_FALSE(finding(two_stages(100, 100), "bubble-beyond-schedule"));
  const results::PointData unequal = two_stages(50, 200);
  const breakdown::BreakdownResult parts = breakdown::breakdown(unequal);
  const auto found = finding(unequal, "bubble-beyond-schedule");
  ASSERT_TRUE(found) << parts.missing;
  ASSERT_TRUE(parts.mean && parts.schedule_bubble);
  EXPECT_GT(found->severity.value(), 0.1);
  const double excess = (parts.mean->bubble - *parts.schedule_bubble) / parts.mean->step;
  EXPECT_NEAR(found->severity.value(), excess, 1e-12);
}

}  // namespace
}  // namespace isoscale::analysis
