// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Which points an injection touches: those whose programs it changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "planned_runs.hpp"
#include "program/op.hpp"
#include "runner/dry_run.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/rank_faults.hpp"

namespace isoscale::runner {
namespace {

using program::Direction;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// One program of these ops for all ranks of the mesh.
program::ProgramSet set_of(const mesh::Shape& mesh, std::vector<program::Payload> payloads) {
  program::ProgramSet set{.mesh = mesh, .programs = {{}}, .program_of_rank = {}};
  set.program_of_rank.assign(static_cast<std::size_t>(mesh.size()), 0);
  for (program::Payload& payload : payloads) {
    set.programs[0].step().ops.push_back({.payload = std::move(payload)});
  }
  return set;
}

program::Exchange message(mesh::Axis axis, Direction direction, int offset) {
  return {.transfers = {{.direction = direction, .axis = axis, .offset = offset}}};
}

TEST(Partners, OfCollectivesAreTheGroupAndOfMessagesTheOtherEnds) {
  const mesh::Shape mesh{.tp = 2, .dp = 3};
  const program::Op along{.payload = program::Collective{.axes = mesh::Axis::dp}};
  EXPECT_THAT(program::partners(along, mesh, 3), ElementsAre(1, 3, 5));
  program::Exchange both = message(mesh::Axis::dp, Direction::send, 1);
  both.transfers.push_back({.direction = Direction::receive, .axis = mesh::Axis::tp, .offset = -1});
  EXPECT_THAT(program::partners({.payload = both}, mesh, 1), UnorderedElementsAre(3, 0));
  EXPECT_THAT(program::partners({.payload = program::Gemm{}}, mesh, 1), IsEmpty());
}

class Touches : public testing::Test {
 protected:
  /// Returns whether the injection touches a point on ranks 4 to 7 of the launch.
  [[nodiscard]] bool touched(std::string_view injection, const program::ProgramSet& set,
                             const char* workload = "pp") const {
    plan::PlannedPoint point;
    point.workload = &workloads::find_workload(workload);
    point.world_ranks = {4, 5, 6, 7};
    return plan::touches(settings::parse_injections(injection).at(0), point, set);
  }
  const program::ProgramSet pipeline_ =
      set_of({.pp = 4}, {program::Gemm{}, message(mesh::Axis::pp, Direction::send, 1),
                         message(mesh::Axis::pp, Direction::receive, -1)});
};

TEST_F(Touches, SlowLinksWhereBothEndsDoSomethingTogether) {
  EXPECT_TRUE(touched("slow-link=4-5:2", pipeline_));
  EXPECT_TRUE(touched("slow-link=5-6:2", pipeline_));
  EXPECT_FALSE(touched("slow-link=4-6:2", pipeline_));
  EXPECT_FALSE(touched("slow-link=5-7:2", pipeline_));
  const program::ProgramSet reductions =
      set_of({.tp = 2, .dp = 2}, {program::Collective{.axes = mesh::Axis::dp}});
  EXPECT_TRUE(touched("slow-link=4-6:2", reductions));
  EXPECT_FALSE(touched("slow-link=4-5:2", reductions));
  EXPECT_FALSE(touched("slow-link=4-7:2", reductions));
  EXPECT_FALSE(touched("slow-link=4-5:2", set_of({.dp = 4}, {program::Gemm{}})));
}

TEST_F(Touches, NothingOfRanksThatAreNoneOfThePoint) {
  EXPECT_FALSE(touched("slow-link=3-4:2", pipeline_));
  EXPECT_FALSE(touched("slow-link=7-8:2", pipeline_));
  EXPECT_FALSE(touched("slow-rank=0:2", pipeline_));
  EXPECT_FALSE(touched("clock=1:5ms", pipeline_));
}

TEST_F(Touches, SlowRanksWithGemmsAndJitterWhatComputes) {
  EXPECT_TRUE(touched("slow-rank=7:2", pipeline_));
  EXPECT_TRUE(touched("jitter=5%", pipeline_));
  EXPECT_TRUE(touched("delay=1GFLOP/s", pipeline_));
  const program::ProgramSet adds = set_of({.dp = 4}, {program::Add{}});
  EXPECT_FALSE(touched("slow-rank=7:2", adds));
  EXPECT_FALSE(touched("delay=1GFLOP/s", adds));
  EXPECT_TRUE(touched("jitter=5%", adds));
  program::ProgramSet copies = set_of({.dp = 4}, {program::Copy{}, program::Collective{}});
  EXPECT_FALSE(touched("jitter=5%", copies));
  copies.programs[0].setup.ops.push_back({.payload = program::Fill{}});  // is not measured
  EXPECT_FALSE(touched("jitter=5%", copies));
}

TEST_F(Touches, ClocksOfWhatComparesTimesOfRanks) {
  EXPECT_TRUE(touched("clock=4:5ms", pipeline_));
  EXPECT_FALSE(touched("clock=4:5ms", pipeline_, "gemm"));
}

class InjectedPlan : public testing::Test {
 protected:
  plan::Plan plan(const char* workload, std::string_view injections) {
    config_ = samples::config_of(workload);
    config_.injections = settings::parse_injections(injections);
    return plan::make_plan(config_, samples::site_of(4));
  }
  settings::RunConfig config_;
};

TEST_F(InjectedPlan, NamesPointsByTheProgramsThatTheyPlay) {
  const plan::Plan all = plan("pp", "slow-link=0-1:2,slow-rank=2:3,slow-link=0-2:2,jitter=5%");
  ASSERT_EQ(all.points.size(), 3U);  // of 1, 2 and 4 ranks
  EXPECT_THAT(all.points[0].injections, ElementsAre("jitter=5%"));
  EXPECT_THAT(all.points[1].injections, ElementsAre("slow-link=0-1:2", "jitter=5%"));
  EXPECT_THAT(all.points[2].injections,
              ElementsAre("slow-link=0-1:2", "slow-rank=2:3", "jitter=5%"));
  EXPECT_THAT(plan::idle_injections(config_.injections, all), ElementsAre("slow-link=0-2:2"));
  EXPECT_THAT(describe(all, config_, "host"), HasSubstr("slow-link=0-2:2 touches no point."));
  EXPECT_THAT(describe(all, config_, "host"),
              HasSubstr("slow-link=0-1:2 is injected into point 2, 3"));
}

TEST_F(InjectedPlan, PointsThatAreSkippedAreNotTouched) {
  plan::Plan all = plan("dp", "slow-link=2-3:2");
  EXPECT_THAT(plan::idle_injections(config_.injections, all), IsEmpty());
  all.points.back().skip_reason = "too large";
  EXPECT_THAT(plan::idle_injections(config_.injections, all), ElementsAre("slow-link=2-3:2"));
}

}  // namespace
}  // namespace isoscale::runner
