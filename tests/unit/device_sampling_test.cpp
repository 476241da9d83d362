// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/gather_point.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two nodes of two ranks each, two CPUs a rank.
const std::vector<int> node_of_rank{0, 0, 1, 1};

std::vector<machine::MachineFacts> facts() {
  std::vector<machine::MachineFacts> all(4);
  all[0].bound_cpus = {0, 1};
  all[1].bound_cpus = {2, 3};
  all[2].bound_cpus = {0, 1};
  all[3].bound_cpus = {2, 3};
  return all;
}

SamplingDuty duty(int rank, const std::vector<int>& world_ranks, const char* gpu = "") {
  return sampling_duty(rank, world_ranks, node_of_rank, facts(), gpu);
}

TEST(SamplingDuty, OfANodeIsItsLowestRankOfThePoint) {
  const std::vector<int> all{0, 1, 2, 3};
  EXPECT_TRUE(duty(0, all).node);
  EXPECT_FALSE(duty(1, all).node);
  EXPECT_TRUE(duty(2, all).node);
  EXPECT_FALSE(duty(3, all).node);
  const std::vector<int> second_of_each{3, 1};
  EXPECT_TRUE(duty(0, second_of_each).node);
  EXPECT_TRUE(duty(1, second_of_each).node);
}

TEST(SamplingDuty, CoversTheCpusOfAllRanksOfThePointOnTheNode) {
  EXPECT_THAT(duty(0, {0, 1, 2, 3}).cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(duty(0, {0, 2}).cpus, ElementsAre(0, 1));
  EXPECT_THAT(duty(1, {0, 3}).cpus, ElementsAre(2, 3));
  EXPECT_THAT(duty(1, {0, 1}).cpus, IsEmpty());
}

TEST(SamplingDuty, KnowsNoCpusWhereABindingIsUnknown) {
  std::vector<machine::MachineFacts> some = facts();
  some[1].bound_cpus.clear();
  const std::vector<int> all{0, 1, 2, 3};
  EXPECT_THAT(sampling_duty(0, all, node_of_rank, some, "").cpus, IsEmpty());
  EXPECT_THAT(sampling_duty(2, all, node_of_rank, some, "").cpus, ElementsAre(0, 1, 2, 3));
}

TEST(SamplingDuty, OfAGpuIsItsOwnRank) {
  EXPECT_EQ(duty(1, {0, 1}, "GPU-1").gpu_uuid, "GPU-1");
  EXPECT_EQ(duty(1, {0, 1}).gpu_uuid, "");
}

TEST(SamplingDuty, IsSmallerWhereManyRanksSample) {
  const auto most = [](std::size_t ranks) {
    std::vector<int> world(ranks);
    for (std::size_t r = 0; r < ranks; ++r) world[r] = static_cast<int>(r);
    return sampling_duty(0, world, std::vector<int>(ranks, 0), {}, "").most_samples;
  };
  EXPECT_EQ(most(1), 600U);
  EXPECT_EQ(most(128), 600U);
  EXPECT_EQ(most(256), 300U);
  EXPECT_EQ(most(4096), 60U);
}

}  // namespace
}  // namespace isoscale::runner
