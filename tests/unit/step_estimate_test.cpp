// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/step_estimate.hpp"
#include "analysis/breakdown/op_and_link_times.hpp"
#include "analysis_test.hpp"
#include "predict_samples.hpp"
#include "program/work_and_memory.hpp"
#include "tests/support/options.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis {
namespace {

const workloads::Workload& hybrid() { return workloads::find_workload("hybrid"); }

workloads::Request request(const mesh::Shape& mesh, workloads::Options options = {}) {
  workloads::Request base{.model = workloads::load_model("tiny")};
  options.try_emplace("batch", "64");
  base.options = std::move(options);
  return hybrid().scale(base, mesh, workloads::Scaling::strong);
}

predict::StepEstimate estimate(const workloads::Request& of, const simulate::Machine& machine,
                               predict::Detail detail = predict::Detail::trace) {
  return predict::whole_step({hybrid(), machine, simulate::packed(of.mesh.size(), 8), detail}, of);
}

/// FLOP of all ranks: every class has equally many.
double flop_of(const predict::StepEstimate& found, const mesh::Shape& mesh) {
  const std::vector<double>& flop = found.point->flop_of_rank;
  return std::reduce(flop.begin(), flop.end()) * mesh.size() / static_cast<double>(flop.size());
}

TEST(StepEstimate, IsTheSumOfGemmsWhereNothingElseTakesTime) {
  const workloads::Request one = request({});
  const program::ProgramSet set = hybrid().build(one);
  const double flop = program::facts(set.of(0), set.mesh).flop.value();
  const predict::StepEstimate found = estimate(one, samples::plain_sheet());
  EXPECT_NEAR(found.simulated, flop / 1e12, 1e-3 * flop / 1e12);
  EXPECT_DOUBLE_EQ(flop_of(found, one.mesh), flop);
  EXPECT_DOUBLE_EQ(found.delay, 0);
  EXPECT_DOUBLE_EQ(found.work, hybrid().work_per_step(one));
  EXPECT_FALSE(estimate(one, samples::plain_sheet(), predict::Detail::time).point.has_value());
}

TEST(StepEstimate, CountsMemoryAndFlopOfAllRanksAsTheirProgramsDo) {
  const workloads::Request of = request({.tp = 2, .dp = 4, .pp = 2}, {{"zero", "1"}});
  const program::ProgramSet set = hybrid().build(of);
  double memory = 0, flop = 0;
  for (const std::uint32_t program : set.program_of_rank) {
    const auto& arenas = set.programs[program].arena_bytes;
    const std::uint64_t bytes = std::accumulate(arenas.begin(), arenas.end(), std::uint64_t{0});
    memory = std::max(memory, static_cast<double>(bytes));
    flop += program::facts(set.programs[program], set.mesh).flop.value();
  }
  const predict::StepEstimate found = estimate(of, samples::plain_sheet());
  EXPECT_DOUBLE_EQ(found.memory.all, memory);
  EXPECT_DOUBLE_EQ(found.memory.device, memory);
  EXPECT_NEAR(flop_of(found, of.mesh), flop, 1e-9 * flop);
}

TEST(StepEstimate, HandsOnAStepThatTheBreakdownReads) {
  for (const mesh::Shape& mesh : {mesh::Shape{.dp = 16}, mesh::Shape{.tp = 2, .dp = 4},
                                  mesh::Shape{.tp = 2, .dp = 4, .pp = 2}}) {
    const predict::StepEstimate found = estimate(request(mesh), samples::plain_sheet());
    EXPECT_DOUBLE_EQ(
        found.seconds(),
        estimate(request(mesh), samples::plain_sheet(), predict::Detail::time).seconds());
    ASSERT_TRUE(found.point.has_value());
    const breakdown::BreakdownResult parts = breakdown::breakdown(*found.point);
    ASSERT_TRUE(parts.mean.has_value()) << parts.missing;
    EXPECT_EQ(parts.missing, "");
    EXPECT_NEAR(parts.mean->step, found.simulated, 2e-9) << mesh::to_string(mesh);
    // The axes are gone from the mesh of the classes, and are still told by name.
    EXPECT_GT(parts.by_axes.at(mesh::Axis::dp).transfer, 0);
    EXPECT_EQ(parts.by_axes.contains(mesh::Axis::tp), mesh.tp > 1);
    const auto costs = efficiency::step_costs(*found.point, parts);
    EXPECT_TRUE(costs.value().gemm_alone.has_value());
    EXPECT_NEAR(costs->gemm, flop_of(found, mesh) / mesh.size() / 1e12, 1e-3 * costs->gemm);
    // A machine without noise loses no time to it.
    ASSERT_TRUE(found.breakdown && found.loss);
    const efficiency::StepCosts& lost = found.loss->costs;
    ASSERT_TRUE(lost.imbalance && lost.noise);
    EXPECT_NEAR(*lost.imbalance, lost.waiting, 1e-12);
    EXPECT_NEAR(*lost.noise, 0, 1e-12);
  }
}

TEST(StepEstimate, HasTheBubbleOfItsSchedule) {
  // Equal stages, transfers that take next to no time: (p - 1) / (m + p - 1).
  simulate::Machine machine = samples::plain_sheet();
  machine.network->inside = {.bandwidth = 1e18, .reached = 1, .latency = 1e-15};
  const predict::StepEstimate found = estimate(
      request({.pp = 2}, {{"vocabulary", "off"}, {"microbatch", "4"}, {"schedule", "1f1b"}}),
      machine);
  ASSERT_TRUE(found.point.has_value());
  const auto formula = breakdown::formula_bubble(*found.point);
  EXPECT_NEAR(formula.value(), 1.0 / 17, 1e-9);
  const breakdown::BreakdownResult parts = breakdown::breakdown(*found.point);
  EXPECT_NEAR(parts.mean->bubble / parts.mean->step, 1.0 / 17, 1e-3);
}

/// Noise so small that it hardly delays: each rank by itself takes as long as the class of all,
/// with what communication beside compute costs.
TEST(StepEstimate, OfEachRankCountsWhatCommunicationCostsCompute) {
  simulate::Machine machine = samples::plain_sheet();
  machine.network->inside.bandwidth = 2e9;
  machine.overlap = {.compute = 1.5, .communication = 1};
  machine.noise.rank = 1e-5;
  const workloads::Request of =
      request({.dp = 8}, {{"batch", "1024"}, {"microbatch", "128"}, {"bucket", "64KiB"}});
  const simulate::Layout layout = simulate::packed(8, 8);
  const auto seconds = [&](predict::Ranks ranks) {
    return predict::whole_step({hybrid(), machine, layout, predict::Detail::time, ranks}, of)
        .seconds();
  };
  const double by_class = seconds(predict::Ranks::by_class);
  EXPECT_NEAR(seconds(predict::Ranks::each), by_class, 1e-3 * by_class);
  machine.overlap.compute = 1;
  EXPECT_LT(seconds(predict::Ranks::by_class), 0.99 * by_class);
}

TEST(StepEstimate, RefusesALayoutOfOtherRanks) {
  EXPECT_THROW((void)predict::estimate_step(
                   {hybrid(), samples::plain_sheet(), simulate::packed(1, 1)}, request({.dp = 2})),
               std::invalid_argument);
}

/// Returns a random long step: some mesh, schedule and options, and more than three turns of
/// microbatches. Absent if these options exclude each other.
std::optional<workloads::Request> long_step(std::mt19937_64& random) {
  const auto one_of = [&](const std::vector<std::string>& values) {
    return values[random() % values.size()];
  };
  const int tp = 1 << random() % 2, dp = 1 << random() % 2, pp = 1 << random() % 3;
  workloads::Options options{{"microbatch", one_of({"1", "2"})},
                             {"optimizer", one_of({"sgd", "adam"})},
                             {"elementwise", one_of({"on", "off"})},
                             {"vocabulary", one_of({"on", "off"})},
                             {"recompute", one_of({"none", "selective", "full"})},
                             {"input", one_of({"resident", "pinned"})},
                             {"zero", one_of({"0", "1", "2", "3"})}};
  if (pp > 1) options["schedule"] = one_of({"gpipe", "1f1b", "interleaved", "zb-h1"});
  if (options.contains("schedule") && options["schedule"] == "interleaved") options["v"] = "2";
  if (tp > 1) options["sequence_parallel"] = options["ring"] = one_of({"on", "off"});
  const int turn = std::max(4, pp), microbatches = turn * static_cast<int>(4 + random() % 12);
  options["batch"] = std::to_string(std::stoi(options["microbatch"]) * microbatches * dp);
  workloads::Request base{.model = workloads::load_model("tiny"), .options = std::move(options)};
  base.model.layers = 8;
  try {
    return hybrid().scale(base, {.tp = tp, .dp = dp, .pp = pp}, workloads::Scaling::strong);
  } catch (const base::UsageError&) {
    return std::nullopt;
  }
}

/// Expects the numbers of a long step to be those of its whole programs, within shares of the step.
void expect_extended(const workloads::Request& of, const simulate::Machine& machine,
                     double tolerance) {
  SCOPED_TRACE(mesh::to_string(of.mesh) + " " + testing::PrintToString(of.options));
  const simulate::Layout layout = simulate::packed(of.mesh.size(), 4);
  const predict::EstimateSetting setting{
      hybrid(), machine, layout, predict::Detail::trace, predict::Ranks::by_class, 1e30};
  ASSERT_TRUE(predict::short_steps(of));
  const predict::StepEstimate whole = predict::whole_step(setting, of);
  const predict::StepEstimate found = predict::estimate_step(setting, of);
  EXPECT_NEAR(found.simulated / whole.simulated, 1, tolerance);
  EXPECT_NEAR(found.delay, whole.delay, 0.005 * whole.simulated);
  EXPECT_EQ(found.work, whole.work);
  EXPECT_NEAR(*found.model_flop / *whole.model_flop, 1, 1e-9);
  EXPECT_NEAR(found.memory.all / whole.memory.all, 1, 0.03);
  EXPECT_NEAR(found.memory.device / whole.memory.device, 1, 0.03);
  ASSERT_TRUE(whole.breakdown && found.breakdown && whole.loss && found.loss);
  using breakdown::Breakdown;
  const breakdown::Breakdown &parts = *whole.breakdown, &extended = *found.breakdown;
  // Copies from the host and gathers run ahead by a little more in each microbatch until they are
  // as far ahead as they can be, which changes what they overlap with.
  const double near = std::max(1e-3, tolerance) * parts.step;
  for (const auto part : {&Breakdown::compute, &Breakdown::copies, &Breakdown::transfer,
                          &Breakdown::gap, &Breakdown::other, &Breakdown::step}) {
    EXPECT_NEAR(extended.*part, parts.*part, near);
  }
  EXPECT_NEAR(extended.wait + extended.bubble, parts.wait + parts.bubble, near);
  // These steps are short, and messages are a large part of them: how much of the messages is
  // hidden, and where the bubble ends and the wait begins, settles late.
  const double roughly = 0.03 * parts.step;
  EXPECT_NEAR(extended.hidden_communication, parts.hidden_communication, roughly);
  EXPECT_NEAR(extended.bubble, parts.bubble, roughly);
  EXPECT_NEAR(found.loss->costs.gemm, whole.loss->costs.gemm, near);
  EXPECT_NEAR(found.loss->costs.waiting, whole.loss->costs.waiting, roughly);
}

TEST(StepEstimate, ExtendsLongStepsToWhatTheirWholeProgramsTake) {
  std::mt19937_64 random{3};
  for (int i = 0; i < (every_case() ? 60 : 25); ++i) {
    const std::optional<workloads::Request> drawn = long_step(random);
    if (!drawn) continue;
    simulate::Machine machine = samples::plain_sheet();
    machine.memory->bandwidth = 1e12;
    expect_extended(*drawn, machine, 1e-6);
    machine.noise.rank = 0.01;
    expect_extended(*drawn, machine, 1e-6);
    machine.noise = {};
    machine.overlap = {.compute = 1.2, .communication = 1.1};
    // All forward passes of gpipe run without waiting for each other, so their overlap with
    // messages changes from microbatch to microbatch.
    const auto schedule = drawn->options.find("schedule");
    const bool drifts = schedule != drawn->options.end() && schedule->second == "gpipe";
    expect_extended(*drawn, machine, drifts ? 1e-2 : 1e-3);
  }
}

TEST(StepEstimate, SimulatesWhatIsShortOrUnevenAsAWhole) {
  const auto is_extended = [](const mesh::Shape& mesh, const std::string& options) {
    return predict::short_steps(request(mesh, workloads::options_of("microbatch=1 " + options)));
  };
  EXPECT_TRUE(is_extended({.dp = 2, .pp = 4}, "batch=26"));  // 13 microbatches
  EXPECT_FALSE(is_extended({.dp = 2, .pp = 4}, "batch=24"));
  EXPECT_TRUE(is_extended({.ep = 2}, "batch=128 experts=8"));
  EXPECT_FALSE(is_extended({.ep = 2}, "batch=128 experts=8 skew=1"));
  EXPECT_FALSE(is_extended({.dp = 2}, "batch=128 partition=skewed:2"));
}

/// Returns what a run writes about a point with two stages and the output projection on the last.
results::PointData point_with(const char* recompute, const char* schedule) {
  workloads::Options options = workloads::options_of("batch=8 microbatch=2 vocabulary=on");
  options["schedule"] = schedule;
  options["recompute"] = recompute;
  const workloads::Request of = request({.tp = 2, .pp = 2}, options);
  const program::ProgramSet set = hybrid().build(of);
  results::PointData point;
  point.mesh = of.mesh;
  point.ranks = of.mesh.size();
  point.options.insert(of.options.begin(), of.options.end());
  for (int rank = 0; rank < point.ranks; ++rank) {
    point.flop_of_rank.push_back(program::facts(set.of(rank), of.mesh).flop.value());
  }
  point.outline = program::outline(set, program::Section::step);
  return point;
}

double all_flop(const results::PointData& point) {
  return std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end());
}

TEST(ModelFlop, LeavesOutWhatIsComputedAgain) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const results::PointData none = point_with("none", schedule);
    EXPECT_EQ(model_flop_per_step(none), all_flop(none));
    for (const char* recompute : {"selective", "full"}) {
      const results::PointData point = point_with(recompute, schedule);
      EXPECT_GT(all_flop(point), 1.001 * all_flop(none)) << recompute;
      EXPECT_DOUBLE_EQ(model_flop_per_step(point).value_or(0), all_flop(none)) << recompute;
    }
  }
  // It is not known of a recomputing step without its ops.
  results::PointData point = point_with("full", "1f1b");
  point.outline = {};
  EXPECT_FALSE(model_flop_per_step(point));
  point.options.erase("recompute");
  EXPECT_EQ(model_flop_per_step(point), all_flop(point));
  point.flop_of_rank.clear();
  EXPECT_FALSE(model_flop_per_step(point));
}

}  // namespace
}  // namespace isoscale::analysis
