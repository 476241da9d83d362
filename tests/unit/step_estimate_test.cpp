// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/step_estimate.hpp"

#include <numeric>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/pipeline_report.hpp"
#include "analysis/efficiency/losses.hpp"
#include "analysis/report.hpp"
#include "analysis_test.hpp"
#include "predict_samples.hpp"
#include "program/facts.hpp"
#include "workloads/registry.hpp"

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
  return predict::estimate_step(hybrid(), of, machine, simulate::packed(of.mesh.size(), 8), detail);
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
  EXPECT_DOUBLE_EQ(found.memory_per_rank, memory);
  EXPECT_DOUBLE_EQ(found.device_memory_per_rank, memory);
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
    ASSERT_TRUE(costs.has_value());
    EXPECT_TRUE(costs->gemm_alone.has_value());
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
  ASSERT_TRUE(formula.has_value());
  EXPECT_NEAR(*formula, 1.0 / 17, 1e-9);
  const breakdown::BreakdownResult parts = breakdown::breakdown(*found.point);
  EXPECT_NEAR(parts.mean->bubble / parts.mean->step, 1.0 / 17, 1e-3);
}

TEST(StepEstimate, RefusesALayoutOfOtherRanks) {
  EXPECT_THROW((void)predict::estimate_step(hybrid(), request({.dp = 2}), samples::plain_sheet(),
                                            simulate::packed(1, 1), predict::Detail::time),
               std::invalid_argument);
}

/// Returns what a run writes about a point with two stages and the output projection on the last.
results::PointData point_with(const char* recompute, const char* schedule) {
  const workloads::Request of = request({.tp = 2, .pp = 2}, {{"batch", "8"},
                                                             {"microbatch", "2"},
                                                             {"vocabulary", "on"},
                                                             {"schedule", schedule},
                                                             {"recompute", recompute}});
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
