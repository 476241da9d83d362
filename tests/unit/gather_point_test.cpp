// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runner/measure/gather_point.hpp"

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

measure::SamplingDuty duty(int rank, const std::vector<int>& world_ranks, const char* gpu = "") {
  return measure::sampling_duty(rank, world_ranks, node_of_rank, facts(), gpu);
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
  EXPECT_THAT(measure::sampling_duty(0, all, node_of_rank, some, "").cpus, IsEmpty());
  EXPECT_THAT(measure::sampling_duty(2, all, node_of_rank, some, "").cpus, ElementsAre(0, 1, 2, 3));
}

TEST(SamplingDuty, OfAGpuIsItsOwnRank) {
  EXPECT_EQ(duty(1, {0, 1}, "GPU-1").gpu_uuid, "GPU-1");
  EXPECT_EQ(duty(1, {0, 1}).gpu_uuid, "");
}

TEST(SamplingDuty, IsSmallerWhereManyRanksSample) {
  const auto most = [](std::size_t ranks) {
    std::vector<int> world(ranks);
    for (std::size_t r = 0; r < ranks; ++r) world[r] = static_cast<int>(r);
    return measure::sampling_duty(0, world, std::vector<int>(ranks, 0), {}, "").most_samples;
  };
  EXPECT_EQ(most(1), 600U);
  EXPECT_EQ(most(128), 600U);
  EXPECT_EQ(most(256), 300U);
  EXPECT_EQ(most(4096), 60U);
}

// Which ranks of a point keep their spans.

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
  return ranks;
}

/// 8 stages of 64 ranks, each 8 replicas of 8.
constexpr mesh::Shape large{.tp = 8, .dp = 8, .pp = 8};

TEST(TracedRanks, AreAllThatFit) {
  EXPECT_EQ(measure::traced_ranks({}, 1), first_ranks(1));
  EXPECT_EQ(measure::traced_ranks({.tp = 2, .dp = 4}, 8), first_ranks(8));
  EXPECT_EQ(measure::traced_ranks({.tp = 2, .dp = 4}, 1000), first_ranks(8));
  EXPECT_EQ(measure::traced_ranks(large, 512), first_ranks(512));
}

TEST(TracedRanks, AreOneReplicaOfAllStages) {
  // tp varies fastest: ranks 0-7 of each stage's 64.
  std::vector<int> expected;
  for (int stage = 0; stage < 8; ++stage) {
    for (int tp = 0; tp < 8; ++tp) expected.push_back(64 * stage + tp);
  }
  EXPECT_EQ(measure::traced_ranks(large, 64), expected);
  EXPECT_EQ(measure::traced_ranks(large, 127), expected);  // a second replica does not fit
}

TEST(TracedRanks, AreAsManyReplicasAsFit) {
  const std::vector<int> two = measure::traced_ranks(large, 128);
  ASSERT_EQ(two.size(), 128U);
  EXPECT_EQ(two[15], 15);
  EXPECT_EQ(two[16], 64);
  EXPECT_EQ(measure::traced_ranks(large, 200).size(), 192U);
  EXPECT_EQ(measure::traced_ranks({.dp = 512}, 64), first_ranks(64));
}

TEST(TracedRanks, KeepStagesBeforeAllElse) {
  EXPECT_THAT(measure::traced_ranks(large, 16), ElementsAre(0, 1, 64, 65, 128, 129, 192, 193, 256,
                                                            257, 320, 321, 384, 385, 448, 449));
  EXPECT_THAT(measure::traced_ranks(large, 8), ElementsAre(0, 64, 128, 192, 256, 320, 384, 448));
  EXPECT_THAT(measure::traced_ranks(large, 7), ElementsAre(0, 64, 128, 192, 256, 320, 384));
  EXPECT_THAT(measure::traced_ranks(large, 1), ElementsAre(0));
}

TEST(TracedRanks, AreTheFirstStagesOfALongPipeline) {
  EXPECT_EQ(measure::traced_ranks({.pp = 128}, 64), first_ranks(64));
}

TEST(TracedRanks, LoseExpertsAndContextBeforeTensors) {
  const mesh::Shape shape{.tp = 2, .cp = 2, .ep = 2, .dp = 2};
  EXPECT_EQ(measure::traced_ranks(shape, 8), first_ranks(8));             // ranks 8-15 are dp 1
  EXPECT_THAT(measure::traced_ranks(shape, 4), ElementsAre(0, 1, 2, 3));  // 4-7 are ep 1
  EXPECT_THAT(measure::traced_ranks(shape, 2), ElementsAre(0, 1));        // 2 and 3 are cp 1
  EXPECT_THAT(measure::traced_ranks({.cp = 2, .pp = 2}, 2), ElementsAre(0, 2));
}

TEST(TracedRanks, AreNeverTooManyNorNone) {
  for (const mesh::Shape& shape : {large, mesh::Shape{.tp = 3, .cp = 2, .ep = 5, .dp = 7, .pp = 2},
                                   mesh::Shape{.ep = 6, .pp = 5}}) {
    for (int most = 1; most <= shape.size() + 1; ++most) {
      const std::vector<int> ranks = measure::traced_ranks(shape, most);
      EXPECT_FALSE(ranks.empty()) << most;
      EXPECT_LE(ranks.size(), static_cast<std::size_t>(most));
      EXPECT_EQ(ranks.front(), 0);
      EXPECT_TRUE(std::ranges::is_sorted(ranks));
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
