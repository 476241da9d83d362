// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/predict/traced_ops.hpp"
#include "base/error.hpp"
#include "known_machine.hpp"
#include "run_samples.hpp"
#include "simulate/measured_time.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;
using samples::KnownMachine;

constexpr double close = 0.02;

results::RunData run_of(results::PointData point) {
  results::RunData run;
  run.points.push_back(std::move(point));
  return run;
}

constexpr KnownMachine truth{};

/// Made once: it takes a while.
const simulate::Machine& machine_of_run() {
  static const simulate::Machine made = run_machine(samples::known_run(truth));
  return made;
}

TEST(RunMachine, HasTheRateOfEveryMultiplication) {
  const simulate::Machine& machine = machine_of_run();
  ASSERT_GT(machine.measured.gemms.size(), 5U);
  for (const simulate::TimedGemm& at : machine.measured.gemms) {
    const double rate = 2 * at.m * at.n * at.k * at.batch / at.seconds;
    EXPECT_NEAR(rate, truth.gemm_rate, close * truth.gemm_rate) << at.m << " " << at.n;
  }
  // All shapes of a step on any number of ranks are there, not only like ones.
  const workloads::Workload& workload = workloads::find_workload("dp");
  const program::ProgramSet set = workload.build(samples::known_request(64));
  int multiplications = 0;
  for (const program::Op& op : set.of(0).step().ops) {
    const auto* gemm = std::get_if<program::Gemm>(&op.payload);
    if (gemm == nullptr) continue;
    ++multiplications;
    EXPECT_TRUE(std::ranges::any_of(machine.measured.gemms, [&](const simulate::TimedGemm& at) {
      return at.type == program::DType::f32 && at.m == gemm->m && at.n == gemm->n &&
             at.k == gemm->k && at.batch == gemm->batch;
    }));
  }
  EXPECT_GT(multiplications, 0);
}

TEST(RunMachine, HasTheTimeOfEveryOtherOp) {
  const simulate::Machine& machine = machine_of_run();
  ASSERT_FALSE(machine.measured.locals.empty());
  for (const simulate::TimedLocal& at : machine.measured.locals) {
    if (at.bytes < 10000) continue;  // below that nanoseconds are coarse
    EXPECT_NEAR(at.bytes / at.seconds, truth.memory, close * truth.memory)
        << program::name(at.kind) << " " << at.bytes;
  }
}

TEST(RunMachine, HasTheGapBetweenOps) {
  const simulate::Machine& machine = machine_of_run();
  ASSERT_TRUE(machine.processor);
  EXPECT_NEAR(machine.processor->launch, truth.gap, close * truth.gap);
}

TEST(RunMachine, HasLatencyAndBandwidthOfEachGroup) {
  const simulate::Machine& machine = machine_of_run();
  ASSERT_EQ(machine.measured.communication.size(), 3U);
  for (const simulate::TimedCommunication& curve : machine.measured.communication) {
    EXPECT_EQ(curve.kind, OpKind::all_reduce);
    EXPECT_EQ(curve.nodes, curve.members);
    EXPECT_EQ(curve.sharing, 1);
    const double latency = samples::all_reduce_seconds(truth, curve.members, 0);
    const double factor = 2.0 * (curve.members - 1) / curve.members;
    ASSERT_TRUE(curve.latency && curve.bandwidth);
    EXPECT_NEAR(*curve.latency, latency, close * latency);
    EXPECT_NEAR(*curve.bandwidth * factor, truth.wire, close * truth.wire);
    EXPECT_EQ(curve.law, simulate::GrowthLaw::proportional);
  }
}

TEST(RunMachine, CarriesCollectivesOnToMoreRanks) {
  const simulate::Machine& machine = machine_of_run();
  for (const double bytes : {64.0, 1e5, 4e6}) {
    const double expected = samples::all_reduce_seconds(truth, 64, bytes);
    EXPECT_NEAR(
        *simulate::measured_collective_seconds(machine.measured, OpKind::all_reduce, bytes,
                                               {.members = 64, .nodes = 64, .node_members = 1}),
        expected, 0.05 * expected)
        << bytes;
  }
}

TEST(RunMachine, HasTheNoiseOfRanks) {
  const simulate::Machine& machine = machine_of_run();
  EXPECT_NEAR(machine.noise.rank, truth.noise, close * truth.noise);
  EXPECT_EQ(machine.noise.node, 0);
  EXPECT_TRUE(machine.noise.standing.empty());
  ASSERT_GT(machine.noise.draws.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(machine.noise.draws));
  EXPECT_EQ(machine.noise.launch, 0.02);
}

TEST(RunMachine, SaysThatNothingSlowsDownBesideCommunication) {
  const simulate::Machine& machine = machine_of_run();
  EXPECT_NEAR(machine.overlap.compute, 1, close);
  EXPECT_NEAR(machine.overlap.communication, 1, close);
  EXPECT_FALSE(machine.folded);
}

/// Two ops of one shape: 100 ns alone; 150 ns wholly and 125 ns half beside an all_reduce.
TEST(TracedOps, TellsWhatRunsBesideCommunication) {
  samples::Script script;
  script.op(OpKind::add).op(OpKind::add).op(OpKind::add).all_reduce(mesh::Axis::dp, 1);
  results::PointData point = samples::point(
      {.dp = 1}, {script},
      {{samples::trace(0, {0, 600}, {{10, 110}, {200, 350}, {400, 525}, {195, 450}})}});
  for (program::Outline& outline : point.outline.outlines) {
    for (program::OutlineOp& op : outline.ops) op.bytes = 1000;
  }
  point.step_times = {{600e-9}};
  const TracedOps traced = traced_ops(run_of(point));
  ASSERT_EQ(traced.locals.size(), 1U);
  EXPECT_NEAR(traced.locals.front().seconds, 100e-9, 1e-15);
  EXPECT_EQ(traced.locals.front().bytes, 1000);
  // Beside: 150 + 50. Alone the two take 200 less the 75 that were not beside: 125.
  EXPECT_NEAR(traced.compute_slowdown, 200.0 / 125, 1e-9);
  // 10 + 90 + 50 + 195, of four ops.
  EXPECT_NEAR(*traced.gap, (10 + 90 + 50 + 195) / 4.0 * 1e-9, 1e-15);
}

/// On one stream everything waits for what was issued before it.
TEST(TracedOps, CountsNoGapTwiceOnFoldedStreams) {
  samples::Script script;
  script.op(OpKind::add).all_reduce(mesh::Axis::dp, 1).op(OpKind::add);
  results::PointData point = samples::point(
      {.dp = 1}, {script}, {{samples::trace(0, {0, 100}, {{2, 30}, {32, 60}, {62, 100}})}});
  point.step_times = {{100e-9}};
  EXPECT_NEAR(*traced_ops(run_of(point)).gap, (2 + 32 + 32) / 3.0 * 1e-9, 1e-15);
  point.folded = true;
  EXPECT_NEAR(*traced_ops(run_of(point)).gap, 2e-9, 1e-15);
}

/// What never ran alone has the time of the step without communication.
TEST(TracedOps, TakesSoloTimesOfWhatNeverRanAlone) {
  samples::Script script;
  script.op(OpKind::add).all_reduce(mesh::Axis::dp, 1);
  results::PointData point =
      samples::point({.dp = 1}, {script}, {{samples::trace(0, {0, 100}, {{0, 90}, {0, 95}})}});
  point.step_times = {{100e-9}};
  point.solo_times = {{.rank = 0, .op = {units::Nanoseconds{60}, units::Nanoseconds{0}}}};
  const TracedOps traced = traced_ops(run_of(point));
  ASSERT_EQ(traced.locals.size(), 1U);
  EXPECT_NEAR(traced.locals.front().seconds, 60e-9, 1e-15);
  EXPECT_NEAR(traced.compute_slowdown, 1.5, 1e-9);
}

TEST(RunMachineRefusal, SaysHowToCalibrate) {
  results::RunData run;
  run.id = "bare";
  run.points.push_back(samples::bench_point(0, "dp", 2));
  try {
    (void)run_machine(run);
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_NE(std::string{error.what()}.find("--workload dp,calibrate"), std::string::npos);
    EXPECT_NE(std::string{error.what()}.find("bare"), std::string::npos);
  }
}

TEST(RunMachineRefusal, WantsCommunication) {
  results::RunData run;
  run.id = "alone";
  run.points.push_back(samples::gemms(0, 1));
  EXPECT_THROW((void)run_machine(run), base::UsageError);
}

TEST(RequestOf, GivesTheRequestBack) {
  const results::PointData point = samples::known_point(truth, 0, 2);
  workloads::Request expected = samples::known_request(2);
  const workloads::Request request = request_of(point);
  EXPECT_EQ(request.mesh, expected.mesh);
  EXPECT_EQ(request.model.layers, expected.model.layers);
  EXPECT_EQ(request.options.at("batch"), expected.options.at("batch"));
  EXPECT_DOUBLE_EQ(request.growth, 1);
  const auto& workload = workloads::find_workload("dp");
  EXPECT_EQ(program::outline(workload.build(request), program::Section::step).of(0).ops.size(),
            point.outline.of(0).ops.size());
}

TEST(RequestOf, NeedsTheModel) {
  results::PointData point = samples::known_point({}, 0, 2);
  point.model_shape.erase("layers");
  EXPECT_THROW((void)request_of(point), base::UsageError);
}

}  // namespace
}  // namespace isoscale::analysis
