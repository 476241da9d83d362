// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "planned_runs.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner {
namespace {

using samples::config_of;
using samples::gpu_site_of;
using samples::refusal;
using samples::site_of;
using settings::RunConfig;

std::vector<int> ranks_of(const plan::Plan& plan) {
  return mapped(plan.points, &plan::PlannedPoint::ranks);
}

TEST(PlanCounts, DoubleUpToTheWorldAndTheWorldUnlessNamed) {
  const auto counts = [](int world, const auto& change) {
    RunConfig config = config_of("dp");
    change(config);
    return ranks_of(plan::make_plan(config, site_of(world)));
  };
  const auto chosen = [](RunConfig&) {};
  EXPECT_THAT(counts(1, chosen), ElementsAre(1));
  EXPECT_THAT(counts(8, chosen), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(counts(6, chosen), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(counts(5, [](RunConfig& c) { c.rank_counts = settings::RankCounts::every; }),
              ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(counts(16, [](RunConfig& c) { c.experiments[0].max_ranks = 4; }),
              ElementsAre(1, 2, 4));
  RunConfig config = config_of("dp");
  config.ranks = {2, 8};
  EXPECT_THAT(ranks_of(plan::make_plan(config, site_of(16))), ElementsAre(2, 8));
  EXPECT_THAT(refusal(config, site_of(4)), AllOf(HasSubstr("--ranks 8"), HasSubstr("-np 8")));
}

TEST(PlanIdleOptions, AreThoseThatHaveNoEffectOnAnyPoint) {
  RunConfig config = config_of("dp");
  config.experiments.push_back(config_of("pp").experiments.front());
  config.experiments.push_back(config_of("gemm").experiments.front());
  const auto idle = [&] { return plan::idle_options(plan::make_plan(config, site_of(2))); };
  EXPECT_THAT(idle(), IsEmpty());
  for (std::size_t i = 0; i < 2; ++i) {
    config.experiments[i].base.options.insert({{"v", "4"},
                                               {"compression_ratio", "50"},
                                               {"prefetch", "3"},
                                               {"gather_bucket", "1MiB"},
                                               {"topk", "1"},
                                               {"skew", "0"}});
  }
  EXPECT_EQ(idle().size(), 5U) << "skew has its default";
  config.experiments[0].base.options.insert({{"compression", "topk"}});
  config.experiments[1].base.options.insert({{"schedule", "interleaved"}, {"zero", "3"}});
  EXPECT_THAT(idle(), ElementsAre(HasSubstr("topk=1 has no effect without experts")));
}

TEST(PlanMisfits, AreSkippedWhenChosenAndRefusedWhenNamed) {
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
  }
  EXPECT_THAT(plan.points[2].skip_reason, AllOf(HasSubstr("batch=16"), HasSubstr("dp=3")));
  config.ranks = {1, 3};
  EXPECT_THAT(refusal(config, site_of(4)), AllOf(HasSubstr("batch=16"), HasSubstr("dp=3")));
  // A suite names counts for many workloads; not all of them fit every one.
  config.suite = "quick";
  const plan::Plan of_suite = plan::make_plan(config, site_of(4));
  EXPECT_TRUE(of_suite.points[0].skip_reason.empty());
  EXPECT_FALSE(of_suite.points[1].skip_reason.empty());
}

TEST(PlanMisfits, AreRefusedWithWhatDoesNotFit) {
  using mesh::Axis;
  RunConfig bf16 = config_of("dp"), none;
  bf16.experiments[0].base.precision = program::Precision::bf16;
  using Ranks = std::vector<int>;
  for (const auto& [base, ranks, words] : {
           std::tuple{config_of("pp"), Ranks{8}, testing_support::Words{"pp", "layers", "4"}},
           {config_of("tp"), {16}, {"kv_heads", "8"}},
           // Chosen counts 1, 2, 4, 8, 16: none of them is 3.
           {config_of("dp", {{Axis::dp, 3}}), {}, {"nothing is left"}},
           {none, {}, {"nothing to run"}},
           // An unnamed dp absorbs the rest, which only some workloads have.
           {config_of("tp", {{Axis::tp, 2}}), {4}, {"no axis dp"}},
           {bf16, {}, {"--dtype bf16", "host", "f64, f32"}},
       }) {
    RunConfig config = base;
    config.ranks = ranks;
    testing_support::expect_words(refusal(config, site_of(16)), words);
  }
  EXPECT_EQ(refusal(config_of("dp", {{Axis::tp, 1}}), site_of(4)), "");
}

TEST(PlanMesh, OfAHybridCurveGrowsAlongDpAlone) {
  const auto meshes = [](int ranks, int per_node, std::vector<int> named = {},
                         const mesh::Request& mesh = {}) {
    RunConfig config = config_of("hybrid", mesh);
    config.ranks = std::move(named);
    return mapped(plan::make_plan(config, site_of(ranks, per_node)).points,
                  [](const plan::PlannedPoint& point) {
                    return point.skip_reason.empty() ? mesh::to_text(point.request.mesh)
                                                     : "skipped";
                  });
  };
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
  // A dp that is not named absorbs the rest.
  EXPECT_THAT(meshes(16, 1'000, {4, 8, 16}, {{mesh::Axis::tp, 2}, {mesh::Axis::pp, 2}}),
              ElementsAre("tp=2,pp=2", "dp=2,tp=2,pp=2", "dp=4,tp=2,pp=2"));
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
              AllOf(HasSubstr("node 0"), HasSubstr("2 ranks"), HasSubstr("96.0 KiB")));
  config.ranks = {2};
  EXPECT_THAT(refusal(config, site), AllOf(HasSubstr("small"), HasSubstr("96.0 KiB")));
  site.memory_free = {units::Bytes{16U << 20U}};
  const plan::Plan plan = plan::make_plan(config, site);
  EXPECT_GT(plan.points[0].memory_per_rank->value(), 2U * 4 * 12 * 16 * 16 * 4);
}

plan::PlannedPoint point_on(int ranks, RunConfig config, int per_node = 1'000) {
  config.ranks = {ranks};
  return plan::make_plan(config, site_of(ranks, per_node)).points.front();
}

/// Returns the memory that a rank of dp on so many ranks needs; all its ranks are alike.
std::uint64_t need_of_dp(int ranks) {
  return point_on(ranks, config_of("dp")).memory_per_rank->value();
}

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
  // The last: two ranks and one copy of them; the fifth sleeps.
  for (const auto& [ranks, world, playing, fill] :
       {std::tuple{1, 4, 1U, idle}, {4, 4, 4U, idle}, {1, 4, 4U, replicas}, {2, 5, 4U, replicas}}) {
    const std::uint64_t need = playing * need_of_dp(ranks);
    EXPECT_TRUE(fits(ranks, site_of(world), {need}, fill)) << ranks;
    EXPECT_FALSE(fits(ranks, site_of(world), {need - 1}, fill)) << ranks;
  }
}

TEST(PlanMemory, RanksThatShareAGpuTakeFromIt) {
  // Neither ranks beyond those that share a GPU sum up, nor their buffers in host memory.
  RunConfig config = config_of("dp");
  config.experiments[0].base.options["input"] = "pinned";
  config.ranks = {4};
  const plan::PlannedPoint point =
      plan::make_plan(config, gpu_site_of(4, std::nullopt)).points.front();
  ASSERT_GT(point.host_memory_per_rank, units::Bytes{0});
  const units::Bytes of_rank = *point.memory_per_rank - point.host_memory_per_rank;
  for (const int sharing : {1, 2, 4}) {
    const std::uint64_t need = static_cast<std::uint64_t>(sharing) * of_rank.value();
    EXPECT_EQ(refusal(config, gpu_site_of(4, units::Bytes{need}, 4, sharing)), "");
    EXPECT_THAT(refusal(config, gpu_site_of(4, units::Bytes{need - 1}, 4, sharing)),
                HasSubstr(units::format(units::Bytes{need - 1})));
  }
}

TEST(PlanMemory, NodesAreSeparateAndWhatIsUnknownRefusesNothing) {
  const auto spread = mesh::Placement::spread, packed = mesh::Placement::packed;
  const std::uint64_t need = need_of_dp(2);
  for (const auto& [free, placement, fit] : {std::tuple{std::vector{need, need}, spread, true},
                                             {{need, need}, packed, false},
                                             {{2 * need, 0}, packed, true},
                                             {{2 * need, 0}, spread, false},
                                             {{need}, spread, true},  // unknown of the second node
                                             {{}, packed, true}}) {
    EXPECT_EQ(fits(2, site_of(4, 2), free, settings::FillIdle::idle, placement), fit);
  }
}

TEST(PlanScaling, WeakGrowsWithTheMesh) {
  RunConfig config = config_of("hybrid", {{mesh::Axis::tp, 2}, {mesh::Axis::pp, 2}});
  config.experiments[0].scaling = workloads::Scaling::weak;
  const workloads::Request request = point_on(8, config).request;
  EXPECT_EQ(request.mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  EXPECT_EQ(request.options.at("batch"), "32");
  EXPECT_EQ(request.model.layers, 8);
  EXPECT_DOUBLE_EQ(request.growth, 4);
}

TEST(PlanPlacement, PacksOrSpreadsOverNodes) {
  // Four nodes of four ranks, dealt out in turn, as a cyclic launcher numbers them.
  plan::Site site = site_of(16);
  for (std::size_t rank = 0; rank < 16; ++rank)
    site.node_of_rank[rank] = static_cast<int>(rank % 4);
  RunConfig config = config_of("dp");
  config.ranks = {1, 4, 8, 16};
  const plan::Plan packed = plan::make_plan(config, site);
  EXPECT_THAT(packed.points[0].world_ranks, ElementsAre(0));
  EXPECT_THAT(packed.points[1].world_ranks, ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(packed.points[2].world_ranks, ElementsAre(0, 4, 8, 12, 1, 5, 9, 13));
  config.experiments[0].placement = mesh::Placement::spread;
  const plan::Plan spread = plan::make_plan(config, site);
  EXPECT_THAT(spread.points[1].world_ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(spread.points[2].world_ranks, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(mapped(packed.points, &plan::PlannedPoint::nodes), ElementsAre(1, 1, 2, 4));
  EXPECT_THAT(mapped(spread.points, &plan::PlannedPoint::nodes), ElementsAre(1, 4, 4, 4));
}

std::uint64_t sent_by(const plan::PlannedPoint& point) {
  units::Bytes sum{0};
  for (const auto& [axes, sent] : point.sent_by_axes) sum += sent;
  return sum.value();
}

TEST(PlanTraffic, IsTheTextbooks) {
  // dp: every rank reduces its 4 layers x (qkv 16x48 + projection 16x16 + MLP 2 x 16x64) f32
  // gradients once: 49 152 bytes, of which a ring of four sends 2 x 3/4.
  EXPECT_EQ(sent_by(point_on(1, config_of("dp"))), 0U);
  const plan::PlannedPoint dp = point_on(4, config_of("dp"));
  EXPECT_EQ(sent_by(dp), 4U * 73'728);
  // The load is of the rank that has most to do.
  EXPECT_DOUBLE_EQ(dp.load.flop, *dp.flop_per_step / 4);
  EXPECT_EQ(dp.load.sent.value(), 73'728U);
  EXPECT_EQ(dp.load.cases, 0);
}

TEST(PlanTraffic, IsToldByAxis) {
  const plan::PlannedPoint point =
      point_on(4, config_of("hybrid", {{mesh::Axis::dp, 2}, {mesh::Axis::tp, 2}}), 2);
  ASSERT_EQ(point.sent_by_axes.size(), 2U);
  EXPECT_EQ(point.sent_by_axes.begin()->first, mesh::AxisSet{mesh::Axis::tp});
  EXPECT_EQ(point.sent_by_axes.rbegin()->first, mesh::AxisSet{mesh::Axis::dp});
  EXPECT_EQ(sent_by(point), 4 * point.load.sent.value());  // all ranks send alike
  // tp on neighbours, on one node; dp between the two nodes.
  EXPECT_EQ(point.reach, "tp intra-node, dp inter-node");
}

/// Returns the largest value that a number has in the rows of a micro-benchmark on a device.
double largest(std::string_view device, const std::string& workload, const std::string& number) {
  RunConfig config = config_of(workload);
  config.ranks = {2};
  config.experiments.front().base.options.clear();
  plan::Site site = site_of(2);
  site.device = device;
  const plan::PlannedPoint point = plan::make_plan(config, site).points.front();
  double value = 0;
  for (const workloads::RowSpec& row : point.workload->bench.build(point.request, 0).rows) {
    if (row.number.contains(number)) value = std::max(value, row.number.at(number));
  }
  return value;
}

TEST(PlanDevice, MultiplicationsAreAsLargeAsItNeeds) {
  // 16384^3: below, a GPU does not reach its ceiling.
  constexpr double ceiling = 2.0 * 16384 * 16384 * 16384;
  for (const std::string workload : {"gemm", "calibrate"}) {
    EXPECT_EQ(largest("cuda", workload, "flop"), ceiling) << workload;
    EXPECT_LT(largest("host", workload, "flop"), ceiling / 60) << workload;
  }
  EXPECT_EQ(largest("cuda", "overlap", "bytes"), 256 << 20);
  EXPECT_EQ(largest("host", "overlap", "bytes"), 16 << 20);
}

}  // namespace
}  // namespace isoscale::runner
