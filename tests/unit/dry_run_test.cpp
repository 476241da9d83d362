// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/predict/forecast.hpp"
#include "base/error.hpp"
#include "planned_runs.hpp"
#include "predict_samples.hpp"
#include "runner/dry_run.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/schedule.hpp"
#include "runner/plan/site.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using samples::config_of;
using samples::site_of;
using settings::RunConfig;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(PlanTable, HasALinePerPointAndSaysWhatIsSkipped) {
  RunConfig config = config_of("dp");
  config.rank_counts = settings::RankCounts::every;
  config.max_time = units::Seconds{5};
  const plan::Plan plan = plan::make_plan(config, site_of(4, 2));
  const std::string text = describe(plan, config, "host");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 4 + 1);
  EXPECT_THAT(text, AllOf(HasSubstr("dp=4"), HasSubstr("skipped: batch=16"),
                          HasSubstr("aims at 5 s"), HasSubstr("up to 3 times as long")));
  EXPECT_THAT(text, AllOf(HasSubstr("dp 288 KiB (dp inter-node)"), HasSubstr("nothing")));
  // Three points are measured until they are precise enough, far below 5 s each.
  EXPECT_THAT(text, AllOf(HasSubstr(" to measure"), HasSubstr("a guess")));
}

TEST(PlanTable, MarksWhatDoesNotFit) {
  plan::Site site = site_of(2);
  site.memory_pool = executor::MemoryPool::rank;
  RunConfig config = config_of("dp");
  const units::Bytes two = *plan::make_plan(config, site).points[1].memory_per_rank;
  site.memory_free = {two};
  const std::string text = describe(plan::make_plan(config, site), config, "host");
  EXPECT_THAT(text, AllOf(testing::ContainsRegex("dp=1|1 +1 .*does not fit: [0-9.]+ KiB of"),
                          HasSubstr("Point 1 is skipped: "), HasSubstr("dp 96.0 KiB")));
  EXPECT_THAT(text, Not(HasSubstr("Point 2 is skipped")));
}

TEST(PlanTable, SaysThatNothingWouldRunWhereNoPointFits) {
  plan::Site site = site_of(2, 1);
  site.memory_of = plan::MemoryOf::this_machine;
  site.memory_free.assign(2, units::Bytes{98'304});
  RunConfig config = config_of("dp");
  config.budget = units::Seconds{20};
  const std::string none = describe(plan::make_plan(config, site), config, "host");
  EXPECT_THAT(none, AllOf(HasSubstr("Nothing would run"), Not(HasSubstr(" in all")),
                          Not(HasSubstr("--budget"))));
  site.memory_pool = executor::MemoryPool::rank;
  site.memory_free = {std::nullopt, units::Bytes{98'304}};  // two ranks do not fit, one does
  const std::string one = describe(plan::make_plan(config, site), config, "host");
  EXPECT_THAT(one, AllOf(Not(HasSubstr("Nothing would run")), HasSubstr(" in all"),
                         HasSubstr("1 of 1 point fit into --budget")));
}

TEST(PlanTable, SaysWhatShardingAndOffloadingKeep) {
  // 4 layers of 12 h^2 = 3072 parameters: 16 bytes each in f32 with Adam make 192 KiB. Of these
  // zero=2 shards gradients and moments over 4 ranks: 48 + 144 / 4 KiB, and the powers of Adam.
  RunConfig config = config_of("dp");
  config.experiments[0].base.options.insert(
      {{"zero", "2"}, {"optimizer", "adam"}, {"offload", "optimizer"}});
  config.ranks = {4};
  const std::string text = describe(plan::make_plan(config, site_of(4)), config, "host");
  EXPECT_THAT(text, AllOf(HasSubstr("Point 1: zero=2 keeps 84"), HasSubstr("of 192 KiB of states"),
                          HasSubstr("offload=optimizer keeps 24"), HasSubstr("in pinned memory")));
  config.experiments[0].base.options = samples::planned_request().options;
  EXPECT_THAT(describe(plan::make_plan(config, site_of(4)), config, "host"),
              Not(HasSubstr("of states")));
}

TEST(PlanTable, SaysWhatFitsIntoABudget) {
  RunConfig config = config_of("dp");
  config.budget = units::Seconds{20};
  const plan::Plan plan = plan::make_plan(config, site_of(4));
  const std::string all = describe(plan, config, "host");
  EXPECT_THAT(all, AllOf(HasSubstr("3 of 3 points fit into --budget 20 s"),
                         testing::Not(HasSubstr("left out"))));
  const auto loops = plan::expected_loops(plan, config, "host");
  EXPECT_LT(loops.at(0), config.max_time);
  EXPECT_THAT(all, HasSubstr(units::format(loops.at(0))));
  // Set-up and verification of one point are more than half of it.
  config.budget = units::Seconds{0.25};
  EXPECT_THAT(describe(plan, config, "host"),
              AllOf(HasSubstr("left out: does not fit into the budget"),
                    HasSubstr("1 of 3 points fit into --budget 250 ms")));
  EXPECT_THAT(plan::expected_loops(plan, config, "host"), testing::SizeIs(1));
}

TEST(PlanTable, DoesNotClaimToKnowNodesThatWereNotStarted) {
  RunConfig config = config_of("dp");
  config.ranks = {1, 4};
  const plan::Plan unknown = plan::make_plan(config, plan::planned_site(site_of(1), config));
  EXPECT_EQ(unknown.points[0].nodes, 1);
  EXPECT_FALSE(unknown.points[1].nodes.has_value());
  EXPECT_THAT(describe(unknown, config, "host"),
              AllOf(testing::ContainsRegex("dp +small +4 +\\? dp=4"), HasSubstr("dp 288 KiB (?)"),
                    testing::Not(HasSubstr("intra-node"))));
  config.ranks_per_node = 2;
  const plan::Plan planned = plan::make_plan(config, plan::planned_site(site_of(1), config));
  EXPECT_EQ(planned.points[1].nodes, 2);
  EXPECT_EQ(planned.points[1].reach, "dp inter-node");
}

/// The sample sheet, priced as predict does.
PricedMachine plain_machine() {
  const simulate::Machine sheet = samples::plain_sheet();
  return {.name = sheet.name,
          .node_ranks = sheet.network->node_ranks,
          .memory = units::Bytes{static_cast<std::uint64_t>(sheet.memory->capacity)},
          .step = [sheet](const auto& workload, const auto& request, int node_ranks) {
            return units::Seconds{
                analysis::predict::sheet_step_time(workload, request, sheet, node_ranks)};
          }};
}

/// hybrid and a micro-benchmark with what a prediction takes for granted.
settings::RunConfig planned(std::vector<int> ranks) {
  settings::RunConfig config;
  for (const char* workload : {"hybrid", "gemm"}) {
    settings::Experiment& experiment = config.experiments.emplace_back();
    experiment.workload = workload;
    experiment.base.model = workloads::load_model("tiny");
  }
  config.experiments.front().base.options = {
      {"batch", "256"}, {"elementwise", "on"}, {"vocabulary", "on"}, {"optimizer", "adam"}};
  config.ranks = std::move(ranks);
  config.suite = "of a test";  // counts that do not fit are skipped
  return config;
}

TEST(PricedPlan, HasTheStepTimesOfThePrediction) {
  settings::RunConfig config = planned({8, 16, 64});
  const PricedMachine machine = plain_machine();
  const plan::Site site = site_of(machine, config, 1);
  plan::Plan plan = plan::make_plan(config, site);
  price(machine, config, plan);
  const analysis::predict::Prediction prediction =
      predict(analysis::predict::question_of(samples::plain_command(), samples::plain_sheet()));
  ASSERT_EQ(prediction.base.points.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const analysis::predict::Forecast& forecast = prediction.base.points[i];
    const plan::PlannedPoint& point = plan.points[i];
    EXPECT_EQ(point.request.mesh.tp * point.request.mesh.pp, 4);  // one along the curve
    ASSERT_EQ(point.request.mesh, forecast.request.mesh);
    ASSERT_TRUE(point.load.step);
    EXPECT_DOUBLE_EQ(point.load.step->value(), forecast.step_time.value);
    EXPECT_EQ(plan::estimate(point, config, site.device).likely,
              plan::loop_time(*point.load.step, config));
    EXPECT_EQ(point.nodes, point.ranks / 8);
  }
  EXPECT_FALSE(plan.points.back().load.step);  // a micro-benchmark has no step
}

TEST(PricedPlan, TakesRanksOfANodeFromTheCommandBeforeTheSheet) {
  settings::RunConfig config = planned({16});
  const PricedMachine machine = plain_machine();
  EXPECT_EQ(site_of(machine, config, 1).memory_free.size(), 2U);
  plan::Plan of_sheet = plan::make_plan(config, site_of(machine, config, 1));
  price(machine, config, of_sheet);
  config.ranks_per_node = 2;
  plan::Plan narrow = plan::make_plan(config, site_of(machine, config, 1));
  price(machine, config, narrow);
  EXPECT_EQ(narrow.points.front().nodes, 8);
  EXPECT_GT(*narrow.points.front().load.step, *of_sheet.points.front().load.step);
}

TEST(PricedPlan, HasTheMemoryOfTheSheet) {
  settings::RunConfig config = planned({8});
  config.suite = "";
  PricedMachine machine = plain_machine();
  EXPECT_NO_THROW(static_cast<void>(plan::make_plan(config, site_of(machine, config, 1))));
  machine.memory = units::Bytes{1000};
  EXPECT_THROW(static_cast<void>(plan::make_plan(config, site_of(machine, config, 1))),
               base::UsageError);
}

TEST(PricedPlan, SaysWhichPointTheSheetCannotPrice) {
  settings::RunConfig config = planned({8});
  config.experiments.front().base.precision = program::Precision::bf16;  // no rate of the sheet
  const PricedMachine machine = plain_machine();
  plan::Plan plan = plan::make_plan(config, site_of(machine, config, 1));
  try {
    price(machine, config, plan);
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--on plain: point 1"));
  }
}

TEST(BeyondHost, IsATypeOrMoreBytesThanTheHostHas) {
  settings::RunConfig config = planned({4});
  EXPECT_EQ(beyond_host(config), std::nullopt);
  config.experiments.front().base.precision = program::Precision::bf16;
  EXPECT_THAT(beyond_host(config).value_or(""), HasSubstr("bf16"));
  config.experiments.front().base.precision = program::Precision::f32;

  plan::Site site{.ranks = 4,
                  .node_of_rank = {0, 0, 1, 1},
                  .precisions = {program::Precision::f32},
                  .device = "host",
                  .memory_free = {}};
  config.experiments.pop_back();
  const plan::Plan plan = plan::make_plan(config, site);
  const units::Bytes rank = *plan.points.front().memory_per_rank;
  const units::Bytes node{2 * rank.value()};
  EXPECT_EQ(beyond_host(plan, site, node), std::nullopt);
  EXPECT_THAT(beyond_host(plan, site, units::Bytes{node.value() - 1}).value_or(""),
              HasSubstr("2 ranks"));
}

}  // namespace
}  // namespace isoscale::runner
