// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/dry_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/predict/forecast.hpp"
#include "base/error.hpp"
#include "predict_samples.hpp"
#include "runner/plan/schedule.hpp"

namespace isoscale::runner {
namespace {

using testing::HasSubstr;

/// The sample sheet, priced as predict does.
PricedMachine plain_machine() {
  const simulate::Machine sheet = samples::plain_sheet();
  return {.name = sheet.name,
          .node_ranks = sheet.network->node_ranks,
          .memory = units::Bytes{static_cast<std::uint64_t>(sheet.memory->capacity)},
          .step = [sheet](const auto& workload, const auto& request, int node_ranks) {
            return units::Seconds{analysis::sheet_step_time(workload, request, sheet, node_ranks)};
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
  const Site site = site_of(machine, config, 1);
  Plan plan = make_plan(config, site);
  price(machine, config, plan);
  const analysis::Prediction prediction =
      predict(analysis::question_of(samples::plain_command(), samples::plain_sheet()));
  ASSERT_EQ(prediction.base.points.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const analysis::Forecast& forecast = prediction.base.points[i];
    const PlannedPoint& point = plan.points[i];
    EXPECT_EQ(point.request.mesh.tp * point.request.mesh.pp, 4);  // one along the curve
    ASSERT_EQ(point.request.mesh, forecast.request.mesh);
    ASSERT_TRUE(point.load.step);
    EXPECT_DOUBLE_EQ(point.load.step->value(), forecast.step_time.value);
    EXPECT_EQ(estimate(point, config, site.device).likely, loop_time(*point.load.step, config));
    EXPECT_EQ(point.nodes, point.ranks / 8);
  }
  EXPECT_FALSE(plan.points.back().load.step);  // a micro-benchmark has no step
}

TEST(PricedPlan, TakesRanksOfANodeFromTheCommandBeforeTheSheet) {
  settings::RunConfig config = planned({16});
  const PricedMachine machine = plain_machine();
  EXPECT_EQ(site_of(machine, config, 1).memory_free.size(), 2U);
  Plan of_sheet = make_plan(config, site_of(machine, config, 1));
  price(machine, config, of_sheet);
  config.ranks_per_node = 2;
  Plan narrow = make_plan(config, site_of(machine, config, 1));
  price(machine, config, narrow);
  EXPECT_EQ(narrow.points.front().nodes, 8);
  EXPECT_GT(*narrow.points.front().load.step, *of_sheet.points.front().load.step);
}

TEST(PricedPlan, HasTheMemoryOfTheSheet) {
  settings::RunConfig config = planned({8});
  config.suite = "";
  PricedMachine machine = plain_machine();
  EXPECT_NO_THROW(static_cast<void>(make_plan(config, site_of(machine, config, 1))));
  machine.memory = units::Bytes{1000};
  EXPECT_THROW(static_cast<void>(make_plan(config, site_of(machine, config, 1))), base::UsageError);
}

TEST(PricedPlan, SaysWhichPointTheSheetCannotPrice) {
  settings::RunConfig config = planned({8});
  config.experiments.front().base.precision = program::Precision::bf16;  // no rate of the sheet
  const PricedMachine machine = plain_machine();
  Plan plan = make_plan(config, site_of(machine, config, 1));
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

  Site site{.ranks = 4,
            .node_of_rank = {0, 0, 1, 1},
            .precisions = {program::Precision::f32},
            .device = "host",
            .memory_free = {}};
  config.experiments.pop_back();
  const Plan plan = make_plan(config, site);
  const units::Bytes rank = *plan.points.front().memory_per_rank;
  const units::Bytes node{2 * rank.value()};
  EXPECT_EQ(beyond_host(plan, site, node), std::nullopt);
  EXPECT_THAT(beyond_host(plan, site, units::Bytes{node.value() - 1}).value_or(""),
              HasSubstr("2 ranks"));
}

}  // namespace
}  // namespace isoscale::runner
