// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/collect_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "tests/unit/scratch_tree.hpp"
#include "tests/unit/texts.hpp"

namespace isoscale::preflight {
namespace {

using machine::MachineFacts;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;
using testing::SizeIs;
using testing_support::known;
using testing_support::Texts;

MachineFacts bound_to(const std::vector<int>& cpus, const std::vector<int>& cores) {
  MachineFacts facts;
  facts.bound_cpus = cpus;
  facts.bound_core_ids = cores;
  return facts;
}

class Collect : public testing::Test {
 protected:
  [[nodiscard]] FactSources sources(const Texts& variables = {}) const {
    return {.root = tree_.root(), .nvml = nullptr, .environment = known(variables)};
  }
  ScratchTree tree_;
};

TEST_F(Collect, OfANodeThatTellsNothingIsAllAbsent) {
  EXPECT_EQ(json_of(collect_node(sources(), {})), nlohmann::json::object());
}

TEST_F(Collect, OfANodeTakesWhatIsKnownOfTheMachine) {
  MachineFacts machine;
  machine.host = "c1";
  machine.cpu_model = "EPYC";
  machine.cores = 96;
  machine.memory_total = units::Bytes{1'000'000};
  machine.os = "Linux 6.8";
  machine.cpu_quota = 8.5;
  EXPECT_EQ(json_of(collect_node(sources(), machine)), nlohmann::json::parse(R"({
    "host": "c1", "cpu_model": "EPYC", "cores": 96, "memory": 1e6, "os": "Linux 6.8",
    "cpu_quota": 8.5})"));
}

TEST_F(Collect, OfANodePutsItsPartsTogether) {
  const std::string gpu = "pci0000:15/0000:15:01.0/0000:1b:00.0";
  tree_.pci_function(gpu, "0x10de", "0x030200");
  tree_.pci_function("pci0000:15/0000:15:02.0/0000:1c:00.0", "0x10de", "0x030200");
  tree_.link("sys/devices/" + gpu + "/iommu_group", "sys/kernel/iommu_groups/3");
  tree_.write("sys/kernel/iommu_groups/3/type", "DMA\n");
  tree_.write("sys/devices/pci0000:15/0000:15:01.0/config", std::string(4096, '\0'));
  tree_.write("sys/devices/pci0000:15/0000:15:02.0/config", std::string(4096, '\0'));
  tree_.write("dev/kmsg", "NVRM: Xid (PCI:0000:1b:00): 48, double bit\n");
  tree_.folder("dev/shm");
  tree_.folder("sys/module/nvidia_peermem");
  tree_.folder("sys/class/infiniband/mlx5_0/ports/1");
  tree_.write("opt/nccl/libnccl-net.so", "");
  const CheckedNode node = collect_node(sources({{"LD_LIBRARY_PATH", "/opt/nccl"}}), {});
  ASSERT_THAT(node.gpus, Optional(SizeIs(2)));
  EXPECT_THAT((*node.gpus)[0].xids, Optional(ElementsAre(48)));
  EXPECT_THAT((*node.gpus)[1].xids, Optional(IsEmpty()));
  EXPECT_THAT(node.peers, SizeIs(1));
  EXPECT_THAT(node.iommu_translates, Optional(true));
  EXPECT_THAT(node.acs, Optional(false));
  EXPECT_THAT(node.nvidia_peermem, Optional(true));
  EXPECT_THAT(node.gdrcopy, Optional(false));
  EXPECT_THAT(node.ports, Optional(SizeIs(1)));
  EXPECT_THAT(node.nccl_plugins, Optional(ElementsAre("libnccl-net.so")));
  ASSERT_TRUE(node.shm_size.has_value());
  EXPECT_GT(*node.shm_size, 0);
  EXPECT_LE(node.shm_free.value_or(-1), *node.shm_size);
  EXPECT_GE(node.shm_free.value_or(-1), 0);
  tree_.remove("dev/kmsg");
  EXPECT_EQ(collect_node(sources(), {}).gpus->front().xids, std::nullopt);
}

TEST_F(Collect, OfThisMachinePlacesEachCpuOnOneNumaNode) {
  const MachineFacts machine = machine::machine_facts();
  const CheckedNode node = collect_node({}, machine);
  EXPECT_EQ(node.host, machine.host);
  for (const int cpu : machine.bound_cpus) {
    std::size_t places = 0;
    for (const auto& [numa, cpus] : node.numa_cpus) places += std::ranges::count(cpus, cpu);
    EXPECT_EQ(places, node.numa_cpus.empty() ? 0U : 1U) << cpu;
  }
}

TEST_F(Collect, OfARankTellsItsBinding) {
  const CheckedRank rank = collect_rank(sources(), bound_to({2, 3}, {1}));
  EXPECT_EQ(rank.pid, getpid());
  EXPECT_THAT(rank.cpus, ElementsAre(2, 3));
  EXPECT_THAT(rank.cores, ElementsAre(1));
}

TEST_F(Collect, OfARankTellsTheLimitOfLockedMemory) {
  using Limit = std::pair<std::optional<double>, bool>;  ///< the other: whether there is none
  const auto limit = [&] {
    const CheckedRank rank = collect_rank(sources(), {});
    return Limit{rank.locked_memory_limit, rank.locked_memory_unlimited};
  };
  EXPECT_EQ(limit(), (Limit{std::nullopt, false}));
  const std::string head =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max open files            1024                 4096                 files     \n"
      "Max locked memory         ";
  tree_.write("proc/self/limits", head + "8388608              unlimited            bytes     \n");
  EXPECT_EQ(limit(), (Limit{8388608, false}));
  tree_.write("proc/self/limits", head + "unlimited            unlimited            bytes     \n");
  EXPECT_EQ(limit(), (Limit{std::nullopt, true}));
}

TEST_F(Collect, OfARankKeepsSettingsAndTheLaunchersNumbersAndNothingElse) {
  EXPECT_THAT(collect_rank(sources(), {}).launcher, IsEmpty());
  const CheckedRank rank = collect_rank(sources({{"NCCL_ALGO", "Ring"},
                                                 {"UCX_TLS", "rc"},
                                                 {"OMP_NUM_THREADS", "4"},
                                                 {"NCCL_SECRET", "x"},
                                                 {"SLURM_JWT", "x"},
                                                 {"SLURM_JOB_ID", "17"},
                                                 {"PMIX_RANK", "3"},
                                                 {"OMPI_COMM_WORLD_SIZE", "8"},
                                                 {"SLURM_NTASKS", "16"},
                                                 {"SLURM_NTASKS_PER_NODE", "8(x2)"},
                                                 {"PMI_SIZE", ""}}),
                                        {});
  EXPECT_THAT(rank.environment, ElementsAre(Pair("NCCL_ALGO", "Ring"), Pair("OMP_NUM_THREADS", "4"),
                                            Pair("UCX_TLS", "rc")));
  EXPECT_THAT(rank.launcher,
              ElementsAre(Pair("OMPI_COMM_WORLD_SIZE", 8), Pair("SLURM_NTASKS", 16)));
}

/// A plugin's name is looked for along library paths; its path is there or it is not.
TEST_F(Collect, OfARankNamesVariablesWhoseFileIsNotThere) {
  tree_.write("etc/topology.xml", "<system/>");
  tree_.write("opt/libnccl-net-x.so", "");
  const auto missing = [&](const Texts& variables) {
    return collect_rank(sources(variables), {}).missing_files;
  };
  EXPECT_THAT(missing({{"NCCL_TOPO_FILE", "/etc/topology.xml"},
                       {"NCCL_GRAPH_FILE", "/etc/graph.xml"},
                       {"NCCL_CONF_FILE", ""}}),
              ElementsAre("NCCL_GRAPH_FILE"));
  EXPECT_THAT(missing({{"NCCL_NET_PLUGIN", "x"}}), IsEmpty());
  EXPECT_THAT(missing({{"NCCL_NET_PLUGIN", "/opt/libnccl-net-x.so"}}), IsEmpty());
  EXPECT_THAT(missing({{"NCCL_NET_PLUGIN", "/opt/libnccl-net-y.so"}}),
              ElementsAre("NCCL_NET_PLUGIN"));
}

}  // namespace
}  // namespace isoscale::preflight
