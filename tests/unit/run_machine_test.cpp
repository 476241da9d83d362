// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_machine.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "analysis_test.hpp"
#include "known_machine.hpp"
#include "simulate/op_time.hpp"
#include "stack_samples.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

constexpr double close = 0.02;

results::RunData run_of(results::PointData point) {
  results::RunData run;
  run.points.push_back(std::move(point));
  return run;
}

constexpr samples::KnownMachine truth{};

/// Made once: it takes a while.
const simulate::Machine& machine_of_run() {
  static const simulate::Machine made = predict::run_machine(samples::known_run(truth));
  return made;
}

TEST(RunMachine, HasTheRateOfEveryMultiplication) {
  const simulate::Machine& machine = machine_of_run();
  ASSERT_GT(machine.measured.gemms.size(), 5U);
  for (const simulate::TimedGemm& at : machine.measured.gemms) {
    EXPECT_NEAR(at.rate(), truth.gemm_rate, close * truth.gemm_rate)
        << program::to_string(at.shape);
  }
  // All shapes of a step on any number of ranks are there, not only like ones.
  const program::ProgramSet set = workloads::find_workload("dp").build(samples::known_request(64));
  const auto multiplications = workloads::all_of<program::Gemm>(set.of(0));
  EXPECT_FALSE(multiplications.empty());
  for (const auto& multiplication : multiplications) {
    EXPECT_TRUE(std::ranges::any_of(machine.measured.gemms, [&](const simulate::TimedGemm& at) {
      return at.type == program::DType::f32 &&
             at.shape == simulate::shape_of(*multiplication.second);
    }));
  }
}

TEST(RunMachine, HasTheTimeOfEveryOtherOpAndTheGapBetweenThem) {
  const simulate::Machine& machine = machine_of_run();
  ASSERT_FALSE(machine.measured.locals.empty());
  for (const simulate::TimedLocal& at : machine.measured.locals) {
    if (at.bytes < 10000) continue;  // below that nanoseconds are coarse
    EXPECT_NEAR(at.bytes / at.seconds, truth.memory, close * truth.memory)
        << program::name(at.kind) << " " << at.bytes;
  }
  ASSERT_TRUE(machine.processor);
  EXPECT_NEAR(machine.processor->launch, truth.gap, close * truth.gap);
  // No computation slows down beside communication, and no communication beside computation.
  EXPECT_NEAR(machine.overlap.compute, 1, close);
  EXPECT_NEAR(machine.overlap.communication, 1, close);
  EXPECT_FALSE(machine.folded);
}

TEST(RunMachine, HasTheCeilingOfTheReport) {
  const results::CalibrationData calibration =
      calibration::calibration_of(samples::known_run(truth));
  EXPECT_EQ(machine_of_run().measured.gemm_ceilings.at("f32"),
            calibration::ceiling_of(calibration, "f32")->rate);
}

TEST(RunMachine, TakesTheMemoryFromItsRowsWhereNoStepWasTraced) {
  results::RunData run = samples::known_run(truth);
  for (results::PointData& point : run.points) {
    point.traces.clear();
    point.traced.assign(point.traced.size(), 0);
  }
  const workloads::Request request = samples::known_request(2);
  const workloads::Workload& workload = workloads::find_workload("dp");
  const auto seconds = [&](const simulate::Machine& machine) {
    return predict::estimate_step({workload, machine, simulate::packed(2, 1)}, request).seconds();
  };
  const simulate::Machine unknown = predict::run_machine(run);
  EXPECT_THAT(testing_support::refusal([&] { (void)seconds(unknown); }),
              HasSubstr("--workload memory"));
  results::PointData rows = samples::bench_point(99, "memory", 8);
  const auto add = [&](const char* together, double bytes, double rate) {
    rows.rows.push_back(samples::row({{"op", "memory"}, {"kind", "copy"}, {"together", together}},
                                     {{"bytes", bytes}, {"array_bytes", bytes / 2}}, bytes / rate,
                                     8));
  };
  add("one", 1e8, 9e9);
  add("all", 1e6, 8e9);
  add("all", 1e8, truth.memory);
  run.points.push_back(rows);
  const simulate::Machine known = predict::run_machine(run);
  EXPECT_NEAR(known.memory.value().bandwidth, truth.memory, close * truth.memory);
  const double expected = samples::known_step(truth, 2, 20);
  EXPECT_NEAR(seconds(known), expected, 0.2 * expected);
}

/// A run file does not say whether the projection to the vocabulary has weights of its own.
TEST(RunMachine, KnowsTheModelAndWhichModelsOfIsoscaleTieTheirEmbedding) {
  results::PointData point = samples::known_run(truth).points.front();
  EXPECT_TRUE(predict::request_of(point).model.tied_embedding);
  point.model = "llama3-8b";
  EXPECT_FALSE(predict::request_of(point).model.tied_embedding);
  point.model_shape.erase("layers");
  EXPECT_THROW((void)predict::request_of(point), base::UsageError) << "it needs the model";
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
  // By that law they are carried on to more ranks.
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

/// Returns the sharing of a curve that three pairs of ranks measured, with these nodes of ranks.
int sharing_of_pairs(const std::vector<int>& nodes) {
  results::PointData point;
  point.mesh = {.tp = 2, .dp = 3};
  point.ranks = 6;
  point.rows = {{.text = {{"op", "all_reduce"}, {"axis", "tp"}, {"groups", "all"}},
                 .number = {{"members", 2}}}};
  results::RunData run = run_of(point);
  for (int rank = 0; rank < 6; ++rank) {
    run.rank_facts.push_back({.rank = rank, .node = nodes[static_cast<std::size_t>(rank)]});
  }
  run.calibration.emplace().curves = {{.op = "all_reduce",
                                       .implementation = "library",
                                       .members = 2,
                                       .nodes = 2,
                                       .samples = {{.bytes = 8, .fitted = 1e-6}}}};
  return predict::run_machine(run).measured.communication.at(0).sharing;
}

TEST(RunMachine, CountsTheGroupsThatShareThePortsOfANode) {
  EXPECT_EQ(sharing_of_pairs({0, 1, 0, 1, 0, 1}), 3);
  // Ranks 2 and 3 alone are on both nodes; the pairs beside them need no port.
  EXPECT_EQ(sharing_of_pairs({0, 0, 0, 1, 1, 1}), 1);
}

/// Returns a point with one step that one rank traced; nanoseconds.
results::PointData traced(const Script& script, int end, const Spans& spans) {
  results::PointData point = samples::point({.dp = 1}, {script}, step({0, end}, {spans}));
  for (program::OutlineOp& op : point.outline.outlines[0].ops) op.bytes = 1000;
  point.step_times = {{end * 1e-9}};
  return point;
}

/// Two ops of one shape: 100 ns alone; 150 ns wholly and 125 ns half beside an all_reduce.
TEST(TracedOps, TellsWhatRunsBesideCommunication) {
  const predict::TracedOps ops = predict::traced_ops(run_of(
      traced(Script{}.op(OpKind::add).op(OpKind::add).op(OpKind::add).all_reduce(Axis::dp, 1), 600,
             {{10, 110}, {200, 350}, {400, 525}, {195, 450}})));
  ASSERT_EQ(ops.locals.size(), 1U);
  EXPECT_NEAR(ops.locals.front().seconds, 100e-9, 1e-15);
  EXPECT_EQ(ops.locals.front().bytes, 1000);
  // Beside: 150 + 50. Alone the two take 200 less the 75 that were not beside: 125.
  EXPECT_NEAR(ops.compute_slowdown, 200.0 / 125, 1e-9);
  // 10 + 90 + 50 + 195, of four ops.
  EXPECT_NEAR(*ops.gap, (10 + 90 + 50 + 195) / 4.0 * 1e-9, 1e-15);
}

/// On one stream everything waits for what was issued before it.
TEST(TracedOps, CountsNoGapTwiceOnFoldedStreams) {
  results::PointData point =
      traced(Script{}.op(OpKind::add).all_reduce(Axis::dp, 1).op(OpKind::add), 100,
             {{2, 30}, {32, 60}, {62, 100}});
  EXPECT_NEAR(*predict::traced_ops(run_of(point)).gap, (2 + 32 + 32) / 3.0 * 1e-9, 1e-15);
  point.folded = true;
  EXPECT_NEAR(*predict::traced_ops(run_of(point)).gap, 2e-9, 1e-15);
}

TEST(TracedOps, TakesSoloTimesOfWhatNeverRanAlone) {
  results::PointData point =
      traced(Script{}.op(OpKind::add).all_reduce(Axis::dp, 1), 100, {{0, 90}, {0, 95}});
  point.solo_times = {{.rank = 0, .op = {units::Nanoseconds{60}, units::Nanoseconds{0}}}};
  const predict::TracedOps ops = predict::traced_ops(run_of(point));
  ASSERT_EQ(ops.locals.size(), 1U);
  EXPECT_NEAR(ops.locals.front().seconds, 60e-9, 1e-15);
  EXPECT_NEAR(ops.compute_slowdown, 1.5, 1e-9);
}

TEST(RunMachineRefusal, SaysHowToCalibrate) {
  results::RunData run = run_of(samples::bench_point(0, "dp", 2));
  run.id = "bare";
  EXPECT_THAT(testing_support::refusal([&] { (void)predict::run_machine(run); }),
              AllOf(HasSubstr("--workload dp,calibrate"), HasSubstr("bare")));
  run.points = {samples::gemms(0, 1)};  // no communication
  EXPECT_THROW((void)predict::run_machine(run), base::UsageError);
}

constexpr int ranks = 16, node_ranks = 4, steps = 2000;

const simulate::Layout layout = simulate::packed(ranks, node_ranks);

struct Drawn {
  double rank = 0, node = 0, all = 0;
};

/// 10 ms of compute a step, times factors of the step, the node and the rank, and one of its own.
results::PointData drawn(Drawn spread, const std::vector<double>& standing = {}) {
  std::mt19937_64 random{5};
  std::normal_distribution<double> normal;
  results::PointData point =
      samples::point({.dp = ranks}, std::vector<Script>(ranks, Script{}.compute()), {});
  point.outline.outline_of_rank.assign(ranks, 0);
  point.traces.clear();
  for (int step = 0; step < steps; ++step) {
    point.step_times.emplace_back(ranks, 0.012);
    results::OpSums& sums = point.op_sums.emplace_back();
    sums.step = static_cast<std::uint32_t>(step);
    const double of_step = 1 + spread.all * normal(random);
    double of_node = 1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank % node_ranks == 0) of_node = 1 + spread.node * normal(random);
      const double mine = standing.empty() ? 1 : standing[static_cast<std::size_t>(rank)];
      const double time = 0.01 * of_step * of_node * (1 + spread.rank * normal(random)) * mine;
      sums.gemm.push_back(0.7 * time);
      sums.other_compute.push_back(0.2 * time);
      sums.copies.push_back(0.1 * time);
      sums.communication.push_back(0.005);
    }
  }
  return point;
}

/// A deviation that all ranks share makes none of them wait, so it is left out of the noise.
TEST(NoiseOf, PartsNodesFromRanksAndLeavesOutWhatAllShare) {
  const simulate::Noise noise = predict::noise_of(drawn({.rank = 0.01, .node = 0.03}), layout, 0);
  EXPECT_NEAR(noise.rank, 0.01, 0.0002);
  EXPECT_NEAR(noise.node, 0.03, 0.0009);
  EXPECT_TRUE(noise.standing.empty());
  const simulate::Noise shared = predict::noise_of(drawn({.rank = 0.01, .all = 0.1}), layout, 0);
  EXPECT_NEAR(shared.rank, 0.01, 0.0003);
  EXPECT_LT(shared.node, 0.001);
}

TEST(NoiseOf, FindsRanksThatAreAlwaysSlow) {
  std::vector<double> standing(ranks, 1);
  standing[3] = 1.2;
  const simulate::Noise noise = predict::noise_of(drawn({.rank = 0.01}, standing), layout, 0);
  EXPECT_THAT(noise.standing, Pointwise(DoubleNear(0.002), standing));
  EXPECT_NEAR(noise.rank, 0.01, 0.0002);
}

/// 100 ops of 3% each make 0.3% of a step; the rest of its 1% is the rank's.
TEST(NoiseOf, TakesSingleOpsOutOfTheRanks) {
  results::PointData point = drawn({.rank = 0.01});
  Script script;
  Spans spans;
  for (int op = 0; op < 100; ++op) {
    script.compute();
    spans.emplace_back(op * 10, op * 10 + 10);
  }
  point.outline.outlines = {script.outline()};
  point.traces = {{{trace(0, {0, 1000}, spans)}}};
  EXPECT_NEAR(predict::noise_of(point, layout, 0.03).rank, std::sqrt(1e-4 - 9e-6), 0.0002);
}

TEST(NoiseOf, KeepsDeviationsAsTheyWereButNotOfFewSteps) {
  results::PointData point = drawn({.rank = 0.02});
  const simulate::Noise noise = predict::noise_of(point, layout, 0);
  ASSERT_GE(noise.draws.size(), 4000U);
  double squares = 0;
  for (const double at : noise.draws) squares += at * at;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(noise.draws.size())), 0.02, 0.0006);
  EXPECT_LT(noise.draws.front(), -0.05);
  EXPECT_GT(noise.draws.back(), 0.05);
  point.op_sums.resize(2);
  const simulate::Noise few = predict::noise_of(point, layout, 0);
  EXPECT_EQ(few.rank, 0);
  EXPECT_TRUE(few.draws.empty());
  EXPECT_EQ(few.launch, predict::assumed_launch_deviation);
}

/// The medians are 1, 1.04 and 1, and the result is the standard deviation of their logarithms 0,
/// 0.0392 and 0.
TEST(LaunchDeviation, IsThatOfMedians) {
  const auto launch = [](double step_time) {
    results::PointData point;
    point.workload = "dp";
    point.ranks = 2;
    point.step_times.assign(10, {step_time, step_time * 0.9});
    return run_of(point);
  };
  const std::vector<results::RunData> runs{launch(1), launch(1.04), launch(1)};
  EXPECT_NEAR(predict::launch_deviation(runs), std::log(1.04) / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(predict::launch_deviation(std::span{runs}.first(1)), predict::assumed_launch_deviation);
}

/// Times that depend on each other are averaged in blocks: their median is not that of all steps.
TEST(MedianStep, IsThatOfTheReport) {
  results::RunData run = samples::run({measured(0, {.dp = 2}, 1)});
  results::PointData& point = run.points[0];
  point.step_times.clear();
  for (int i = 0; i < 400; ++i) point.step_times.push_back({std::exp(std::sin(0.8 * i))});
  point.traced.assign(400, 0);
  point.dropped.assign(400, 0);
  const statistics::Estimate reported = point_of(run).step_time.value();
  ASSERT_TRUE(reported.block > 1 && reported.lower);
  EXPECT_NE(reported.median, *statistics::median(results::untraced_times(point)));
  EXPECT_EQ(predict::median_step(point), reported.median);
}

TEST(StepDeviation, IsNotMovedByOneSlowStep) {
  results::PointData point;
  for (const double time : {0.98, 0.99, 1.0, 1.01, 1.02, 9.0, 1.0})
    point.step_times.push_back({time});
  EXPECT_NEAR(predict::median_step(point), 1, 1e-12);
  EXPECT_NEAR(predict::step_deviation(point), 1.4826 * 0.01, 1e-9);
  EXPECT_EQ(predict::step_deviation({}), 0);
}

}  // namespace
}  // namespace isoscale::analysis
