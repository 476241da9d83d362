// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/collect_facts.hpp"
#include "tests/unit/scratch_tree.hpp"

namespace isoscale::preflight {
namespace {

/// Two GPUs below one switch, one below the next switch of the same port, one beside it.
const std::string first = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0";
const std::string second = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:1c:00.0";
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
  EXPECT_EQ(distance(first, 0, second, 0), "one switch");
  EXPECT_EQ(distance(first, 0, further, 0), "several switches");
  EXPECT_EQ(distance(first, std::nullopt, second, std::nullopt), "one switch");
  // Without one it is the root complex or the NUMA node.
  EXPECT_EQ(distance(first, 0, beside, 0), "host bridge");
  EXPECT_EQ(distance(first, 0, elsewhere, 0), "NUMA node");
  EXPECT_EQ(distance(first, 0, elsewhere, 1), "system");
  EXPECT_EQ(distance(first, 0, elsewhere, std::nullopt), std::nullopt);
  EXPECT_EQ(distance(first, std::nullopt, elsewhere, 0), std::nullopt);
  EXPECT_EQ(distance(std::nullopt, 0, second, 0), std::nullopt);
  EXPECT_EQ(distance(first, 0, std::nullopt, 0), std::nullopt);
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
  tree_.pci_function(first, "0x10de", "0x030200");
  const auto function = tree_.at("sys/bus/pci/devices/0000:1b:00.0");
  EXPECT_EQ(pci_facts(function).pci_path, first);
  EXPECT_EQ(numbers_of(pci_facts(function)), Numbers{});
  const std::string folder = "sys/devices/" + first;
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
  tree_.pci_function(first, "0x10de", "0x030200");
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
