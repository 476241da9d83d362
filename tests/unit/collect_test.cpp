// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/collect_facts.hpp"

#include <unistd.h>

#include "tests/unit/scratch_tree.hpp"

namespace isoscale::preflight {
namespace {

using machine::MachineFacts;
using testing_support::known;
using testing_support::Texts;

class Collect : public testing::Test {
 protected:
  [[nodiscard]] FactSources sources(const Texts& variables = {}) const {
    return {.root = tree_.root(), .nvml = nullptr, .environment = known(variables)};
  }
  [[nodiscard]] CheckedNode collected(const Texts& variables = {}) const {
    return collect_node(sources(variables), {});
  }
  ScratchTree tree_;
};

TEST_F(Collect, OfANodeThatTellsNothingTakesOnlyWhatIsKnownOfTheMachine) {
  EXPECT_EQ(json_of(collected()), nlohmann::json::object());
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
  tree_.pci_function("pci0000:15/0000:15:01.0/0000:1b:00.0", "0x10de", "0x030200");
  tree_.pci_function("pci0000:15/0000:15:02.0/0000:1c:00.0", "0x10de", "0x030200");
  tree_.write("sys/devices/pci0000:15/0000:15:01.0/config", std::string(4096, '\0'));
  tree_.write("sys/devices/pci0000:15/0000:15:02.0/config", std::string(4096, '\0'));
  tree_.write("dev/kmsg", "NVRM: Xid (PCI:0000:1b:00): 48, double bit\n");
  tree_.folder("dev/shm");
  const CheckedNode node = collected();
  ASSERT_THAT(node.gpus, Optional(SizeIs(2)));
  EXPECT_THAT((*node.gpus)[0].xids, Optional(ElementsAre(48)));
  EXPECT_THAT((*node.gpus)[1].xids, Optional(IsEmpty()));
  EXPECT_THAT(node.peers, SizeIs(1));
  EXPECT_THAT(node.acs, Optional(false));
  ASSERT_TRUE(node.shm_size.has_value());
  EXPECT_GT(*node.shm_size, 0);
  EXPECT_LE(node.shm_free.value_or(-1), *node.shm_size);
  EXPECT_GE(node.shm_free.value_or(-1), 0);
  tree_.remove("dev/kmsg");
  EXPECT_EQ(collected().gpus->front().xids, std::nullopt);
}

TEST_F(Collect, OfThisMachinePlacesEachCpuOnOneNumaNode) {
  const MachineFacts machine = machine::machine_facts();
  const CheckedNode node = collect_node({}, machine);
  EXPECT_EQ(node.host, machine.host);
  for (const int cpu : machine.bound_cpus) {
    std::size_t places = 0;
    for (const auto& [numa, cpus] : node.numa_cpus) places += std::ranges::count(cpus, cpu);
    EXPECT_EQ(places, machine.numa_cpus.empty() ? 0U : 1U) << cpu;
  }
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

TEST_F(Collect, OfARankKeepsItsBindingSettingsAndTheLaunchersNumbersAndNothingElse) {
  EXPECT_THAT(collect_rank(sources(), {}).launcher, IsEmpty());
  MachineFacts bound;
  bound.bound_cpus = {2, 3};
  bound.bound_core_ids = {1};
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
                                        bound);
  EXPECT_EQ(rank.pid, getpid());
  EXPECT_THAT(rank.cpus, ElementsAre(2, 3));
  EXPECT_THAT(rank.cores, ElementsAre(1));
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

// Parts of a node's facts, out of trees like the kernel's.

using Settings = Collect;

TEST_F(Settings, CountCpusByContentOfAFile) {
  tree_.folder("sys/devices/system/cpu/cpu0");
  tree_.write("sys/devices/system/cpu/cpufreq/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(collected().governors, std::nullopt);
  for (const std::string cpu : {"0", "1", "10"}) {
    const std::string folder = "sys/devices/system/cpu/cpu" + cpu + "/cpufreq/";
    tree_.write(folder + "scaling_governor", cpu == "10" ? "powersave\n" : "performance\n");
    tree_.write(folder + "scaling_driver", "intel_pstate\n");
    tree_.write(folder + "energy_performance_preference", "balance_power\n");
  }
  EXPECT_THAT(collected().governors,
              Optional(ElementsAre(Pair("performance", 2), Pair("powersave", 1))));
  EXPECT_EQ(collected().frequency_driver, "intel_pstate");
  EXPECT_THAT(collected().energy_preferences, Optional(ElementsAre(Pair("balance_power", 3))));
}

TEST_F(Settings, KnowWhetherAnIommuTranslates) {
  EXPECT_EQ(collected().iommu_translates, std::nullopt);
  tree_.folder("sys/class/iommu");
  EXPECT_THAT(collected().iommu_translates, Optional(false));
  tree_.folder("sys/class/iommu/dmar0");
  EXPECT_EQ(collected().iommu_translates, std::nullopt);  // on, but how is not told
  tree_.write("proc/cmdline", "root=/dev/sda1 iommu=ptx iommu=p\n");
  EXPECT_EQ(collected().iommu_translates, std::nullopt);
  tree_.write("proc/cmdline", "root=/dev/sda1 intel_iommu=on iommu=pt\n");
  EXPECT_THAT(collected().iommu_translates, Optional(false));
  tree_.write("sys/kernel/iommu_groups/0/type", "identity\n");
  EXPECT_THAT(collected().iommu_translates, Optional(false));
  tree_.write("sys/kernel/iommu_groups/1/type", "DMA-FQ\n");
  EXPECT_THAT(collected().iommu_translates, Optional(true));
  const std::string gpu = "pci0000:15/0000:1b:00.0";
  tree_.pci_function(gpu, "0x10de", "0x030200");
  EXPECT_THAT(collected().iommu_translates, Optional(true));  // the GPU is in no group
  // If a device that matters has a group, the others, such as that of an USB controller, do not
  // count.
  tree_.write("sys/kernel/iommu_groups/7/type", "identity\n");
  tree_.link("sys/class/infiniband/mlx5_0/device/iommu_group", "sys/kernel/iommu_groups/7");
  EXPECT_THAT(collected().iommu_translates, Optional(false));
  tree_.write("sys/kernel/iommu_groups/3/type", "DMA\n");
  tree_.link("sys/devices/" + gpu + "/iommu_group", "sys/kernel/iommu_groups/3");
  EXPECT_THAT(collected().iommu_translates, Optional(true));
}

TEST_F(Settings, KnowLoadedModules) {
  EXPECT_EQ(collected().nvidia_peermem, std::nullopt);
  tree_.folder("sys/module/gdrdrv");
  EXPECT_THAT(collected().nvidia_peermem, Optional(false));
  EXPECT_THAT(collected().gdrcopy, Optional(true));
  tree_.folder("sys/module/nv_peer_mem");
  EXPECT_THAT(collected().nvidia_peermem, Optional(true));
}

TEST_F(Settings, KnowWhatExportsGpuMemoryAsDmabuf) {
  const char* const open =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n";
  const char* const closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Tue\n";
  EXPECT_EQ(collected().dmabuf, std::nullopt);
  tree_.write("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  EXPECT_EQ(collected().dmabuf, std::nullopt);
  for (const auto& [driver, kernel, expected] :
       {std::tuple{open, "6.8.0-45-generic\n", std::optional{true}},
        {open, "5.12.0\n", {true}},
        {open, "5.4.0\n", {false}},
        {closed, "6.8.0\n", {false}},
        {open, "six\n", {}}}) {
    tree_.write("proc/driver/nvidia/version", driver);
    tree_.write("proc/sys/kernel/osrelease", kernel);
    EXPECT_EQ(collected().dmabuf, expected) << kernel;
  }
}

TEST_F(Settings, ListPortsByAdapterAndNumber) {
  EXPECT_EQ(collected().ports, std::nullopt);
  tree_.folder("sys/class");
  EXPECT_THAT(collected().ports, Optional(IsEmpty()));
  const std::string function = "sys/devices/pci0000:15/0000:15:01.0/0000:19:00.0";
  tree_.link("sys/class/infiniband/mlx5_0/device", function);
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1";
  for (const auto& [path, text] : {std::pair{function + "/max_link_speed", "32.0 GT/s PCIe\n"},
                                   {function + "/current_link_speed", "32.0 GT/s PCIe\n"},
                                   {function + "/max_link_width", "16\n"},
                                   {function + "/current_link_width", "8\n"},
                                   {function + "/numa_node", "0\n"},
                                   {port + "/state", "4: ACTIVE\n"},
                                   {port + "/phys_state", "5: LinkUp\n"},
                                   {port + "/rate", "400 Gb/sec (4X NDR)\n"},
                                   {port + "/link_layer", "InfiniBand\n"},
                                   {port + "/counters/link_downed", "3\n"},
                                   {port + "/counters/symbol_error", "17\n"}}) {
    tree_.write(path, text);
  }
  tree_.folder("sys/class/infiniband/mlx5_0/ports/2");
  tree_.folder("sys/class/infiniband/bnxt_re0/ports/1");
  const auto found = collected().ports;
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ(json_of((*found)[0]), (nlohmann::json{{"device", "bnxt_re0"}}));
  EXPECT_EQ((*found)[2].port, 2);
  EXPECT_EQ(json_of((*found)[1]), nlohmann::json::parse(R"({
    "device": "mlx5_0", "state": "ACTIVE", "physical_state": "LinkUp", "link_layer": "InfiniBand",
    "rate": 400e9, "link_downed": 3, "symbol_errors": 17, "pcie_generation": 5,
    "pcie_generation_max": 5, "pcie_width": 8, "pcie_width_max": 16, "numa_node": 0,
    "pci_path": "pci0000:15/0000:15:01.0/0000:19:00.0"})"));
}

TEST_F(Settings, FindPluginsAlongThePathAndInTheCache) {
  EXPECT_EQ(collected().nccl_plugins, std::nullopt);
  const Texts variables{{"LD_LIBRARY_PATH", "/opt/a::/opt/none:/opt/b"}};
  EXPECT_EQ(collected(variables).nccl_plugins, std::nullopt);  // no such folders
  tree_.write("opt/a/libnccl-net.so", "");
  tree_.write("opt/a/libnccl.so.2", "");
  tree_.write("opt/b/libnccl-net-ofi.so", "");
  tree_.write("opt/b/libnccl-net.txt", "");
  EXPECT_THAT(collected(variables).nccl_plugins,
              Optional(ElementsAre("libnccl-net-ofi.so", "libnccl-net.so")));
  using namespace std::string_literals;
  tree_.write("etc/ld.so.cache", "glibc-ld.so.cache1.1\x03\0\0\0"s +
                                     "libnccl-net.so\0/opt/a/libnccl-net.so\0"s +
                                     "libsharp_coll.so.5\0/opt/sharp/lib/libsharp_coll.so.5\0"s +
                                     "libm.so.6\0/lib/libm.so.6\0/usr/lib/libnccl-tuner.so"s);
  EXPECT_THAT(collected().nccl_plugins,
              Optional(ElementsAre("libnccl-net.so", "libnccl-tuner.so", "libsharp_coll.so.5")));
  tree_.write("etc/ld.so.cache", "glibc-ld.so.cache1.1");
  EXPECT_THAT(collected().nccl_plugins, Optional(IsEmpty()));
}

TEST_F(Settings, SortXidsByGpuEachOnce) {
  for (const std::string bus : {"07", "1b", "5d"}) {
    tree_.pci_function("pci0000:15/0000:" + bus + ":00.0", "0x10de", "0x030200");
  }
  tree_.write("dev/kmsg",
              "4,500,10,-;NVRM: loading NVIDIA UNIX Open Kernel Module\n"
              "4,501,11,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
              "[ 99.5] NVRM: Xid (PCI:0000:5D:00): 31, pid=2, name=x\n"
              "[ 99.6] NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action\n"
              "[ 99.7] NVRM: Xid (PCI:0000:1b:00): 79, again\n"
              "[ 99.8] NVRM: Xid (0000:07:00.0): 13\n"
              "NVRM: Xid (PCI:0000:1b:00): none\nNVRM: Xid (PCI:0000:1b:00\nNVRM: Xid (");
  EXPECT_THAT(mapped(collected().gpus.value(), &GpuFacts::xids),
              ElementsAre(Optional(ElementsAre(13)), Optional(ElementsAre(79, 154)),
                          Optional(ElementsAre(31))));
}

TEST_F(Settings, ReadTheKernelsMessagesOrTheSystemsLogOfThisBoot) {
  tree_.pci_function("pci0000:15/0000:1b:00.0", "0x10de", "0x030200");
  const auto xids = [&] { return collected().gpus->front().xids; };
  const std::string message = "NVRM: Xid (PCI:0000:1b:00): ";
  EXPECT_EQ(xids(), std::nullopt);
  tree_.write("dev/kmsg", "");
  EXPECT_EQ(xids(), std::nullopt);
  tree_.write("dev/kmsg", std::string(10'000, 'm') + message + "79\n");
  EXPECT_THAT(xids(), Optional(ElementsAre(79)));
  tree_.remove("dev/kmsg");
  const std::string boot = "a: Linux version 6.1\n";
  tree_.write("var/log/kern.log", boot + message + "13\n" + boot + message + "31\n");
  EXPECT_EQ(xids(), std::nullopt);  // when this boot began is not known
  tree_.write("proc/stat", "cpu  1 2 3\nbtime 1000000000\nprocesses 7\n");
  EXPECT_THAT(xids(), Optional(ElementsAre(31)));
  tree_.write("var/log/kern.log", message + "43\n");  // rotated since
  EXPECT_THAT(xids(), Optional(ElementsAre(43)));
  tree_.write("proc/stat", "cpu  1 2 3\nbtime 99999999999\n");  // after the last line
  EXPECT_EQ(xids(), std::nullopt);
}

}  // namespace
}  // namespace isoscale::preflight
