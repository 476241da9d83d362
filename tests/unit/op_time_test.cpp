// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_time.hpp"

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

TEST(OpTimes, WithoutTracesThereAreNone) {
  results::PointData point = two_ranks();
  point.traces.clear();
  EXPECT_TRUE(op_times(point).empty());
}

}  // namespace
}  // namespace isoscale::analysis
