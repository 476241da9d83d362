// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/site.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace isoscale::runner {
namespace {

using system::MachineFacts;
using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

MachineFacts bound_to(std::vector<int> cpus, std::optional<int> cores_of_node) {
  MachineFacts facts{.host = "made-up",
                     .cpu_model = {},
                     .sockets = {},
                     .cores = cores_of_node,
                     .numa_nodes = {},
                     .memory_total = {},
                     .memory_available = {},
                     .bound_cpus = std::move(cpus),
                     .bound_cores = 0,
                     .os = {},
                     .cpu_quota = {}};
  facts.bound_cores = static_cast<int>(facts.bound_cpus.size());
  return facts;
}

/// All of these ranks, on one node unless told otherwise.
bool share(const std::vector<MachineFacts>& facts, std::vector<int> node_of_rank = {}) {
  node_of_rank.resize(facts.size(), 0);
  std::vector<int> ranks(facts.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return share_cores(ranks, facts, node_of_rank);
}

TEST(ShareCores, TwoRanksBoundToOneCore) {
  EXPECT_TRUE(share({bound_to({0}, 2), bound_to({0}, 2)}));
  EXPECT_FALSE(share({bound_to({0}, 2), bound_to({1}, 2)}));
}

TEST(ShareCores, UnboundRanks) {
  const MachineFacts unbound = bound_to({0, 1}, 2);
  EXPECT_FALSE(share({unbound}));
  EXPECT_FALSE(share({unbound, unbound}));
  EXPECT_TRUE(share({unbound, unbound, unbound}));
  EXPECT_TRUE(share({unbound, unbound, unbound, unbound}));
}

TEST(ShareCores, ThreadsOfACoreAreNoCores) {
  // Two cores with two hardware threads each: four logical CPUs, and four ranks share.
  const MachineFacts unbound = bound_to({0, 1, 2, 3}, 2);
  EXPECT_FALSE(share({unbound, unbound}));
  EXPECT_TRUE(share({unbound, unbound, unbound}));
}

TEST(ShareCores, UnknownCoresCountLogicalCpus) {
  const MachineFacts unbound = bound_to({0, 1, 2}, {});
  EXPECT_FALSE(share({unbound, unbound, unbound}));
  EXPECT_TRUE(share({unbound, unbound, unbound, unbound}));
}

TEST(ShareCores, MasksThatOverlapMayStillSpread) {
  // Only 2 -> CPU 2, 1 -> CPU 1, 0 -> CPU 0 works: whoever came first must give way twice.
  EXPECT_FALSE(share({bound_to({0, 1, 2}, 4), bound_to({0, 1}, 4), bound_to({0}, 4)}));
  EXPECT_FALSE(share({bound_to({0, 1}, 4), bound_to({1, 2}, 4), bound_to({1}, 4)}));
  // Three ranks on two CPUs between them, though the node has more.
  EXPECT_TRUE(share({bound_to({0, 1}, 4), bound_to({0, 1}, 4), bound_to({1}, 4)}));
}

TEST(ShareCores, NodesAreSeparate) {
  const MachineFacts first = bound_to({0}, 2);
  EXPECT_FALSE(share({first, first}, {0, 1}));
  EXPECT_TRUE(share({first, first, first}, {0, 1, 1}));
  const MachineFacts unbound = bound_to({0, 1}, 2);
  EXPECT_FALSE(share({unbound, unbound, unbound, unbound}, {0, 1, 0, 1}));
  EXPECT_TRUE(share({unbound, unbound, unbound, unbound}, {0, 1, 0, 0}));
}

TEST(ShareCores, AsksOnlyForTheRanksNamed) {
  const MachineFacts unbound = bound_to({0, 1}, 2);
  const std::vector<MachineFacts> facts(4, unbound);
  const std::vector<int> nodes(4, 0);
  EXPECT_FALSE(share_cores(std::vector{1, 3}, facts, nodes));
  EXPECT_TRUE(share_cores(std::vector{0, 1, 3}, facts, nodes));
  EXPECT_FALSE(share_cores(std::vector<int>{}, facts, nodes));
}

TEST(RankFacts, TellWhatIsKnownAndNothingElse) {
  MachineFacts known = bound_to({4, 5}, 8);
  known.cpu_model = "CPU";
  known.os = "Linux 6.1";
  known.memory_total = units::Bytes{1024};
  const std::vector<MachineFacts> facts{known, bound_to({}, {})};
  const std::vector<int> nodes{0, 1};
  const auto ranks = rank_facts(facts, nodes);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].host, "made-up");
  EXPECT_EQ(ranks[1].node, 1);
  EXPECT_THAT(ranks[0].text, Contains(Pair("cpu_model", "CPU")));
  EXPECT_THAT(ranks[0].text, Contains(Pair("bound_cpus", "4,5")));
  EXPECT_THAT(ranks[0].number, Contains(Pair("cores", 8)));
  EXPECT_THAT(ranks[0].number, Contains(Pair("bound_cores", 2)));
  EXPECT_THAT(ranks[0].number, Contains(Pair("memory_total", 1024)));
  for (const char* absent : {"cores", "sockets", "numa_nodes", "memory_total"}) {
    EXPECT_THAT(ranks[1].number, Not(Contains(Key(absent))));
  }
  EXPECT_THAT(ranks[1].text, Not(Contains(Key("cpu_model"))));
}

}  // namespace
}  // namespace isoscale::runner
