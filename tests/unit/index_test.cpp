// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/catalog/index.hpp"
#include "analysis/breakdown/replay.hpp"
#include "analysis/curves.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/render.hpp"
#include "analysis_test.hpp"
#include "launch_samples.hpp"
#include "results/records/point_facts.hpp"
#include "simulate/simulate.hpp"
#include "workloads/registry.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Reach;
using nlohmann::json;
using samples::add;
using samples::JoinedLaunches;
using samples::launch;
using samples::launch_of;
using samples::measured;

catalog::IndexRun indexed(const results::RunData& run, const std::string& file = "a.h5") {
  return catalog::index_run(make_report(run, file, {}));
}

TEST(Index, HostsWithNumbersAreShortened) {
  EXPECT_EQ(catalog::shorten_hosts({"node0001", "node0002", "node0003", "node0007", "login"}),
            "login, node[0001-0003,0007]");
  EXPECT_EQ(catalog::shorten_hosts({"n1.cluster", "n2.cluster", "n10.cluster"}), "n[1-2], n10");
  EXPECT_EQ(catalog::shorten_hosts({"n1", "n3", "n5", "n7", "n9"}), "n[1,3,5,7] and 1 more");
  EXPECT_EQ(catalog::shorten_hosts({}), "");
  EXPECT_EQ(catalog::shorten_hosts({"999999999999999999999999"}), "999999999999999999999999");
}

TEST(Index, TakesTheLargestPointWithAThroughput) {
  results::RunData run = launch("a", 1, 8);
  add(run, {.dp = 1}, 0.080);
  add(run, {.dp = 4}, 0.025);
  add(run, {.dp = 8}, 0.010).status = results::PointStatus::failed;
  const catalog::IndexRun of = indexed(run);
  ASSERT_EQ(of.experiments.size(), 1U);
  EXPECT_EQ(of.experiments[0].ranks, 4);
  EXPECT_NEAR(*of.experiments[0].throughput, 1024 / 0.025, 0.002 * 1024 / 0.025);
  EXPECT_NEAR(*of.experiments[0].efficiency, 0.080 / 0.025 / 4, 0.002);
  EXPECT_EQ(of.experiments[0].ok, 2);
  EXPECT_EQ(of.experiments[0].failed, 1);
}

TEST(Index, VerifiedIsOfAllThatWasPlayed) {
  results::RunData run = launch("a", 1, 4);
  add(run, {.dp = 1}, 0.04);
  add(run, {.dp = 2}, 0.02).verified.reset();
  EXPECT_EQ(indexed(run).experiments[0].verified, std::nullopt);
  run.points[1].status = results::PointStatus::skipped;
  EXPECT_EQ(indexed(run).experiments[0].verified, true);
  add(run, {.dp = 4}, 0.01).verified = false;
  EXPECT_EQ(indexed(run).experiments[0].verified, false);
}

TEST(Index, ASummarySaysTheSameAsAReport) {
  const results::RunData run = samples::two_curves();
  results::Confidences confidences;
  const results::RunSummary summary = results::summary_of(run, confidences);
  const render::IndexReport whole{.index = catalog::make_index({indexed(run)})};
  const render::IndexReport shallow{
      .index = catalog::make_index({catalog::index_run(summarise(summary, "a.h5", {}))})};
  EXPECT_EQ(render::render_index_json(whole), render::render_index_json(shallow));
  EXPECT_THAT(render::render_index_json(whole), HasSubstr("tokens/s"));
}

TEST(Index, MachinesAreToldApartAndTrendsKeepToThem) {
  results::RunData other = launch_of("c", 1, 4, 0.01);
  for (auto& facts : other.rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  std::vector<catalog::IndexRun> runs{indexed(launch_of("a", 1, 4, 0.04)),
                                      indexed(launch_of("b", 1, 4, 0.02)), indexed(other),
                                      indexed(launch_of("d", 2, 4, 0.01))};
  runs[0].created = "2026-02-01";
  const catalog::Index index = catalog::make_index(runs);
  ASSERT_EQ(index.machines.size(), 3U);
  EXPECT_THAT(index.machines[0].runs, ElementsAre(1U, 0U)) << "by date";
  ASSERT_EQ(index.machines[0].trends.size(), 1U);
  const catalog::IndexTrend& trend = index.machines[0].trends[0];
  EXPECT_NEAR(trend.last / trend.first, 0.5, 1e-9);
  EXPECT_NEAR(*trend.spread, 0.5 / 0.75, 1e-9);
  // A machine is one however many ranks were started, with a trend for each rank count.
  const catalog::Index counts = catalog::make_index(
      {indexed(launch_of("a", 1, 2, 0.04)), indexed(launch_of("b", 1, 4, 0.02))});
  ASSERT_EQ(counts.machines.size(), 1U);
  EXPECT_THAT(counts.machines[0].runs, ElementsAre(0U, 1U));
  EXPECT_EQ(counts.machines[0].trends.size(), 2U);
  // Points with a label are no part of it.
  results::RunData clean = launch_of("a", 1, 4, 0.04), shared = launch_of("b", 1, 4, 0.01);
  shared.points[0].labels = {"oversubscribed"};
  const catalog::Index labelled = catalog::make_index({indexed(clean), indexed(shared)});
  ASSERT_EQ(labelled.machines.size(), 1U);
  EXPECT_THAT(labelled.machines[0].trends[0].runs, ElementsAre(0U));
  EXPECT_THAT(render::render_index_text(render::IndexReport{.index = labelled}),
              HasSubstr("oversubscribed"));
}

TEST(Index, HostileTextIsEscaped) {
  const render::IndexReport report{
      .index = catalog::make_index({indexed(samples::hostile_run(), samples::hostile)}),
      .warnings = {samples::hostile}};
  for (const std::string& text :
       {render::render_index_text(report), render::render_index_markdown(report),
        render::render_index_csv(report), render::render_index_json(report)}) {
    EXPECT_THAT(text, Not(AnyOf(HasSubstr("\x1b"), HasSubstr("\xe2\x80\xae"))));
  }
  EXPECT_THAT(render::render_index_csv(report), Not(HasSubstr("\n=cmd")));
}

/// Simulates a hybrid step of 32 ranks, whole and without likes, on a network without cost.
TEST(LikeRanks, PlayAsTheWholeMeshDoes) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::Request base{.model = workloads::load_model("tiny")};
  base.options = {{"microbatch", "1"}, {"microbatches", "4"}};
  const mesh::Shape shape{.tp = 2, .dp = 8, .pp = 2};
  const program::OutlineSet set = program::outline(
      hybrid.build(hybrid.scale(base, shape, workloads::Scaling::weak)), program::Section::step);
  // Ranks at dp = 3 are slow, those of one tp there slower; all else is alike by program.
  simulate::Costs costs;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const mesh::Coordinates at = mesh::coordinates(shape, rank);
    const std::uint32_t kind = at.dp == 3 ? 1U + static_cast<std::uint32_t>(at.tp) : 0U;
    costs.table_of_rank.push_back(3 * set.outline_of_rank[static_cast<std::size_t>(rank)] + kind);
  }
  for (const program::Outline& outline : set.outlines) {
    for (int kind = 0; kind < 3; ++kind) {
      auto& table = costs.tables.emplace_back();
      for (std::size_t op = 0; op < outline.ops.size(); ++op) {
        const bool free = program::communicates(outline.ops[op].kind);
        table.emplace_back(free ? 0 : 100 + static_cast<int>(op % 7) * (kind + 1));
      }
    }
  }
  const breakdown::LikeRanks like = breakdown::like_ranks(set, costs);
  EXPECT_EQ(like.set.mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  const auto whole = simulate::simulate(set, costs, {.plays = 3});
  const auto small = simulate::simulate(like.set, like.costs, {.plays = 3});
  for (std::size_t play = 0; play < whole.size(); ++play) {
    for (std::size_t rank = 0; rank < whole[play].ranks.size(); ++rank) {
      EXPECT_EQ(whole[play].ranks[rank].spans, small[play].ranks[like.rank[rank]].spans);
      EXPECT_EQ(whole[play].ranks[rank].end, small[play].ranks[like.rank[rank]].end);
    }
  }
}

constexpr ReportOptions against_node{.baseline = std::nullopt, .whole_node = true};

TEST(NodeUse, CountsRanksOfNodesAndSaysHowFarAxesReach) {
  results::RunData run = launch("a", 2, 4);
  const auto use = node_use(run, add(run, {.tp = 4, .dp = 2}, 0.1));
  ASSERT_TRUE(use);
  EXPECT_THAT((std::array{use->nodes, use->fewest, use->most}), ElementsAre(2, 4, 4));
  EXPECT_FALSE(use->fills_node) << "it fills two";
  EXPECT_THAT(use->axes,
              ElementsAre(Pair(Axis::tp, Reach::intra_node), Pair(Axis::dp, Reach::inter_node)));
  // The ranks are those of the world that the point has.
  results::PointData& apart = add(run, {.dp = 3}, 0.1);
  apart.world_rank = {3, 4, 5};
  const auto of_apart = node_use(run, apart);
  EXPECT_THAT((std::array{of_apart->nodes, of_apart->fewest, of_apart->most}),
              ElementsAre(2, 1, 2));
  apart.mesh = {};
  EXPECT_THAT(node_use(run, apart)->axes, IsEmpty());
  EXPECT_FALSE(node_use(run, add(run, {.dp = 16}, 0.1))) << "ranks that are not known";
}

TEST(NodeUse, APointFillsANodeWithAllRanksThatTheLaunchHasThere) {
  results::RunData run = launch("a", 2, 4);
  EXPECT_FALSE(node_use(run, add(run, {.dp = 2}, 0.1))->fills_node);
  EXPECT_TRUE(node_use(run, add(run, {.dp = 4}, 0.1))->fills_node);
  run.points.back().world_rank = {0, 1, 4, 5};
  EXPECT_FALSE(node_use(run, run.points.back())->fills_node);
}

TEST(WholeNode, IsTheBaselineAndSpeedUpCountsNodes) {
  results::RunData run = launch("a", 4, 4);
  for (const auto& [ranks, step] : {std::pair{1, 1.0}, {2, 0.5}, {4, 0.3}, {8, 0.2}, {16, 0.1}}) {
    add(run, {.dp = ranks}, step);
  }
  const Curve curve = curve_of(run, against_node);
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_TRUE(curve.per_node);
  EXPECT_DOUBLE_EQ(*curve.points[2].speedup, 1.0);
  EXPECT_NEAR(*curve.points[3].speedup, 1.5, 1e-12);
  EXPECT_NEAR(*curve.points[3].efficiency, 0.75, 1e-12);
  EXPECT_NEAR(*curve.points[4].efficiency, 0.75, 1e-12);
  EXPECT_NEAR(*curve.points[1].efficiency, 0.3 / 0.5 * 2, 1e-12) << "half a node";
  EXPECT_NEAR(curve.points[3].speedup_interval->value, 1.5, 1e-12);
  EXPECT_THAT(render::baseline_remark(curve),
              ElementsAre(Pair("baseline", HasSubstr("1 node of 4 ranks"))));
}

TEST(WholeNode, MayBeInAnotherFileAndIsTheFullestOfAllLaunches) {
  // The launch of one rank has all of its ranks on its node, but others have more there.
  const JoinedLaunches of{
      {launch_of("a", 1, 1, 1.0), launch_of("b", 1, 4, 0.3), launch_of("c", 2, 4, 0.2)},
      against_node};
  const Curve& curve = of.joined.curves.at(0).curve;
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_NEAR(*curve.points.at(2).speedup, 1.5, 1e-12);
}

TEST(WholeNode, IsNoneWhereNoPointFillsANode) {
  results::RunData run = launch("a", 2, 4);
  add(run, {.dp = 2}, 0.5);
  add(run, {.dp = 8}, 0.2);
  const Curve curve = curve_of(run, against_node);
  EXPECT_FALSE(curve.baseline);
  EXPECT_FALSE(curve.points[1].efficiency);
}

TEST(NodeCells, ShowRanksOfNodesAndAxesOfSeveralNodesOnly) {
  results::RunData run = launch("a", 2, 4);
  add(run, {.tp = 4}, 0.2);
  add(run, {.tp = 4, .dp = 2}, 0.1);
  const Curve curve = curve_of(run);
  EXPECT_TRUE(render::spans_nodes(curve));
  EXPECT_EQ(render::nodes_cell(curve.points[0]), "1 x 4");
  EXPECT_EQ(render::nodes_cell(curve.points[1]), "2 x 4");
  EXPECT_EQ(render::axes_text(curve.points[0]), "");
  EXPECT_EQ(render::axes_text(curve.points[1]), "tp intra-node, dp inter-node");
}

// Points of which too few steps count, in what is computed from them and in what is shown.

/// `count` steps that count, after two of warm-up.
void keep_steps(results::PointData& point, std::size_t count) {
  point.step_times.resize(count + 2);
  point.traced.resize(count + 2);
  point.dropped.resize(count + 2);
}

TEST(FewSteps, LabelPointsBelowSixThatCount) {
  const auto point_with = [](std::size_t count) {
    results::RunData run = samples::run();
    run.points = {measured(0, {}, 0.2)};
    keep_steps(run.points[0], count);
    return point_of(run);
  };
  EXPECT_THAT(point_with(5).labels, ElementsAre("few-steps"));
  EXPECT_EQ(point_with(5).steps, 5U);
  EXPECT_THAT(point_with(6).labels, ElementsAre());
}

TEST(FewSteps, LeaveTheLossUnexplained) {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  const auto explains = [&] { return curve_of(run).points.at(1).causes.waterfall->explains; };
  EXPECT_TRUE(explains());
  // Five untraced steps of the baseline are left beside its traced ones.
  std::vector<std::uint8_t>& dropped = run.points[0].dropped;
  std::fill(dropped.begin() + 6, dropped.begin() + 21, 1);
  EXPECT_FALSE(explains());
}

TEST(FewSteps, KeepTheBaselineWhereItIsAndMakeItUnsure) {
  results::RunData run = samples::run();
  run.points = {measured(0, {}, 6), measured(1, {.dp = 2}, 0.25), measured(2, {.dp = 4}, 0.125)};
  const auto curve = [&] { return curve_of(run); };
  EXPECT_FALSE(has_unsure_baseline(curve()));
  keep_steps(run.points[0], 1);
  EXPECT_EQ(curve().baseline, 1);
  EXPECT_TRUE(has_unsure_baseline(curve()));
  EXPECT_FALSE(curve().points[2].speedup_interval) << "nothing is known of the baseline's";
  EXPECT_NEAR(*curve().points[2].efficiency, 12, 0.2);
  EXPECT_THAT(render::baseline_remark(curve()).at(0).second, HasSubstr("only 1 of"));
}

TEST(FewSteps, OfALaunchDoNotCountBesideThoseOfEnough) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 1, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches mixed{runs};
  ASSERT_EQ(mixed.joined.curves.size(), 1U);
  EXPECT_THAT(mixed.joined.curves[0].launches, ElementsAre(SizeIs(1)));
  EXPECT_FALSE(merge::spread_of(mixed.joined.curves[0].curve.points[0]));
  EXPECT_THAT(mixed.joined.curves[0].left_out.at(0).reason, HasSubstr("1 of the 6"));
  keep_steps(runs[1].points[0], 1);
  const JoinedLaunches few{runs};
  EXPECT_THAT(few.joined.curves.at(0).launches, ElementsAre(SizeIs(2)));
  EXPECT_EQ(few.joined.curves[0].curve.points[0].steps, 2U);
  EXPECT_THAT(few.joined.curves[0].curve.points[0].labels, ElementsAre("few-steps"));
}

TEST(FewSteps, AreSeenInTheTableAndSaidBelow) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 2, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches of{std::move(runs)};
  const std::string joined = render::render_text(of.report());
  EXPECT_THAT(joined, HasSubstr(" s (1 step) "));
  EXPECT_THAT(joined, HasSubstr("label    2 ranks: few-steps"));
  EXPECT_THAT(joined, HasSubstr("vs 2 ranks"));
  const merge::Report alone{.runs = std::span{of.reports}.first(1)};
  for (const auto& render : {render::render_text, render::render_markdown}) {
    EXPECT_THAT(render(alone), HasSubstr("2 ranks: few-steps: 1 step"));
  }
  for (const json& part : {json::parse(render::render_json(alone))["runs"][0],
                           json::parse(render::render_json(of.report()))["curves"][0]}) {
    EXPECT_EQ(part["points"][0]["labels"], json::array({"few-steps"}));
  }
}

}  // namespace
}  // namespace isoscale::analysis
