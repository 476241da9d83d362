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

TEST_F(Collect, OfANodeHasTheSizeOfSharedMemory) {
  tree_.folder("dev/shm");
  const CheckedNode node = collected();
  EXPECT_GT(node.shm_size.value(), 0);
  EXPECT_LE(node.shm_free.value(), *node.shm_size);
  EXPECT_GE(*node.shm_free, 0);
}

TEST_F(Collect, OfThisMachinePlacesEachCpuOnOneNumaNode) {
  const MachineFacts machine = machine::machine_facts();
  const CheckedNode node = collect_node({}, machine);
  EXPECT_EQ(node.host, machine.host);
  for (const int cpu : machine.bound_cpus) {
    std::ptrdiff_t places = 0;
    for (const auto& [numa, cpus] : node.numa_cpus) places += std::ranges::count(cpus, cpu);
    EXPECT_EQ(places, machine.numa_cpus.empty() ? 0 : 1) << cpu;
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
  // If a device that matters has a group, others, such as that of a USB controller, do not count.
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
  tree_.lines(function, {{"max_link_speed", "32.0 GT/s PCIe"},
                         {"current_link_speed", "32.0 GT/s PCIe"},
                         {"max_link_width", "16"},
                         {"current_link_width", "8"},
                         {"numa_node", "0"}});
  tree_.lines("sys/class/infiniband/mlx5_0/ports/1", {{"state", "4: ACTIVE"},
                                                      {"phys_state", "5: LinkUp"},
                                                      {"rate", "400 Gb/sec (4X NDR)"},
                                                      {"link_layer", "InfiniBand"},
                                                      {"counters/link_downed", "3"},
                                                      {"counters/symbol_error", "17"}});
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
              "[ 99.6] NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 154, GPU recovery action\n"
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

/// A GPU below the next switch of the port of the first two, one beside it.
const std::string further =
    "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:20:00.0/0000:21:00.0/0000:22:00.0";
const std::string beside = "pci0000:15/0000:15:02.0/0000:30:00.0";
const std::string elsewhere = "pci0000:80/0000:80:01.0/0000:81:00.0";

/// The name of the distance between two functions with these paths and NUMA nodes.
std::optional<std::string_view> distance(const std::optional<std::string>& path_a,
                                         std::optional<int> numa_a,
                                         const std::optional<std::string>& path_b,
                                         std::optional<int> numa_b) {
  machine::PciFacts a, b;
  a.pci_path = path_a;
  a.numa_node = numa_a;
  b.pci_path = path_b;
  b.numa_node = numa_b;
  const std::optional<PciDistance> found = distance_between(a, b);
  return found ? std::optional{name(*found)} : std::nullopt;
}

TEST(PciDistance, IsTheSwitchThatBothAreBelowAndUnknownWhereWhatDecidesIs) {
  EXPECT_EQ(distance(first_path, 0, second_path, 0), "one switch");
  EXPECT_EQ(distance(first_path, 0, further, 0), "several switches");
  EXPECT_EQ(distance(first_path, std::nullopt, second_path, std::nullopt), "one switch");
  // Without one it is the root complex or the NUMA node.
  EXPECT_EQ(distance(first_path, 0, beside, 0), "host bridge");
  EXPECT_EQ(distance(first_path, 0, elsewhere, 0), "NUMA node");
  EXPECT_EQ(distance(first_path, 0, elsewhere, 1), "system");
  EXPECT_EQ(distance(first_path, 0, elsewhere, std::nullopt), std::nullopt);
  EXPECT_EQ(distance(first_path, std::nullopt, elsewhere, 0), std::nullopt);
  EXPECT_EQ(distance(std::nullopt, 0, second_path, 0), std::nullopt);
  EXPECT_EQ(distance(first_path, 0, std::nullopt, 0), std::nullopt);
}

constexpr char downstream_port = 0x62, root_port = 0x42;

/// The configuration space of a port of this kind: a power management capability, PCI Express, and
/// after another extended capability Access Control Services with this control register.
std::string port(char kind, char control) {
  std::string space(4096, '\0');
  space[0x34] = 0x40;
  space[0x40] = 0x01;
  space[0x41] = 0x68;
  space[0x68] = 0x10;
  space[0x6A] = kind;
  space[0x100] = 0x01;
  space[0x102] = 0x01;
  space[0x103] = 0x22;  // next: 0x220
  space[0x220] = 0x0D;
  space[0x222] = 0x01;
  space[0x226] = control;
  return space;
}

TEST(RedirectsPeers, IsTrueOfSwitchPortsThatSendRequestsOrCompletionsUp) {
  EXPECT_THAT(redirects_peers(port(downstream_port, 0x1D)), Optional(true));
  EXPECT_THAT(redirects_peers(port(downstream_port, 0x04)), Optional(true));
  EXPECT_THAT(redirects_peers(port(downstream_port, 0x08)), Optional(true));
  // Ports without these bits, and what is no such port.
  EXPECT_THAT(redirects_peers(port(downstream_port, 0x00)), Optional(false));
  EXPECT_THAT(redirects_peers(port(downstream_port, 0x51)), Optional(false));
  EXPECT_THAT(redirects_peers(port(root_port, 0x1D)), Optional(false));
  EXPECT_THAT(redirects_peers(std::string(4096, '\0')), Optional(false));
  EXPECT_THAT(redirects_peers(std::string(4096, '\xFF')), Optional(false));
  EXPECT_EQ(redirects_peers(port(downstream_port, 0x1D).substr(0, 64)), std::nullopt);
  EXPECT_EQ(redirects_peers(port(downstream_port, 0x1D).substr(0, 256)), std::nullopt);
  EXPECT_EQ(redirects_peers(""), std::nullopt);
  std::string loop = port(downstream_port, 0x1D);
  loop[0x41] = 0x40;
  EXPECT_THAT(redirects_peers(loop), Optional(false));
  loop = port(downstream_port, 0x1D);
  loop[0x102] = 0x01;
  loop[0x103] = 0x10;  // next: 0x100
  EXPECT_THAT(redirects_peers(loop), Optional(false));
}

class Pci : public testing::Test {
 protected:
  [[nodiscard]] CheckedNode node() const { return collect_node({.root = tree_.root()}, {}); }
  [[nodiscard]] std::optional<bool> redirected() const { return node().acs; }
  ScratchTree tree_;
};

TEST_F(Pci, ShowsGpusAndNothingElse) {
  EXPECT_EQ(node().gpus, std::nullopt);
  tree_.folder("sys/bus/pci/devices");
  EXPECT_THAT(node().gpus, Optional(IsEmpty()));
  tree_.pci_function("pci0000:15/0000:1b:00.0", "0x10de", "0x030200");
  tree_.pci_function("pci0000:15/0000:1a:00.0", "0x10de", "0x030000");
  tree_.pci_function("pci0000:15/0000:1a:00.1", "0x10de", "0x040300");  // its sound
  tree_.pci_function("pci0000:15/0000:05:00.0", "0x10de", "0x068000");  // an NVSwitch
  tree_.pci_function("pci0000:15/0000:02:00.0", "0x102b", "0x030000");  // a console
  EXPECT_THAT(mapped(node().gpus.value(), &GpuFacts::pci_bus_id),
              ElementsAre("0000:1a:00.0", "0000:1b:00.0"));
}

using Numbers = std::array<std::optional<int>, 5>;
/// Generation, the most of it, width, the most of it, and the NUMA node.
Numbers numbers_of(const machine::PciFacts& facts) {
  return {facts.pcie_generation, facts.pcie_generation_max, facts.pcie_width, facts.pcie_width_max,
          facts.numa_node};
}

TEST_F(Pci, TellsAFunctionsLinkAndPlace) {
  tree_.pci_function(first_path, "0x10de", "0x030200");
  const auto function = tree_.at("sys/bus/pci/devices/0000:1b:00.0");
  EXPECT_EQ(pci_facts(function).pci_path, first_path);
  EXPECT_EQ(numbers_of(pci_facts(function)), Numbers{});
  const std::string folder = "sys/devices/" + first_path;
  tree_.write(folder + "/current_link_speed", "16.0 GT/s PCIe\n");
  tree_.write(folder + "/max_link_speed", "32.0 GT/s PCIe\n");
  tree_.write(folder + "/current_link_width", "8\n");
  tree_.write(folder + "/max_link_width", "16\n");
  tree_.write(folder + "/numa_node", "1\n");
  EXPECT_EQ(numbers_of(pci_facts(function)), (Numbers{4, 5, 8, 16, 1}));
  for (const auto& [speed, generation] : {std::pair{"2.5 GT/s PCIe\n", std::optional{1}},
                                          {"8.0 GT/s\n", {3}},
                                          {"64.0 GT/s PCIe\n", {6}},
                                          {"", {}}}) {
    tree_.write(folder + "/current_link_speed", speed);
    EXPECT_EQ(pci_facts(function).pcie_generation, generation) << speed;
  }
}

TEST_F(Pci, LeavesOutWhatTheKernelDoesNotKnow) {
  tree_.write("function/current_link_speed", "Unknown\n");
  tree_.write("function/max_link_speed", "7.0 GT/s\n");
  tree_.write("function/current_link_width", "0\n");
  tree_.write("function/max_link_width", "255\n");
  tree_.write("function/numa_node", "-1\n");
  EXPECT_EQ(numbers_of(pci_facts(tree_.at("function"))), Numbers{});
  EXPECT_EQ(pci_facts(tree_.at("function")).pci_path, std::nullopt);
  EXPECT_EQ(pci_facts(tree_.at("none")).pci_path, std::nullopt);
}

TEST_F(Pci, FindsHostBridgesBelowPlatformDevices) {
  tree_.pci_function("platform/NVDA0001:00/pci0002:00/0002:00:00.0/0002:01:00.0", "0x10de",
                     "0x030200");
  EXPECT_EQ(pci_facts(tree_.at("sys/bus/pci/devices/0002:01:00.0")).pci_path,
            "pci0002:00/0002:00:00.0/0002:01:00.0");
}

TEST_F(Pci, KnowsAccessControlOfTheBridgesAboveGpus) {
  tree_.pci_function(first_path, "0x10de", "0x030200");
  EXPECT_EQ(redirected(), std::nullopt);  // no bridge can be read
  const std::string above = "sys/devices/pci0000:15/0000:15:01.0";
  tree_.write(above + "/config", port(root_port, 0x1D));
  tree_.write(above + "/0000:16:00.0/config", std::string(4096, '\0'));
  const std::string downstream = above + "/0000:16:00.0/0000:17:00.0/config";
  EXPECT_EQ(redirected(), std::nullopt);  // one is still unknown
  tree_.write(downstream, port(downstream_port, 0x00));
  EXPECT_THAT(redirected(), Optional(false));
  tree_.write(downstream, port(downstream_port, 0x1D));
  EXPECT_THAT(redirected(), Optional(true));
  tree_.remove(above + "/config");  // one that does is enough
  EXPECT_THAT(redirected(), Optional(true));
}

TEST_F(Pci, KnowsNoAccessControlWhereNoBridgeIsToBeSeen) {
  tree_.pci_function("pci0000:00/0000:00:05.0", "0x10de", "0x030200");  // a virtual machine
  EXPECT_EQ(redirected(), std::nullopt);
}

}  // namespace
}  // namespace isoscale::preflight
