// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/advice/rules.hpp"
#include "findings_samples.hpp"
#include "request_text.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::analysis::advice {
namespace {

using program::OpKind;
using samples::findings_of;

/// A GEMM and an all-reduce one after the other on one stream.
results::PointData one_stream(int computed) {
  return traced_point({.dp = 2}, Script{}.compute().all_reduce(Axis::dp),
                      {{{0, computed}, {computed, 1000}}});
}

/// Two GEMMs, and an all-reduce on a stream of its own, which begins when the first has ended.
results::PointData two_streams(int begin, int end, int resume) {
  const Script script = Script{}.compute().all_reduce(Axis::dp, 1).after(0, 1).compute();
  return traced_point({.dp = 2}, script, {{{0, begin}, {begin, end}, {resume, 1000}}});
}

/// `count` buckets of `bytes` after one GEMM, on a stream of their own; they take 30% of the step.
results::PointData buckets(int count, double bytes) {
  Script script;
  script.compute();
  Spans spans{{0, 700}};
  for (int i = 0; i < count; ++i) {
    script.all_reduce(Axis::dp, 1).after(0, 1);
    spans.emplace_back(700 + 300 * i / count, 700 + 300 * (i + 1) / count);
  }
  results::PointData point = traced_point({.dp = 2}, script, {spans});
  for (program::OutlineOp& op : point.outline.outlines.front().ops) {
    if (op.kind != OpKind::all_reduce) continue;
    op.bytes = static_cast<std::uint64_t>(bytes);
    op.place.phase = program::Phase::gradient_reduction;
  }
  point.options["bucket"] = "25MiB";
  return point;
}

/// 20 us and 10 GB/s: half of a call is latency at 200 kB.
results::RunData calibrated(results::PointData point) {
  results::RunData run = run_of(std::move(point));
  run.calibration = {.curves = {{.op = "all_reduce",
                                 .dtype = "f32",
                                 .link_class = "one node",
                                 .implementation = "library",
                                 .members = 2,
                                 .nodes = 1,
                                 .latency = results::Fitted{.value = 20e-6},
                                 .bandwidth = results::Fitted{.value = 10e9}}}};
  return run;
}

TEST(CommunicationRatio, IsFoundAboveAFifthOfTheStepThatNothingHides) {
  expect_finding(one_stream(650), "communication-ratio",
                 {.severity = about(0.35),
                  .sentence = HasSubstr("35.0%"),
                  .evidence = {{"exposed transfer", DoubleEq(0.35)}}});
  EXPECT_FALSE(finding(one_stream(810), "communication-ratio"));
  EXPECT_FALSE(finding(two_streams(300, 900, 300), "communication-ratio")) << "it is hidden";
  // If most of it is waiting, the causes are elsewhere.
  expect_finding(traced_point({.dp = 2}, Script{}.compute().all_reduce(Axis::dp),
                              {{{0, 300}, {300, 1000}}, {{0, 900}, {900, 1000}}}),
                 "communication-ratio",
                 {.next_step = HasSubstr("late ranks"),
                  .evidence = {{"waiting for late partners", DoubleEq(0.3)}}});
}

/// All-reduces along `axis` are exposed; the advice has all of these parts and none of those.
struct Advice {
  Axis axis;
  std::string options;  ///< those that the run file has, "a=b c=d"
  std::vector<const char*> has, lacks = {};
  const char* workload = "hybrid";
};

TEST(CommunicationRatio, AdvisesWhatTheAxisAndTheOptionsLeaveOpen) {
  const char* const usual = "microbatch=2 zero=1";
  const std::string tp = "sequence_parallel=off ring=off chunks=1 tp_output=reduce";
  for (const Advice& at : std::vector<Advice>{
           {Axis::dp, usual, {"--set microbatches"}},
           {Axis::tp, usual, {"less tp", "more dp: --mesh"}, {"microbatches"}},
           {Axis::cp, usual, {"--mesh"}, {"microbatches"}},
           {Axis::ep, "microbatch=2 zero=1 experts=8", {"--mesh"}, {"microbatches"}},
           {Axis::ep, "microbatch=2 zero=3", {"zero=1"}, {"more microbatches"}},
           {Axis::pp, usual, {"--mesh"}, {"microbatches"}},
           {Axis::dp, "batch=4", {"--set batch"}, {}, "tiles"},
           {Axis::cp, "batch=4 overlap=off", {"overlap=on", "--set image"}, {}, "tiles"},
           // The advice names what the strategy over replicas lacks. ZeRO 2 and 3 send for each
           // microbatch, so that more microbatches send more bytes.
           {Axis::dp, "microbatch=2 overlap=off", {"overlap=on", "microbatches"}},
           {Axis::dp, "microbatch=2 strategy=funnel", {"strategy=ddp"}},
           {Axis::dp, "microbatch=2 zero=2", {"zero=1"}, {"more microbatches"}},
           {Axis::dp, "microbatch=2 zero=3", {"zero=1"}, {"more microbatches"}},
           // Fewer bytes from stage to stage.
           {Axis::pp, "schedule=interleaved", {"--set v"}},
           {Axis::pp, "schedule=1f1b handover=whole", {"fewer stages"}, {"scattered", "--set"}},
           // Parts that hide under GEMMs.
           {Axis::tp, tp, {"sequence_parallel=on", "ring=on", "chunks=4"}},
           {Axis::tp,
            "sequence_parallel=on ring=off chunks=1 tp_output=reduce",
            {"ring=on", "chunks=4"},
            {"sequence_parallel"}},
           {Axis::tp, tp + " async_reduce=off", {"async_reduce=on", "ring=on", "--mesh"}},
           {Axis::tp,
            "sequence_parallel=on ring=off chunks=1 tp_output=reduce async_reduce=off",
            {"ring=on"},
            {"async_reduce"}},
           {Axis::tp, tp + " chunks=4", {"--mesh"}, {"--set"}},
           {Axis::tp, tp + " ring=on", {"--mesh"}, {"--set"}},
           {Axis::tp, tp + " experts=8", {"--mesh"}, {"--set"}},
           {Axis::tp, tp + " tp_output=gather", {"--set tp_output=reduce"}}}) {
    mesh::Shape shape;
    shape[at.axis] = 2;
    results::PointData point =
        traced_point(shape, Script{}.compute().all_reduce(at.axis), {{{0, 500}, {500, 1000}}});
    point.workload = at.workload;
    const workloads::Options options = workloads::options_of(at.options);
    point.options = {options.begin(), options.end()};
    const std::string text = finding(std::move(point), "communication-ratio").value().next_step;
    SCOPED_TRACE(std::string{mesh::name(at.axis)} + ", " + at.options + ": " + text);
    for (const char* const part : at.has) EXPECT_THAT(text, HasSubstr(part));
    for (const char* const part : at.lacks) EXPECT_THAT(text, Not(HasSubstr(part)));
  }
}

/// The advice along an axis of a point with these options, whose tp, cp and ep reach so far.
std::string advice_along(Axis axis, const mesh::Shape& shape,
                         const std::map<std::string, std::string>& options, mesh::Reach reach) {
  results::PointData data = measured(0, shape, 1e-6);
  data.options = options;
  PointReport point;
  point.data = &data;
  point.nodes.emplace();
  for (const Axis each : {Axis::tp, Axis::cp, Axis::ep}) point.nodes->axes[each] = reach;
  return advice::advice_along(point, axis);
}

/// zb-h1 computes weight gradients later, where they cannot hide the sums of input gradients.
TEST(CommunicationRatio, AdvisesAsyncReduceOnlyWhereTheScheduleLetsItHide) {
  const auto advice = [](int pp) {
    return advice_along(Axis::tp, {.tp = 2, .pp = pp},
                        {{"async_reduce", "off"}, {"schedule", "zb-h1"}}, mesh::Reach::alone);
  };
  EXPECT_THAT(advice(1), HasSubstr("async_reduce=on"));
  EXPECT_THAT(advice(2), Not(HasSubstr("async_reduce=on")));
}

TEST(CommunicationRatio, KeepsGroupsInsideANodeWhereTheyLeaveIt) {
  using enum mesh::Reach;
  const auto advice = [](Axis axis, mesh::Reach reach) {
    return advice_along(axis, {.tp = 2, .pp = 2}, {{"handover", "whole"}}, reach);
  };
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep}) {
    EXPECT_THAT(advice(axis, inter_node), HasSubstr("inside a node")) << mesh::name(axis);
    EXPECT_THAT(advice(axis, intra_node), Not(HasSubstr("inside a node"))) << mesh::name(axis);
  }
  for (const mesh::Reach reach : {inter_node, intra_node}) {
    EXPECT_THAT(advice(Axis::pp, reach), HasSubstr("handover=scattered"));
  }
}

TEST(MissingOverlap, IsFoundWhereAStreamOfItsOwnHidesNothing) {
  results::PointData point = two_streams(600, 900, 900);
  expect_finding(point, "missing-overlap",
                 {.severity = about(0.3), .next_step = HasSubstr("--trace")});
  // The setting that keeps the issue order is to blame where it is set.
  results::RunData run = run_of(point);
  run.environment = {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}};
  expect_finding(run, "missing-overlap", {.next_step = HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS=1")});
  point.folded = true;
  point.folded_reason = "fewer than two cores";
  expect_finding(point, "missing-overlap",
                 {.sentence = HasSubstr("as one"), .next_step = HasSubstr("two cores")});
  // The rule also finds collectives of groups that vary along several axes.
  point.outline.outlines[0].ops[1].axes = {Axis::cp, Axis::ep, Axis::dp};
  EXPECT_TRUE(finding(std::move(point), "missing-overlap"));
  EXPECT_FALSE(finding(two_streams(300, 900, 600), "missing-overlap")) << "half is hidden";
  EXPECT_FALSE(finding(one_stream(600), "missing-overlap")) << "no overlap was asked for";
}

TEST(SmallBuckets, AreFoundWhereACallIsMostlyLatency) {
  // 50 kB take 5 us beside 20 us of latency: 80% of 30% of the step. The advice is four times the
  // 200 kB of half latency, in whole KiB.
  expect_finding(calibrated(buckets(6, 50e3)), "small-buckets",
                 {.severity = about(0.8 * 0.3),
                  .next_step = HasSubstr("bucket=782KiB"),
                  .evidence = {{"buckets", DoubleEq(6)}}});
  results::RunData mixed = calibrated(buckets(6, 250e3));
  auto& other = mixed.calibration->curves.emplace_back(mixed.calibration->curves.front());
  other.dtype = "i8";
  other.latency->value *= 100;
  EXPECT_FALSE(finding(mixed, "small-buckets"));
  std::swap(mixed.calibration->curves.front(), mixed.calibration->curves.back());
  for (results::PointData& point : mixed.points) point.dtype = "tf32";
  EXPECT_FALSE(finding(mixed, "small-buckets")) << "tf32 sends f32";
  EXPECT_FALSE(finding(calibrated(buckets(3, 50e3)), "small-buckets"));
  // Without a calibration they are guessed, on GPUs alone.
  results::RunData run = run_of(buckets(6, 50e3));
  EXPECT_FALSE(finding(run, "small-buckets"));
  run.device = "cuda";
  expect_finding(run, "small-buckets",
                 {.severity = Eq(std::nullopt), .sentence = HasSubstr("may be bound")});
  run.points[0] = buckets(6, 2 * mib);
  EXPECT_FALSE(finding(run, "small-buckets"));
}

TEST(SingleBucket, IsFoundAndStandsForTheMissingOverlap) {
  results::PointData point = buckets(1, 20 * mib);
  expect_finding(point, "single-bucket",
                 {.severity = about(0.75 * 0.3), .next_step = HasSubstr("bucket=5MiB")});
  EXPECT_FALSE(finding(point, "missing-overlap"));
  EXPECT_FALSE(finding(buckets(2, 20 * mib), "single-bucket"));
  EXPECT_FALSE(finding(buckets(1, 2 * mib), "single-bucket"));
  point.options["overlap"] = "off";
  EXPECT_FALSE(finding(std::move(point), "single-bucket"));
  // Quarters of 2 MiB are 524 kB, more than the 200 kB of half latency; of 700 kB they are less.
  EXPECT_TRUE(finding(calibrated(buckets(1, 2 * mib)), "single-bucket"));
  EXPECT_FALSE(finding(calibrated(buckets(1, 700e3)), "single-bucket"));
}

/// Four ranks that compute and reduce; rank r begins its all-reduce at arrivals[r] of 1000.
results::PointData four_ranks(const std::vector<int>& arrivals) {
  std::vector<Spans> spans;
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
  add_gemm_sums(point, 2, 1.25);
  const auto found = finding(point, "slow-rank");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("rank 2 (node17)"));
  const double factor = evidence(*found, "GEMM time");
  EXPECT_NEAR(factor, 1.25, 0.01);
  // It computes for 80% of its step, of which 1 - 1/1.25 could be saved.
  EXPECT_NEAR(found->severity.value(), 0.8 * (1 - 1 / factor), 1e-9);
  point.world_rank = {0, 2, 1, 3};
  expect_finding(point, "slow-rank", {.sentence = HasSubstr("rank 1 (")});
  point.labels = {"oversubscribed"};
  EXPECT_TRUE(findings_of(point).empty());
  point.labels.clear();
  point.op_sums.clear();
  add_gemm_sums(point, 2, 1.0);
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
  add_gemm_sums(point, 3, 4);
  EXPECT_TRUE(finding(point, "slow-rank"));
  EXPECT_FALSE(finding(point, "imbalance"));
}

TEST(Noise, IsFoundFromFivePercentOn) {
  const results::RunData run = run_of(four_ranks({800, 800, 800, 800}));
  for (const auto& [size, found] : {std::pair{0.07, true}, {0.04, false}}) {
    RunReport report = make_report(run, "a.h5", {});
    report.curves.front().points.front().causes.named = {
        {.kind = "noise", .ranks = {}, .size = size, .text = "noise"}};
    const auto all = findings_of(report);
    const Finding* const noise = find(all, "noise");
    ASSERT_EQ(noise != nullptr, found) << size;
    if (found) {
      EXPECT_DOUBLE_EQ(noise->severity.value(), size);
    }
  }
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
                   {.evidence = {{"microbatches needed", DoubleEq(enough)}}});
  }
  // By the formula of zb-h1: (p-1)(F+B-W)/(3m) = 3/24 of the work, 1/9 of the step; 9 microbatches
  // leave 3/30.
  expect_finding(pipeline(4, 8, "zb-h1"), "few-microbatches",
                 {.severity = about(1.0 / 9), .evidence = {{"microbatches needed", DoubleEq(9)}}});
  // Two virtual stages halve the bubble: 3/16 of the work; 14 suffice, in turns of 4 they are 16.
  auto turns = pipeline(4, 8, "interleaved");
  turns.options["v"] = "2";
  expect_finding(
      turns, "few-microbatches",
      {.severity = about(3.0 / 19), .evidence = {{"microbatches needed", DoubleEq(16)}}});
  EXPECT_TRUE(finding(pipeline(4, 8, "gpipe"), "few-microbatches"));
  EXPECT_FALSE(finding(pipeline(4, 8, "dualpipe"), "few-microbatches")) << "not known";
  EXPECT_FALSE(finding(pipeline(1, 1), "few-microbatches")) << "one stage";
}

/// Two stages and four messages, then one back; the first computes for `first` before each and
/// after the last, the second for `second` after each; nanoseconds, and a network that takes none.
results::PointData two_stages(int first, int second) {
  constexpr int messages = 4;
  constexpr Nanoseconds free{0};
  Script front, back;
  std::vector<Nanoseconds> of_front, of_back;
  for (int i = 0; i < messages; ++i) {
    front.compute().send(1);
    of_front.insert(of_front.end(), {Nanoseconds{first}, free});
    back.receive(-1).compute();
    of_back.insert(of_back.end(), {free, Nanoseconds{second}});
  }
  front.receive(1).compute();
  of_front.insert(of_front.end(), {free, Nanoseconds{first}});
  back.send(-1);
  of_back.push_back(free);
  results::PointData played = point({.pp = 2}, {front, back}, {});
  played.traces =
      simulate::simulate(played.outline, {.tables = {of_front, of_back}, .table_of_rank = {0, 1}});
  results::PointData point = pipeline(2, 9);
  set_trace(point, std::move(played));
  for (program::Outline& outline : point.outline.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      if (op.kind == program::OpKind::gemm) op.flop = 1e3;
    }
  }
  add_traced_steps(point, 80e-3, 1.0);
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
}  // namespace isoscale::analysis::advice
