// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_times.hpp"

#include <gmock/gmock.h>

#include "run_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::Script;
using samples::trace;
using testing::DoubleNear;
using testing::Pair;
using testing::UnorderedElementsAre;

results::PointData two_ranks() {
  const Script script = Script{}.compute().copy(1).compute().all_reduce(mesh::Axis::dp, 1);
  return samples::point({.dp = 2}, {script, script},
                        {{trace(0, {0, 100}, {{0, 30}, {10, 20}, {30, 60}, {60, 100}}),
                          trace(1, {0, 100}, {{0, 50}, {10, 30}, {50, 60}, {60, 100}})}});
}

TEST(OpTimes, AreMeansOverRanksByKind) {
  constexpr double exact = 1e-18;
  EXPECT_THAT(op_times(two_ranks()),
              UnorderedElementsAre(Pair("gemm", DoubleNear(60e-9, exact)),
                                   Pair("copy", DoubleNear(15e-9, exact)),
                                   Pair("all_reduce", DoubleNear(40e-9, exact))));
}

TEST(OpTimes, AreMeansOverTracedStepsToo) {
  results::PointData point = two_ranks();
  point.traces.push_back(point.traces.front());
  for (timeline::StepTrace& rank : point.traces.back().ranks) {
    for (timeline::Span& span : rank.spans) span.end = span.start;
  }
  EXPECT_THAT(op_times(point).at("gemm"), DoubleNear(30e-9, 1e-18));
}

TEST(OpTimes, LeaveOutStepsThatDoNotCountAndTracesThatAreDamaged) {
  results::PointData point = two_ranks();
  point.traces.push_back(point.traces.front());
  for (timeline::StepTrace& rank : point.traces.back().ranks) rank.spans.clear();
  EXPECT_THAT(op_times(point).at("gemm"), DoubleNear(60e-9, 1e-18));
  point.warm_up_steps = 1;
  EXPECT_TRUE(op_times(point).empty());
}

/// The first GEMM takes 30 and 50 ns, the second 30 and 10; 1e3 and 4e3 FLOP.
TEST(GemmTimes, AreMeansOverRanksByShape) {
  results::PointData point = two_ranks();
  EXPECT_TRUE(gemm_times(point).empty()) << "an old file";
  for (program::Outline& outline : point.outline.outlines) {
    outline.ops[0].gemm = {.m = 10, .n = 10, .k = 5, .batch = 1};
    outline.ops[0].flop = 1e3;
    outline.ops[2].gemm = {.m = 20, .n = 10, .k = 10, .batch = 1};
    outline.ops[2].flop = 4e3;
  }
  const std::vector<GemmTime> times = gemm_times(point);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].shape.k, 5U);
  EXPECT_NEAR(times[0].seconds, 40e-9, 1e-18);
  EXPECT_NEAR(times[1].seconds, 20e-9, 1e-18);
  EXPECT_DOUBLE_EQ(times[0].calls, 1);
  EXPECT_DOUBLE_EQ(times[1].flop, 4e3);
  for (program::Outline& outline : point.outline.outlines) {
    outline.ops[2].gemm = outline.ops[0].gemm;
  }
  ASSERT_EQ(gemm_times(point).size(), 1U);
  EXPECT_DOUBLE_EQ(gemm_times(point)[0].calls, 2);
  EXPECT_DOUBLE_EQ(gemm_times(point)[0].flop, 5e3);
}

TEST(OpTimes, WithoutTracesThereAreNone) {
  results::PointData point = two_ranks();
  point.traces.clear();
  EXPECT_TRUE(op_times(point).empty());
}

}  // namespace
}  // namespace isoscale::analysis
