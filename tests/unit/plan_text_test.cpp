// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planned_runs.hpp"
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
  const Plan plan = make_plan(config, site_of(4, 2));
  const std::string text = describe(plan, config, "host");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 4 + 1);
  EXPECT_THAT(text, AllOf(HasSubstr("dp=4"), HasSubstr("skipped: batch=16"),
                          HasSubstr("aims at 5 s"), HasSubstr("up to 3 times as long")));
  EXPECT_THAT(text, AllOf(HasSubstr("dp 288 KiB (dp inter-node)"), HasSubstr("nothing")));
  // Three points are measured until they are precise enough, far below 5 s each.
  EXPECT_THAT(text, AllOf(HasSubstr(" to measure"), HasSubstr("a guess")));
}

TEST(PlanTable, MarksWhatDoesNotFit) {
  Site site = site_of(2);
  site.memory_pool = executor::MemoryPool::rank;
  RunConfig config = config_of("dp");
  const units::Bytes two = *make_plan(config, site).points[1].memory_per_rank;
  site.memory_free = {two};
  const std::string text = describe(make_plan(config, site), config, "host");
  EXPECT_THAT(text, AllOf(testing::ContainsRegex("dp=1|1 +1 .*does not fit: [0-9.]+ KiB of"),
                          HasSubstr("Point 1 is skipped: "), HasSubstr("dp 96.0 KiB")));
  EXPECT_THAT(text, Not(HasSubstr("Point 2 is skipped")));
}

TEST(PlanTable, SaysThatNothingWouldRunWhereNoPointFits) {
  Site site = site_of(2, 1);
  site.memory_of = MemoryOf::this_machine;
  site.memory_free.assign(2, units::Bytes{98'304});
  RunConfig config = config_of("dp");
  config.budget = units::Seconds{20};
  const std::string none = describe(make_plan(config, site), config, "host");
  EXPECT_THAT(none, AllOf(HasSubstr("Nothing would run"), Not(HasSubstr(" in all")),
                          Not(HasSubstr("--budget"))));
  site.memory_pool = executor::MemoryPool::rank;
  site.memory_free = {std::nullopt, units::Bytes{98'304}};  // two ranks do not fit, one does
  const std::string one = describe(make_plan(config, site), config, "host");
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
  const std::string text = describe(make_plan(config, site_of(4)), config, "host");
  EXPECT_THAT(text, AllOf(HasSubstr("Point 1: zero=2 keeps 84"), HasSubstr("of 192 KiB of states"),
                          HasSubstr("offload=optimizer keeps 24"), HasSubstr("in pinned memory")));
  config.experiments[0].base.options = samples::planned_request().options;
  EXPECT_THAT(describe(make_plan(config, site_of(4)), config, "host"), Not(HasSubstr("of states")));
}

TEST(PlanTable, SaysWhatFitsIntoABudget) {
  RunConfig config = config_of("dp");
  config.budget = units::Seconds{20};
  const Plan plan = make_plan(config, site_of(4));
  const std::string all = describe(plan, config, "host");
  EXPECT_THAT(all, AllOf(HasSubstr("3 of 3 points fit into --budget 20 s"),
                         testing::Not(HasSubstr("left out"))));
  const auto loops = expected_loops(plan, config, "host");
  EXPECT_LT(loops.at(0), config.max_time);
  EXPECT_THAT(all, HasSubstr(units::format(loops.at(0))));
  // Set-up and verification of one point are more than half of it.
  config.budget = units::Seconds{0.25};
  EXPECT_THAT(describe(plan, config, "host"),
              AllOf(HasSubstr("left out: does not fit into the budget"),
                    HasSubstr("1 of 3 points fit into --budget 250 ms")));
  EXPECT_THAT(expected_loops(plan, config, "host"), testing::SizeIs(1));
}

TEST(PlanTable, DoesNotClaimToKnowNodesThatWereNotStarted) {
  RunConfig config = config_of("dp");
  config.ranks = {1, 4};
  const Plan unknown = make_plan(config, planned_site(site_of(1), config));
  EXPECT_EQ(unknown.points[0].nodes, 1);
  EXPECT_FALSE(unknown.points[1].nodes.has_value());
  EXPECT_THAT(describe(unknown, config, "host"),
              AllOf(testing::ContainsRegex("dp +small +4 +\\? dp=4"), HasSubstr("dp 288 KiB (?)"),
                    testing::Not(HasSubstr("intra-node"))));
  config.ranks_per_node = 2;
  const Plan planned = make_plan(config, planned_site(site_of(1), config));
  EXPECT_EQ(planned.points[1].nodes, 2);
  EXPECT_EQ(planned.points[1].reach, "dp inter-node");
}

}  // namespace
}  // namespace isoscale::runner
