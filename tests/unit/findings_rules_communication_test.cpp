// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "analysis/advice/rules.hpp"
#include "findings_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using program::OpKind;
using samples::evidence;
using samples::find;
using samples::finding;
using samples::findings_of;
using samples::Script;
using samples::traced_point;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kib = 1024, mib = 1024 * kib;

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
  results::RunData run = samples::run_of(std::move(point));
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

TEST(CommunicationRatio, IsFoundAboveAFifthOfTheStep) {
  const auto found = finding(one_stream(650), "communication-ratio");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->severity.value(), 0.35);
  EXPECT_EQ(found->sentence, "2 ranks: communication takes 35.0% of the step, hardly any hidden");
  EXPECT_DOUBLE_EQ(evidence(*found, "exposed transfer"), 0.35);
  EXPECT_FALSE(finding(one_stream(810), "communication-ratio"));
}

TEST(CommunicationRatio, IsNoneWhereCommunicationIsHidden) {
  const auto all = findings_of(two_streams(300, 900, 300));
  EXPECT_EQ(find(all, "communication-ratio"), nullptr);
}

TEST(CommunicationRatio, SendsToTheCausesWhereMostIsWaiting) {
  const Script script = Script{}.compute().all_reduce(Axis::dp);
  const auto all = findings_of(
      traced_point({.dp = 2}, script, {{{0, 300}, {300, 1000}}, {{0, 900}, {900, 1000}}}));
  const Finding* const found = find(all, "communication-ratio");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(evidence(*found, "waiting for late partners"), 0.3);
  EXPECT_THAT(found->next_step, HasSubstr("late ranks"));
}

/// What is advised where all-reduces along `axis` are exposed. Options are those of the run file,
/// which has every option of the workload with its value.
std::string advised(mesh::Axis axis, const std::map<std::string, std::string>& options,
                    const char* workload = "hybrid") {
  const auto extent = [axis](mesh::Axis of) { return of == axis ? 2 : 1; };
  const mesh::Shape shape{.tp = extent(Axis::tp),
                          .cp = extent(Axis::cp),
                          .ep = extent(Axis::ep),
                          .dp = extent(Axis::dp),
                          .pp = extent(Axis::pp)};
  results::PointData point =
      traced_point(shape, Script{}.compute().all_reduce(axis), {{{0, 500}, {500, 1000}}});
  point.workload = workload;
  point.options = {options.begin(), options.end()};
  const auto all = findings_of(std::move(point));
  const Finding* const found = find(all, "communication-ratio");
  return found == nullptr ? "" : found->next_step;
}

TEST(CommunicationRatio, AdvisesMoreMicrobatchesOnlyAgainstGradients) {
  EXPECT_THAT(advised(Axis::dp, {{"microbatch", "2"}, {"zero", "1"}}),
              HasSubstr("--set microbatches"));
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp}) {
    EXPECT_THAT(advised(axis, {{"microbatch", "2"}, {"zero", "1"}}),
                AllOf(HasSubstr("--mesh"), Not(HasSubstr("microbatches"))))
        << mesh::name(axis);
  }
  EXPECT_THAT(advised(Axis::dp, {{"batch", "4"}}, "tiles"), HasSubstr("--set batch"));
  EXPECT_THAT(advised(Axis::cp, {{"batch", "4"}, {"overlap", "off"}}, "tiles"),
              AllOf(HasSubstr("overlap=on"), HasSubstr("--set image")));
}

TEST(CommunicationRatio, AdvisesWhatTheStrategyOverReplicasLacks) {
  EXPECT_THAT(advised(Axis::dp, {{"microbatch", "2"}, {"overlap", "off"}}),
              AllOf(HasSubstr("overlap=on"), HasSubstr("microbatches")));
  EXPECT_THAT(advised(Axis::dp, {{"microbatch", "2"}, {"strategy", "funnel"}}),
              HasSubstr("strategy=ddp"));
  // Those send for each microbatch: more of them are more bytes.
  for (const char* const stage : {"2", "3"}) {
    EXPECT_THAT(advised(Axis::dp, {{"microbatch", "2"}, {"zero", stage}}),
                AllOf(HasSubstr("zero=1"), Not(HasSubstr("more microbatches"))));
  }
}

TEST(CommunicationRatio, AdvisesPartsThatHideUnderGemmsAlongTp) {
  const std::map<std::string, std::string> plain{
      {"sequence_parallel", "off"}, {"ring", "off"}, {"chunks", "1"}, {"tp_output", "reduce"}};
  const auto with = [&](const char* key, const char* value) {
    auto options = plain;
    options[key] = value;
    return advised(Axis::tp, options);
  };
  EXPECT_THAT(with("chunks", "1"), HasSubstr("sequence_parallel=on and ring=on, or chunks=4"));
  EXPECT_THAT(with("sequence_parallel", "on"),
              AllOf(HasSubstr("--set ring=on, or chunks=4"), Not(HasSubstr("sequence_parallel"))));
  for (const auto& [key, value] : {std::pair{"chunks", "4"}, {"ring", "on"}, {"experts", "8"}}) {
    EXPECT_EQ(with(key, value), "less tp and more dp: --mesh") << key;
  }
  EXPECT_THAT(with("tp_output", "gather"), HasSubstr("--set tp_output=reduce"));
  EXPECT_EQ(advised(Axis::tp, {{"batch", "4"}}), "less tp and more dp: --mesh") << "no options";
}

TEST(CommunicationRatio, AdvisesFewerBytesFromStageToStage) {
  EXPECT_THAT(advised(Axis::pp, {{"schedule", "interleaved"}}), HasSubstr("--set v"));
  EXPECT_THAT(
      advised(Axis::pp, {{"schedule", "1f1b"}, {"handover", "whole"}}),
      AllOf(HasSubstr("fewer stages"), Not(HasSubstr("scattered")), Not(HasSubstr("--set"))));
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
      EXPECT_THAT(advice_along(point, axis),
                  leaves ? testing::Matcher<std::string>(inside) : Not(inside))
          << mesh::name(axis);
    }
    EXPECT_THAT(advice_along(point, Axis::pp), HasSubstr("handover=scattered"));
  }
}

TEST(MissingOverlap, IsFoundWhereAStreamOfItsOwnHidesNothing) {
  const auto found = finding(two_streams(600, 900, 900), "missing-overlap");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->severity.value(), 0.3);
  EXPECT_THAT(found->next_step, HasSubstr("--trace"));
}

TEST(MissingOverlap, IsFoundOfGroupsThatVaryAlongOneOfTheirAxes) {
  results::PointData point = two_streams(600, 900, 900);
  point.outline.outlines[0].ops[1].axes = {Axis::cp, Axis::ep, Axis::dp};
  EXPECT_TRUE(finding(std::move(point), "missing-overlap"));
}

TEST(MissingOverlap, IsNoneWhereHalfIsHiddenOrNothingWasAskedFor) {
  EXPECT_FALSE(finding(two_streams(300, 900, 600), "missing-overlap"));
  EXPECT_FALSE(finding(one_stream(600), "missing-overlap"));
}

TEST(MissingOverlap, NamesFoldedStreams) {
  results::PointData point = two_streams(600, 900, 900);
  point.folded = true;
  point.folded_reason = "the rank has fewer than two cores";
  const auto found = finding(std::move(point), "missing-overlap");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("streams were played as one"));
  EXPECT_THAT(found->next_step, HasSubstr("two cores"));
}

TEST(MissingOverlap, BlamesTheSettingThatKeepsIssueOrder) {
  results::RunData run = samples::run_of(two_streams(600, 900, 900));
  run.environment = {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}};
  const auto found = finding(run, "missing-overlap");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->next_step, HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS=1"));
}

TEST(SmallBuckets, AreFoundWhereACallIsMostlyLatency) {
  const auto found = finding(calibrated(buckets(6, 50e3)), "small-buckets");
  ASSERT_TRUE(found);
  // 50 kB take 5 us beside 20 us of latency: 80% of 30% of the step.
  EXPECT_NEAR(found->severity.value(), 0.8 * 0.3, 1e-12);
  EXPECT_EQ(evidence(*found, "buckets"), 6);
  // Four times the 200 kB of half latency, in whole KiB.
  EXPECT_THAT(found->next_step, HasSubstr("bucket=782KiB"));
}

TEST(SmallBuckets, AreNoneWhereTheyAreLargeOrFew) {
  EXPECT_FALSE(finding(calibrated(buckets(6, 250e3)), "small-buckets"));
  EXPECT_FALSE(finding(calibrated(buckets(3, 50e3)), "small-buckets"));
}

TEST(SmallBuckets, AreGuessedWithoutACalibrationOnGpusAlone) {
  results::RunData run = samples::run_of(buckets(6, 50e3));
  EXPECT_FALSE(finding(run, "small-buckets"));
  run.device = "cuda";
  const auto found = finding(run, "small-buckets");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->severity);
  EXPECT_THAT(found->sentence, HasSubstr("may be bound"));
  run.points[0] = buckets(6, 2 * mib);
  EXPECT_FALSE(finding(run, "small-buckets"));
}

TEST(SingleBucket, IsFoundAndStandsForTheMissingOverlap) {
  const auto all = findings_of(buckets(1, 20 * mib));
  const Finding* const found = find(all, "single-bucket");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(found->severity.value(), 0.75 * 0.3, 1e-12);
  EXPECT_THAT(found->next_step, HasSubstr("bucket=5MiB"));
  EXPECT_EQ(find(all, "missing-overlap"), nullptr);
}

TEST(SingleBucket, IsNoneOfSeveralOrOfASmallOneOrWithoutOverlap) {
  EXPECT_FALSE(finding(buckets(2, 20 * mib), "single-bucket"));
  EXPECT_FALSE(finding(buckets(1, 2 * mib), "single-bucket"));
  results::PointData point = buckets(1, 20 * mib);
  point.options["overlap"] = "off";
  EXPECT_FALSE(finding(std::move(point), "single-bucket"));
}

TEST(SingleBucket, IsJudgedByTheCalibrationWhereThereIsOne) {
  // Quarters of 2 MiB are 524 kB, more than the 200 kB of half latency; of 700 kB they are less.
  EXPECT_TRUE(finding(calibrated(buckets(1, 2 * mib)), "single-bucket"));
  EXPECT_FALSE(finding(calibrated(buckets(1, 700e3)), "single-bucket"));
}

}  // namespace
}  // namespace isoscale::analysis
