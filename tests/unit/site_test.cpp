// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/site.hpp"
#include "runner/run_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace isoscale::runner {
namespace {

using machine::MachineFacts;
using testing::ElementsAre;
using testing::Pair;

/// Cores of one logical CPU each, as far as nothing else is said.
MachineFacts bound_to(const std::vector<int>& cpus, std::optional<int> cores_of_node) {
  return {.host = "made-up",
          .cpu_model = {},
          .sockets = {},
          .cores = cores_of_node,
          .numa_nodes = {},
          .memory_total = {},
          .memory_available = {},
          .bound_cpus = cpus,
          .bound_core_ids = cpus,
          .os = {},
          .cpu_quota = {}};
}

/// All of these ranks, on one node unless told otherwise.
bool share(const std::vector<MachineFacts>& facts, std::vector<int> node_of_rank = {}) {
  node_of_rank.resize(facts.size(), 0);
  std::vector<int> ranks(facts.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return plan::share_cores(ranks, facts, node_of_rank);
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
  MachineFacts unbound = bound_to({0, 1, 2, 3}, 2);
  unbound.bound_core_ids = {0, 1};
  EXPECT_FALSE(share({unbound, unbound}));
  EXPECT_TRUE(share({unbound, unbound, unbound}));
  // Both threads of core 0 on a node of four cores.
  MachineFacts first = bound_to({0}, 4), second = bound_to({1}, 4);
  first.bound_core_ids = second.bound_core_ids = {0};
  EXPECT_TRUE(share({first, second}));
  second.bound_core_ids = {1};
  EXPECT_FALSE(share({first, second}));
}

TEST(ShareCores, AQuotaLeavesNoMoreCoresThanItsCpus) {
  MachineFacts unbound = bound_to({0, 1, 2, 3}, 4);
  unbound.cpu_quota = 2.0;
  EXPECT_FALSE(share({unbound, unbound}));
  EXPECT_TRUE(share({unbound, unbound, unbound}));
  EXPECT_FALSE(share({unbound, unbound, unbound}, {0, 1, 0}));
  unbound.cpu_quota = 1.5;
  EXPECT_TRUE(share({unbound, unbound}));
  unbound.cpu_quota = 0.5;
  EXPECT_TRUE(share({unbound}));
}

TEST(ShareCores, AnUnknownBindingSaysNothing) {
  const MachineFacts nothing = bound_to({}, {});
  EXPECT_FALSE(share({nothing, nothing, nothing}));
  const MachineFacts of_two = bound_to({}, 2);
  EXPECT_FALSE(share({of_two, of_two}));
  EXPECT_TRUE(share({of_two, of_two, of_two}));
  EXPECT_FALSE(share({bound_to({0}, 2), of_two}));
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
  EXPECT_FALSE(plan::share_cores(std::vector{1, 3}, facts, nodes));
  EXPECT_TRUE(plan::share_cores(std::vector{0, 1, 3}, facts, nodes));
  EXPECT_FALSE(plan::share_cores(std::vector<int>{}, facts, nodes));
}

TEST(RankFacts, TellWhatIsKnownAndNothingElse) {
  MachineFacts known = bound_to({4, 5}, 8);
  known.cpu_model = "CPU";
  known.os = "Linux 6.1";
  known.memory_total = units::Bytes{1024};
  known.cpu_quota = 2.5;
  const std::vector<MachineFacts> facts{known, bound_to({}, {})};
  const std::vector<int> nodes{0, 1};
  const std::vector<RankSoftware> software{
      {.device = "BLAS A",
       .mpi_library = "MPI 1",
       .text = {{"gpu_name", "Some GPU"}, {"cpu_model", "not the device's to say"}},
       .number = {{"gpu_nvlinks", 18}, {"memory_total", 1}}},
      {.device = "BLAS B", .mpi_library = "MPI 2"}};
  const auto ranks = rank_facts(facts, software, nodes);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].host, "made-up");
  EXPECT_EQ(ranks[1].node, 1);
  EXPECT_THAT(ranks[0].text, ElementsAre(Pair("bound_cpus", "4,5"), Pair("cpu_model", "CPU"),
                                         Pair("cpu_quota", "2.5 CPUs"), Pair("device", "BLAS A"),
                                         Pair("gpu_name", "Some GPU"), Pair("mpi_library", "MPI 1"),
                                         Pair("os", "Linux 6.1")));
  EXPECT_THAT(ranks[0].number,
              ElementsAre(Pair("bound_cores", 2), Pair("cores", 8), Pair("cpu_quota", 2.5),
                          Pair("gpu_nvlinks", 18), Pair("memory_total", 1024)));
  EXPECT_THAT(ranks[1].text, ElementsAre(Pair("device", "BLAS B"), Pair("mpi_library", "MPI 2")));
  EXPECT_TRUE(ranks[1].number.empty());
}

TEST(RankSoftware, TravelsAsTextWithAllThatIsKnown) {
  const RankSoftware sent{
      .device = "NVIDIA H200",
      .mpi_library = "Open MPI \"4\"",
      .text = {{"gpu_uuid", "GPU-1"}, {"gpu_driver", "5\xFF"}},
      .number = {{"gpu_sm_clock", 1.98e9}, {"tiny", 0.1}, {"unknown", std::nan("")}}};
  const RankSoftware received = software_from_text(to_text(sent));
  EXPECT_EQ(received.device, sent.device);
  EXPECT_EQ(received.mpi_library, sent.mpi_library);
  EXPECT_THAT(received.text, ElementsAre(Pair("gpu_driver", "5\uFFFD"), Pair("gpu_uuid", "GPU-1")));
  EXPECT_THAT(received.number, ElementsAre(Pair("gpu_sm_clock", 1.98e9), Pair("tiny", 0.1)));
  const RankSoftware nothing = software_from_text(to_text({.device = "", .mpi_library = ""}));
  EXPECT_TRUE(nothing.text.empty() && nothing.number.empty());
}

const plan::Site two_nodes{.ranks = 2,
                           .node_of_rank = {0, 1},
                           .precisions = {},
                           .device = "host",
                           .memory_free = {units::Bytes{1}, {}}};

TEST(PlannedSite, IsWhereTheRanksAreUnlessMoreArePlanned) {
  settings::RunConfig config;
  EXPECT_EQ(plan::planned_site(two_nodes, config).node_of_rank, (std::vector{0, 1}));
  config.ranks = {1, 2};
  EXPECT_EQ(plan::planned_site(two_nodes, config).nodes, plan::Nodes::known);
  EXPECT_EQ(plan::planned_site(two_nodes, config).memory_free.size(), 2U);
  config.ranks = {4};
  EXPECT_EQ(plan::planned_site(two_nodes, config).nodes, plan::Nodes::unknown);
  EXPECT_EQ(plan::planned_site(two_nodes, config).ranks, 4);
  // The facts known of one node are taken for all.
  EXPECT_THAT(plan::planned_site(two_nodes, config).memory_free,
              ElementsAre(units::Bytes{1}, units::Bytes{1}));
  EXPECT_EQ(plan::planned_site(two_nodes, config).memory_of, plan::MemoryOf::this_machine);
}

TEST(PlannedSite, HasTheRanksOfANodeThatAreNamed) {
  settings::RunConfig config;
  config.ranks_per_node = 2;
  EXPECT_EQ(plan::planned_site(two_nodes, config).node_of_rank, (std::vector{0, 0}));
  config.ranks = {1, 5};
  EXPECT_EQ(plan::planned_site(two_nodes, config).node_of_rank, (std::vector{0, 0, 1, 1, 2}));
  EXPECT_EQ(plan::planned_site(two_nodes, config).nodes, plan::Nodes::known);
  EXPECT_EQ(plan::planned_site(two_nodes, config).memory_free.size(), 3U);
}

}  // namespace
}  // namespace isoscale::runner
