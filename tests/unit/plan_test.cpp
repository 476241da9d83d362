// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planned_runs.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using samples::config_of;
using samples::refusal;
using samples::site_of;
using settings::RunConfig;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using workloads::Scaling;

std::vector<int> ranks_of(const plan::Plan& plan) {
  std::vector<int> ranks(plan.points.size());
  std::transform(plan.points.begin(), plan.points.end(), ranks.begin(),
                 [](const plan::PlannedPoint& point) { return point.ranks; });
  return ranks;
}

TEST(PlanCounts, DoubleUpToTheWorldAndTheWorld) {
  EXPECT_THAT(ranks_of(plan::make_plan(config_of("dp"), site_of(1))), ElementsAre(1));
  EXPECT_THAT(ranks_of(plan::make_plan(config_of("dp"), site_of(8))), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(ranks_of(plan::make_plan(config_of("dp"), site_of(6))), ElementsAre(1, 2, 4, 6));
}

TEST(PlanCounts, AreAsNamed) {
  RunConfig config = config_of("dp");
  config.rank_counts = settings::RankCounts::every;
  EXPECT_THAT(ranks_of(plan::make_plan(config, site_of(5))), ElementsAre(1, 2, 3, 4, 5));
  config.ranks = {2, 8};
  EXPECT_THAT(ranks_of(plan::make_plan(config, site_of(16))), ElementsAre(2, 8));
  config = config_of("dp");
  config.experiments[0].max_ranks = 4;
  EXPECT_THAT(ranks_of(plan::make_plan(config, site_of(16))), ElementsAre(1, 2, 4));
}

TEST(PlanCounts, BeyondTheWorldAreRefused) {
  RunConfig config = config_of("dp");
  config.ranks = {1, 8};
  EXPECT_THAT(refusal(config, site_of(4)),
              AllOf(HasSubstr("--ranks 8"), HasSubstr("4 ranks"), HasSubstr("-np 8")));
}

TEST(PlanOrder, ExperimentAfterExperimentNumberedThrough) {
  RunConfig config = config_of("dp");
  config.experiments.push_back(config_of("tp").experiments.front());
  const plan::Plan plan = plan::make_plan(config, site_of(2));
  ASSERT_EQ(plan.points.size(), 4U);
  for (int i = 0; i < 4; ++i) {
    const plan::PlannedPoint& point = plan.points[static_cast<std::size_t>(i)];
    EXPECT_EQ(point.index, i);
    EXPECT_EQ(point.workload->name, i < 2 ? "dp" : "tp");
    EXPECT_EQ(point.experiment, &config.experiments[i < 2 ? 0 : 1]);
    EXPECT_EQ(point.request.mesh,
              i % 2 == 0 ? mesh::Shape{} : (i < 2 ? mesh::Shape{.dp = 2} : mesh::Shape{.tp = 2}));
  }
}

TEST(PlanMisfits, AreSkippedWhenChosen) {
  // 16 samples in microbatches of 2 do not divide by 3 or 6.
  RunConfig config = config_of("dp");
  config.rank_counts = settings::RankCounts::every;
  const plan::Plan plan = plan::make_plan(config, site_of(6));
  ASSERT_EQ(plan.points.size(), 6U);
  for (const plan::PlannedPoint& point : plan.points) {
    const bool fits = 16 % point.ranks == 0;
    EXPECT_EQ(point.skip_reason.empty(), fits) << point.ranks;
    EXPECT_EQ(point.flop_per_step.has_value(), fits);
    EXPECT_EQ(point.memory_per_rank.has_value(), fits);
    EXPECT_EQ(point.sent_per_step.has_value(), fits);
  }
  EXPECT_THAT(plan.points[2].skip_reason, AllOf(HasSubstr("batch=16"), HasSubstr("dp=3")));
}

TEST(PlanMisfits, AreRefusedWhenNamed) {
  RunConfig config = config_of("dp");
  config.ranks = {1, 3};
  EXPECT_THAT(refusal(config, site_of(4)),
              AllOf(HasSubstr("dp on 3 ranks"), HasSubstr("batch=16"), HasSubstr("dp=3")));
  // A suite names counts for many workloads; not all of them fit every one.
  config.suite = "quick";
  const plan::Plan plan = plan::make_plan(config, site_of(4));
  EXPECT_TRUE(plan.points[0].skip_reason.empty());
  EXPECT_FALSE(plan.points[1].skip_reason.empty());
}

TEST(PlanMisfits, OfTheModelNameTheNumbers) {
  RunConfig config = config_of("pp");
  config.ranks = {8};
  EXPECT_THAT(refusal(config, site_of(8)),
              AllOf(HasSubstr("pp"), HasSubstr("layers"), HasSubstr("4")));
  config.experiments[0] = config_of("tp").experiments[0];
  config.ranks = {16};
  EXPECT_THAT(refusal(config, site_of(16)), AllOf(HasSubstr("kv_heads"), HasSubstr("8")));
}

TEST(PlanMisfits, ThatLeaveNothingAreRefused) {
  RunConfig config = config_of("dp", {{mesh::Axis::dp, 3}});
  // Chosen counts 1, 2, 4: none of them is 3.
  EXPECT_THAT(refusal(config, site_of(4)), HasSubstr("nothing is left to run"));
  config.experiments.clear();
  EXPECT_THAT(refusal(config, site_of(4)), HasSubstr("nothing to run"));
}

TEST(PlanMesh, AxesThatAWorkloadLacksAreRefused) {
  const std::string text = refusal(config_of("dp", {{mesh::Axis::tp, 2}}), site_of(4));
  EXPECT_THAT(text, AllOf(HasSubstr("--mesh tp=2"), HasSubstr("dp"), HasSubstr("hybrid")));
  EXPECT_EQ(refusal(config_of("dp", {{mesh::Axis::tp, 1}}), site_of(4)), "");
  // An unnamed dp absorbs the rest, which only some workloads have.
  RunConfig config = config_of("tp", {{mesh::Axis::tp, 2}});
  config.ranks = {4};
  EXPECT_THAT(refusal(config, site_of(4)), HasSubstr("no axis dp"));
}

TEST(PlanMesh, UnnamedDpAbsorbsTheRest) {
  RunConfig config = config_of("hybrid", {{mesh::Axis::tp, 2}, {mesh::Axis::pp, 2}});
  config.ranks = {4, 8, 16};
  const plan::Plan plan = plan::make_plan(config, site_of(16));
  EXPECT_EQ(plan.points[0].request.mesh, (mesh::Shape{.tp = 2, .pp = 2}));
  EXPECT_EQ(plan.points[1].request.mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  EXPECT_EQ(plan.points[2].request.mesh, (mesh::Shape{.tp = 2, .dp = 4, .pp = 2}));
}

std::vector<std::string> meshes_of(const plan::Plan& plan) {
  std::vector<std::string> meshes;
  for (const plan::PlannedPoint& point : plan.points) {
    meshes.push_back(point.skip_reason.empty() ? mesh::to_text(point.request.mesh) : "skipped");
  }
  return meshes;
}

TEST(PlanMesh, OfAHybridCurveGrowsAlongDpAlone) {
  const auto meshes = [](int ranks, int per_node, std::vector<int> named = {}) {
    RunConfig config = config_of("hybrid");
    config.ranks = std::move(named);
    return meshes_of(plan::make_plan(config, site_of(ranks, per_node)));
  };
  EXPECT_THAT(meshes(1, 8), ElementsAre("dp=1"));
  EXPECT_THAT(meshes(2, 8), ElementsAre("dp=1", "dp=2"));
  EXPECT_THAT(meshes(4, 8), ElementsAre("skipped", "tp=2", "dp=2,tp=2"));
  EXPECT_THAT(meshes(16, 8),
              ElementsAre("skipped", "skipped", "tp=2,pp=2", "dp=2,tp=2,pp=2", "dp=4,tp=2,pp=2"));
  EXPECT_THAT(meshes(16, 8, {1, 16}), ElementsAre("skipped", "dp=4,tp=2,pp=2"));
  EXPECT_THAT(meshes(4, 8, {1, 2, 4}), ElementsAre("skipped", "tp=2", "dp=2,tp=2"));
  // A node of one rank holds no tp; a count that all axes do not divide has no point.
  EXPECT_THAT(meshes(4, 1), ElementsAre("dp=1", "dp=2", "dp=4"));
  EXPECT_THAT(meshes(9, 9),
              ElementsAre("skipped", "skipped", "tp=2,pp=2", "dp=2,tp=2,pp=2", "skipped"));
}

TEST(PlanMemory, OfMachinesThatNobodyLookedAtMarksAndRefusesNothing) {
  plan::Site site = site_of(2, 1);
  site.memory_of = plan::MemoryOf::this_machine;
  site.memory_free.assign(2, units::Bytes{98'304});
  RunConfig config = config_of("dp");
  config.ranks = {2};
  const plan::Plan plan = plan::make_plan(config, site);
  EXPECT_EQ(plan.points[0].skip_reason, "");
  EXPECT_THAT(plan.points[0].misfit, HasSubstr(" of 96.0 KiB"));
  site.memory_free.assign(2, units::Bytes{16U << 20U});
  EXPECT_EQ(plan::make_plan(config, site).points[0].misfit, "");
}

TEST(PlanMemory, BeyondWhatIsFreeIsToldInNumbers) {
  // dp keeps all weights on each rank: 4 layers x 12 h^2 weights and as many gradients in f32, and
  // 8 microbatches of input, are more than 96 KiB.
  plan::Site site = site_of(2);
  site.memory_free = {units::Bytes{98'304}};
  RunConfig config = config_of("dp");
  EXPECT_THAT(refusal(config, site),
              AllOf(HasSubstr("nothing is left"), HasSubstr("on node 0 for 2 ranks"),
                    HasSubstr("96.0 KiB is free there")));
  config.ranks = {2};
  EXPECT_THAT(refusal(config, site),
              AllOf(HasSubstr("dp on 2 ranks"), HasSubstr("small"), HasSubstr("96.0 KiB")));
  site.memory_free = {units::Bytes{16U << 20U}};
  const plan::Plan plan = plan::make_plan(config, site);
  EXPECT_GT(plan.points[0].memory_per_rank->value(), 2U * 4 * 12 * 16 * 16 * 4);
}

/// Returns the memory that a rank of dp on so many ranks needs; all its ranks are alike.
std::uint64_t need_of_dp(int ranks) {
  RunConfig config = config_of("dp");
  config.ranks = {ranks};
  return plan::make_plan(config, site_of(ranks)).points.front().memory_per_rank->value();
}

/// Returns whether dp on `ranks` fits into nodes with so much free each.
bool fits(int ranks, plan::Site site, const std::vector<std::uint64_t>& free,
          settings::FillIdle fill = settings::FillIdle::idle,
          mesh::Placement placement = mesh::Placement::packed) {
  RunConfig config = config_of("dp");
  config.ranks = {ranks};
  config.fill = fill;
  config.experiments[0].placement = placement;
  for (const std::uint64_t bytes : free) site.memory_free.emplace_back(units::Bytes{bytes});
  return refusal(config, site).empty();
}

TEST(PlanMemory, RanksThatPlayOnANodeTakeFromOnePool) {
  const auto idle = settings::FillIdle::idle, replicas = settings::FillIdle::replicas;
  struct Case {
    int ranks, world;
    std::uint64_t playing;
    settings::FillIdle fill;
  };
  // The last: two ranks and one copy of them; the fifth sleeps.
  for (const Case& at : {Case{1, 4, 1, idle}, Case{4, 4, 4, idle}, Case{1, 4, 4, replicas},
                         Case{2, 5, 4, replicas}}) {
    const std::uint64_t need = at.playing * need_of_dp(at.ranks);
    EXPECT_TRUE(fits(at.ranks, site_of(at.world), {need}, at.fill)) << at.ranks;
    EXPECT_FALSE(fits(at.ranks, site_of(at.world), {need - 1}, at.fill)) << at.ranks;
  }
}

TEST(PlanMemory, NodesAreSeparate) {
  const std::uint64_t need = need_of_dp(2);
  const auto idle = settings::FillIdle::idle;
  EXPECT_TRUE(fits(2, site_of(4, 2), {need, need}, idle, mesh::Placement::spread));
  EXPECT_FALSE(fits(2, site_of(4, 2), {need, need}, idle, mesh::Placement::packed));
  EXPECT_TRUE(fits(2, site_of(4, 2), {2 * need, 0}, idle, mesh::Placement::packed));
  EXPECT_FALSE(fits(2, site_of(4, 2), {2 * need, 0}, idle, mesh::Placement::spread));
  // The plan knows nothing of the second node.
  EXPECT_TRUE(fits(2, site_of(4, 2), {need}, idle, mesh::Placement::spread));
}

TEST(PlanMemory, DevicesOfTheirOwnDoNotSumUp) {
  plan::Site site = site_of(4);
  site.memory_pool = executor::MemoryPool::rank;
  EXPECT_TRUE(fits(4, site, {need_of_dp(4)}));
  EXPECT_FALSE(fits(4, site, {need_of_dp(4) - 1}));
}

TEST(PlanMemory, UnknownRefusesNothing) {
  RunConfig config = config_of("dp");
  config.experiments[0].base.model.hidden = 4096;
  config.experiments[0].base.model.ffn = 16384;
  EXPECT_EQ(refusal(config, site_of(1)), "");
}

TEST(PlanPrecision, ThatTheDeviceLacksIsRefused) {
  RunConfig config = config_of("dp");
  config.experiments[0].base.precision = Precision::bf16;
  EXPECT_THAT(refusal(config, site_of(2)),
              AllOf(HasSubstr("--dtype bf16"), HasSubstr("host"), HasSubstr("f64, f32")));
}

TEST(PlanScaling, StrongKeepsModelAndBatch) {
  const plan::Plan plan = plan::make_plan(config_of("dp"), site_of(16));
  double flop = 0;
  for (const plan::PlannedPoint& point : plan.points) {
    EXPECT_EQ(point.request.options.at("batch"), "16");
    EXPECT_EQ(point.request.model.layers, 4);
    EXPECT_DOUBLE_EQ(point.request.growth, 1);
    if (flop == 0) flop = *point.flop_per_step;
    EXPECT_DOUBLE_EQ(*point.flop_per_step, flop);
  }
  // Microbatches give way first: 8, 4, 2, 1, then a smaller microbatch.
  EXPECT_EQ(plan.points[2].request.options.at("microbatches"), "2");
  EXPECT_EQ(plan.points[4].request.options.at("microbatches"), "1");
  EXPECT_EQ(plan.points[4].request.options.at("microbatch"), "1");
}

TEST(PlanScaling, WeakGrowsWithTheMesh) {
  RunConfig config = config_of("hybrid", {{mesh::Axis::tp, 2}, {mesh::Axis::pp, 2}});
  config.experiments[0].scaling = Scaling::weak;
  config.ranks = {8};
  const plan::PlannedPoint point = plan::make_plan(config, site_of(8)).points.front();
  EXPECT_EQ(point.request.mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  EXPECT_EQ(point.request.options.at("batch"), "32");
  EXPECT_EQ(point.request.options.at("microbatches"), "8");
  EXPECT_EQ(point.request.model.heads, 16);
  EXPECT_EQ(point.request.model.ffn, 128);
  EXPECT_EQ(point.request.model.layers, 8);
  EXPECT_EQ(point.request.model.hidden, 16);
  EXPECT_DOUBLE_EQ(point.request.growth, 4);
  // Every rank's GEMMs are those of one rank.
  config.ranks = {1};
  config.experiments[0].mesh = {};
  const double one = *plan::make_plan(config, site_of(8)).points.front().flop_per_step;
  EXPECT_DOUBLE_EQ(*point.flop_per_step, 8 * one);
}

TEST(PlanPlacement, PacksOrSpreadsOverNodes) {
  // Four nodes of four ranks, dealt out in turn, as a cyclic launcher numbers them.
  plan::Site site = site_of(16);
  for (int rank = 0; rank < 16; ++rank)
    site.node_of_rank[static_cast<std::size_t>(rank)] = rank % 4;
  RunConfig config = config_of("dp");
  config.ranks = {1, 4, 8, 16};
  const plan::Plan packed = plan::make_plan(config, site);
  EXPECT_THAT(packed.points[0].world_ranks, ElementsAre(0));
  EXPECT_THAT(packed.points[1].world_ranks, ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(packed.points[2].world_ranks, ElementsAre(0, 4, 8, 12, 1, 5, 9, 13));
  EXPECT_EQ(packed.points[0].nodes, 1);
  EXPECT_EQ(packed.points[1].nodes, 1);
  EXPECT_EQ(packed.points[2].nodes, 2);
  EXPECT_EQ(packed.points[3].nodes, 4);
  config.experiments[0].placement = mesh::Placement::spread;
  const plan::Plan spread = plan::make_plan(config, site);
  EXPECT_THAT(spread.points[1].world_ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(spread.points[2].world_ranks, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_EQ(spread.points[1].nodes, 4);
  EXPECT_EQ(spread.points[2].nodes, 4);
}

TEST(PlanTraffic, IsTheTextbooks) {
  // dp: every rank reduces its 4 layers x (qkv 16x48 + projection 16x16 + MLP 2 x 16x64) f32
  // gradients once: 49 152 bytes, of which a ring of four sends 2 x 3/4.
  RunConfig config = config_of("dp");
  config.ranks = {1, 4};
  const plan::Plan plan = plan::make_plan(config, site_of(4));
  EXPECT_EQ(plan.points[0].sent_per_step->value(), 0U);
  EXPECT_EQ(plan.points[1].sent_per_step->value(), 4U * 73'728);
}

TEST(PlanTraffic, OfAPipelineIsOneActivationPerMicrobatchAndDirection) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    RunConfig config = config_of("pp");
    config.experiments[0].base.options["schedule"] = schedule;
    config.ranks = {2};
    // 8 microbatches of 2 sequences x 4 tokens x 16 elements x 4 bytes, there and back.
    EXPECT_EQ(plan::make_plan(config, site_of(2)).points.front().sent_per_step->value(),
              8U * 2 * 512)
        << schedule;
  }
}

TEST(PlanTraffic, IsToldByAxis) {
  RunConfig config = config_of("hybrid");
  config.experiments[0].mesh = {{mesh::Axis::dp, 2}, {mesh::Axis::tp, 2}};
  config.ranks = {4};
  const plan::Plan plan = plan::make_plan(config, site_of(4, 2));
  const plan::PlannedPoint& point = plan.points.front();
  ASSERT_EQ(point.sent_by_axes.size(), 2U);
  EXPECT_EQ(point.sent_by_axes[0].axes, mesh::AxisSet{mesh::Axis::tp});
  EXPECT_EQ(point.sent_by_axes[1].axes, mesh::AxisSet{mesh::Axis::dp});
  EXPECT_EQ(point.sent_by_axes[0].sent + point.sent_by_axes[1].sent, *point.sent_per_step);
  // tp on neighbours, on one node; dp between the two nodes.
  EXPECT_EQ(point.reach, "tp intra-node, dp inter-node");
}

TEST(PlanLoad, IsOfTheRankThatHasMostToDo) {
  RunConfig config = config_of("dp");
  config.ranks = {4};
  const plan::PlannedPoint point = plan::make_plan(config, site_of(4)).points.front();
  EXPECT_DOUBLE_EQ(point.load.flop, *point.flop_per_step / 4);
  EXPECT_EQ(point.load.sent.value(), 73'728U);
  EXPECT_EQ(point.load.memory, *point.memory_per_rank);
  EXPECT_EQ(point.load.cases, 0);
}

/// Returns the rows that a micro-benchmark with default options measures on a device.
std::vector<workloads::RowSpec> rows_on(std::string_view device, const std::string& workload) {
  RunConfig config = config_of(workload);
  config.ranks = {2};
  config.experiments.front().base.options.clear();
  plan::Site site = site_of(2);
  site.device = device;
  const plan::PlannedPoint point = plan::make_plan(config, site).points.front();
  return point.workload->bench.build(point.request, 0).rows;
}

double largest(const std::vector<workloads::RowSpec>& rows, const std::string& number) {
  double value = 0;
  for (const workloads::RowSpec& row : rows) {
    const auto found = row.number.find(number);
    if (found != row.number.end()) value = std::max(value, found->second);
  }
  return value;
}

TEST(PlanDevice, MultiplicationsAreAsLargeAsItNeeds) {
  // 16384^3: below, a GPU does not reach its ceiling.
  constexpr double ceiling = 2.0 * 16384 * 16384 * 16384;
  for (const std::string workload : {"gemm", "calibrate"}) {
    EXPECT_EQ(largest(rows_on("cuda", workload), "flop"), ceiling) << workload;
    EXPECT_LT(largest(rows_on("host", workload), "flop"), ceiling / 60) << workload;
  }
  const std::vector<workloads::RowSpec> overlap = rows_on("cuda", "overlap");
  EXPECT_EQ(largest(overlap, "bytes"), 256 << 20);
  for (const workloads::RowSpec& row : overlap) {
    // 20 us and more at 1,000 TFLOP/s: several times what the launch takes.
    EXPECT_GE(row.number.at("flop"), 20e-6 * 1e15);
  }
  EXPECT_EQ(largest(rows_on("host", "overlap"), "bytes"), 16 << 20);
}

}  // namespace
}  // namespace isoscale::runner
