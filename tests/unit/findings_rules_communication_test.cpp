// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sstream>

#include "analysis/advice/rules.hpp"
#include "findings_samples.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

constexpr double mib = 1024.0 * 1024;

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
  samples::Spans spans{{0, 700}};
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
  run.calibration.emplace();
  run.calibration->curves.push_back({.op = "all_reduce",
                                     .dtype = "f32",
                                     .link_class = "one node",
                                     .implementation = "library",
                                     .members = 2,
                                     .nodes = 1,
                                     .latency = results::Fitted{.value = 20e-6},
                                     .bandwidth = results::Fitted{.value = 10e9}});
  return run;
}

TEST(CommunicationRatio, IsFoundAboveAFifthOfTheStepThatNothingHides) {
  expect_finding(one_stream(650), "communication-ratio",
                 {.severity = about(0.35),
                  .sentence = HasSubstr("35.0%"),
                  .evidence = {{"exposed transfer", DoubleEq(0.35)}}});
  EXPECT_FALSE(finding(one_stream(810), "communication-ratio"));
  EXPECT_FALSE(finding(two_streams(300, 900, 300), "communication-ratio")) << "it is hidden";
  // Where most of it is waiting, the causes are elsewhere.
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

std::string advised(const Advice& at) {
  const auto extent = [&at](Axis of) { return of == at.axis ? 2 : 1; };
  const mesh::Shape shape{.tp = extent(Axis::tp),
                          .cp = extent(Axis::cp),
                          .ep = extent(Axis::ep),
                          .dp = extent(Axis::dp),
                          .pp = extent(Axis::pp)};
  results::PointData point =
      traced_point(shape, Script{}.compute().all_reduce(at.axis), {{{0, 500}, {500, 1000}}});
  point.workload = at.workload;
  point.options.clear();
  std::istringstream options{at.options};
  for (std::string key; std::getline(options, key, '=');) {
    options >> point.options[key] >> std::ws;
  }
  return finding(std::move(point), "communication-ratio").value().next_step;
}

TEST(CommunicationRatio, AdvisesWhatTheAxisAndTheOptionsLeaveOpen) {
  const char* const usual = "microbatch=2 zero=1";
  const std::string tp = "sequence_parallel=off ring=off chunks=1 tp_output=reduce";
  for (const Advice& at : std::vector<Advice>{
           {Axis::dp, usual, {"--set microbatches"}},
           {Axis::tp, usual, {"less tp and more dp: --mesh"}, {"microbatches"}},
           {Axis::cp, usual, {"--mesh"}, {"microbatches"}},
           {Axis::ep, usual, {"--mesh"}, {"microbatches"}},
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
           {Axis::tp, tp + " chunks=4", {"--mesh"}, {"--set"}},
           {Axis::tp, tp + " ring=on", {"--mesh"}, {"--set"}},
           {Axis::tp, tp + " experts=8", {"--mesh"}, {"--set"}},
           {Axis::tp, tp + " tp_output=gather", {"--set tp_output=reduce"}}}) {
    const std::string text = advised(at);
    SCOPED_TRACE(std::string{mesh::name(at.axis)} + ", " + at.options + ": " + text);
    for (const char* const part : at.has) EXPECT_THAT(text, HasSubstr(part));
    for (const char* const part : at.lacks) EXPECT_THAT(text, Not(HasSubstr(part)));
  }
}

TEST(CommunicationRatio, KeepsGroupsInsideANodeWhereTheyLeaveIt) {
  for (const bool leaves : {false, true}) {
    results::PointData data = samples::measured(0, {.tp = 2, .pp = 2}, 1e-6);
    data.options = {{"handover", "whole"}};
    PointReport point;
    point.data = &data;
    point.nodes.emplace();
    const mesh::Reach reach = leaves ? mesh::Reach::inter_node : mesh::Reach::intra_node;
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep}) {
      point.nodes->axes[axis] = reach;
      const auto inside = HasSubstr("inside a node");
      EXPECT_THAT(advice::advice_along(point, axis),
                  leaves ? testing::Matcher<std::string>(inside) : Not(inside))
          << mesh::name(axis);
    }
    EXPECT_THAT(advice::advice_along(point, Axis::pp), HasSubstr("handover=scattered"));
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
  EXPECT_FALSE(finding(calibrated(buckets(6, 250e3)), "small-buckets"));
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

}  // namespace
}  // namespace isoscale::analysis
