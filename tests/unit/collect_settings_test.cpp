// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Parts of a node's facts, out of trees like the kernel's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "preflight/collect_facts.hpp"
#include "tests/unit/scratch_tree.hpp"
#include "tests/unit/texts.hpp"

namespace isoscale::preflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;
using testing_support::known;

class Settings : public testing::Test {
 protected:
  ScratchTree tree_;
};

TEST_F(Settings, CountCpusByContentOfAFile) {
  const char* const file = "cpufreq/scaling_governor";
  EXPECT_EQ(cpus_by(tree_.root(), file), std::nullopt);
  tree_.folder("sys/devices/system/cpu/cpu0");
  tree_.write("sys/devices/system/cpu/cpufreq/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(cpus_by(tree_.root(), file), std::nullopt);
  for (const std::string cpu : {"0", "1", "10"}) {
    const std::string folder = "sys/devices/system/cpu/cpu" + cpu + "/cpufreq/";
    tree_.write(folder + "scaling_governor", cpu == "10" ? "powersave\n" : "performance\n");
    tree_.write(folder + "scaling_driver", "intel_pstate\n");
    tree_.write(folder + "energy_performance_preference", "balance_power\n");
  }
  EXPECT_THAT(cpus_by(tree_.root(), file),
              Optional(ElementsAre(Pair("performance", 2), Pair("powersave", 1))));
  const CheckedNode node = collect_node({.root = tree_.root()}, {});
  EXPECT_THAT(node.governors, Optional(ElementsAre(Pair("performance", 2), Pair("powersave", 1))));
  EXPECT_EQ(node.frequency_driver, "intel_pstate");
  EXPECT_THAT(node.energy_preferences, Optional(ElementsAre(Pair("balance_power", 3))));
}

TEST_F(Settings, KnowWhetherAnIommuTranslates) {
  EXPECT_EQ(iommu_translates(tree_.root(), {}), std::nullopt);
  tree_.folder("sys/class/iommu");
  EXPECT_THAT(iommu_translates(tree_.root(), {}), Optional(false));
  tree_.folder("sys/class/iommu/dmar0");
  EXPECT_EQ(iommu_translates(tree_.root(), {}), std::nullopt);  // on, but how is not told
  tree_.write("proc/cmdline", "root=/dev/sda1 iommu=ptx iommu=p\n");
  EXPECT_EQ(iommu_translates(tree_.root(), {}), std::nullopt);
  tree_.write("proc/cmdline", "root=/dev/sda1 intel_iommu=on iommu=pt\n");
  EXPECT_THAT(iommu_translates(tree_.root(), {}), Optional(false));
  tree_.write("sys/kernel/iommu_groups/0/type", "identity\n");
  EXPECT_THAT(iommu_translates(tree_.root(), {}), Optional(false));
  tree_.write("sys/kernel/iommu_groups/1/type", "DMA-FQ\n");
  EXPECT_THAT(iommu_translates(tree_.root(), {}), Optional(true));
}

TEST_F(Settings, JudgeTheIommuByTheGroupsOfTheDevicesThatMatter) {
  tree_.write("sys/kernel/iommu_groups/0/type", "DMA\n");  // of an USB controller
  tree_.write("sys/kernel/iommu_groups/7/type", "identity\n");
  tree_.link("gpu/iommu_group", "sys/kernel/iommu_groups/7");
  EXPECT_THAT(iommu_translates(tree_.root(), {tree_.at("gpu")}), Optional(false));
  EXPECT_THAT(iommu_translates(tree_.root(), {tree_.at("none")}), Optional(true));
  tree_.write("sys/kernel/iommu_groups/7/type", "DMA\n");
  EXPECT_THAT(iommu_translates(tree_.root(), {tree_.at("gpu")}), Optional(true));
}

TEST_F(Settings, KnowLoadedModules) {
  EXPECT_EQ(has_module(tree_.root(), {"nvidia_peermem", "nv_peer_mem"}), std::nullopt);
  tree_.folder("sys/module/gdrdrv");
  EXPECT_THAT(has_module(tree_.root(), {"nvidia_peermem", "nv_peer_mem"}), Optional(false));
  EXPECT_THAT(has_module(tree_.root(), {"gdrdrv"}), Optional(true));
  tree_.folder("sys/module/nv_peer_mem");
  EXPECT_THAT(has_module(tree_.root(), {"nvidia_peermem", "nv_peer_mem"}), Optional(true));
}

TEST_F(Settings, KnowWhatExportsGpuMemoryAsDmabuf) {
  const char* const open =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n";
  const char* const closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Tue\n";
  EXPECT_EQ(has_dmabuf(tree_.root()), std::nullopt);
  tree_.write("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  EXPECT_EQ(has_dmabuf(tree_.root()), std::nullopt);
  for (const auto& [driver, kernel, expected] :
       {std::tuple{open, "6.8.0-45-generic\n", std::optional{true}},
        {open, "5.12.0\n", {true}},
        {open, "5.4.0\n", {false}},
        {closed, "6.8.0\n", {false}},
        {open, "six\n", {}}}) {
    tree_.write("proc/driver/nvidia/version", driver);
    tree_.write("proc/sys/kernel/osrelease", kernel);
    EXPECT_EQ(has_dmabuf(tree_.root()), expected) << kernel;
  }
}

TEST_F(Settings, ListPortsByAdapterAndNumber) {
  EXPECT_EQ(find_ports(tree_.root()), std::nullopt);
  tree_.folder("sys/class");
  EXPECT_THAT(find_ports(tree_.root()), Optional(IsEmpty()));
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
  const auto found = find_ports(tree_.root());
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].device, "bnxt_re0");
  EXPECT_EQ((*found)[1].port, 1);
  EXPECT_EQ(json_of((*found)[1]), nlohmann::json::parse(R"({
    "device": "mlx5_0", "state": "ACTIVE", "physical_state": "LinkUp", "link_layer": "InfiniBand",
    "rate": 400e9, "link_downed": 3, "symbol_errors": 17, "pcie_generation": 5,
    "pcie_generation_max": 5, "pcie_width": 8, "pcie_width_max": 16, "numa_node": 0,
    "pci_path": "pci0000:15/0000:15:01.0/0000:19:00.0"})"));
}

TEST_F(Settings, LeaveOutWhatAPortDoesNotTell) {
  tree_.folder("sys/class/infiniband/mlx5_0/ports/2");
  const auto found = find_ports(tree_.root());
  ASSERT_TRUE(found && found->size() == 1);
  EXPECT_EQ(json_of(found->front()), (nlohmann::json{{"device", "mlx5_0"}, {"port", 2}}));
}

TEST_F(Settings, FindPluginsAlongThePathAndInTheCache) {
  EXPECT_EQ(nccl_plugins(tree_.root(), known({})), std::nullopt);
  const auto variables = known({{"LD_LIBRARY_PATH", "/opt/a::/opt/none:/opt/b"}});
  EXPECT_EQ(nccl_plugins(tree_.root(), variables), std::nullopt);  // no such folders
  tree_.write("opt/a/libnccl-net.so", "");
  tree_.write("opt/a/libnccl.so.2", "");
  tree_.write("opt/b/libnccl-net-ofi.so", "");
  tree_.write("opt/b/libnccl-net.txt", "");
  EXPECT_THAT(nccl_plugins(tree_.root(), variables),
              Optional(ElementsAre("libnccl-net-ofi.so", "libnccl-net.so")));
  using namespace std::string_literals;
  tree_.write("etc/ld.so.cache", "glibc-ld.so.cache1.1\x03\0\0\0"s +
                                     "libnccl-net.so\0/opt/a/libnccl-net.so\0"s +
                                     "libsharp_coll.so.5\0/opt/sharp/lib/libsharp_coll.so.5\0"s +
                                     "libm.so.6\0/lib/libm.so.6\0/usr/lib/libnccl-tuner.so"s);
  EXPECT_THAT(nccl_plugins(tree_.root(), known({})),
              Optional(ElementsAre("libnccl-net.so", "libnccl-tuner.so", "libsharp_coll.so.5")));
  tree_.write("etc/ld.so.cache", "glibc-ld.so.cache1.1");
  EXPECT_THAT(nccl_plugins(tree_.root(), known({})), Optional(IsEmpty()));
}

TEST(Xids, AreSortedByGpuEachOnce) {
  const char* const log =
      "4,500,10,-;NVRM: loading NVIDIA UNIX Open Kernel Module\n"
      "4,501,11,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
      "[ 99.5] NVRM: Xid (PCI:0000:5D:00): 31, pid=2, name=x\n"
      "[ 99.6] NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action\n"
      "[ 99.7] NVRM: Xid (PCI:0000:1b:00): 79, again\n"
      "[ 99.8] NVRM: Xid (0000:07:00.0): 13\n"
      "NVRM: Xid (PCI:0000:1b:00): none\nNVRM: Xid (PCI:0000:1b:00\nNVRM: Xid (";
  EXPECT_THAT(xids_in(log), ElementsAre(Pair("0000:07:00.0", ElementsAre(13)),
                                        Pair("0000:1b:00.0", ElementsAre(79, 154)),
                                        Pair("0000:5d:00.0", ElementsAre(31))));
  EXPECT_THAT(xids_in(""), IsEmpty());
}

TEST_F(Settings, ReadTheKernelsMessagesWhereTheyMay) {
  EXPECT_EQ(kernel_log(tree_.root()), std::nullopt);
  tree_.write("dev/kmsg", "");
  EXPECT_EQ(kernel_log(tree_.root()), std::nullopt);
  const std::string message(10'000, 'm');
  tree_.write("dev/kmsg", message);
  EXPECT_EQ(kernel_log(tree_.root()), message);
}

TEST_F(Settings, TakeOfTheSystemsLogWhatIsOfThisBoot) {
  tree_.write("var/log/kern.log", "a: Linux version 6.1\na: old\nb: Linux version 6.1\nb: new\n");
  EXPECT_EQ(kernel_log(tree_.root()), std::nullopt);  // when this boot began is not known
  tree_.write("proc/stat", "cpu  1 2 3\nbtime 1000000000\nprocesses 7\n");
  EXPECT_EQ(kernel_log(tree_.root()), "Linux version 6.1\nb: new\n");
  tree_.write("var/log/kern.log", "b: rotated since\n");
  EXPECT_EQ(kernel_log(tree_.root()), "b: rotated since\n");
  tree_.write("proc/stat", "cpu  1 2 3\nbtime 99999999999\n");  // after the last line
  EXPECT_EQ(kernel_log(tree_.root()), std::nullopt);
}

}  // namespace
}  // namespace isoscale::preflight
