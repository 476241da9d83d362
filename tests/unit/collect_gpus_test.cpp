// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/collect_facts.hpp"
#include "tests/unit/nvml_standin.hpp"
#include "tests/unit/scratch_tree.hpp"

namespace isoscale::preflight {
namespace {

using machine::FakeGpu;
using machine::find_fake;
using machine::NvmlLibrary;
using machine::some_error;

class Gpus : public testing::Test {
 protected:
  Gpus() {
    node_.gpus.assign(2, FakeGpu{.links_down = 0, .reasons = 0});
    node_.gpus[0].uuid = "GPU-a";
    node_.gpus[1].uuid = "GPU-b";
    node_.gpus[1].bus_id = "00000000:1C:00.0";
  }
  [[nodiscard]] FactSources sources() const { return {.root = tree_.root(), .nvml = &library_}; }
  /// With the functions that the library has by now.
  [[nodiscard]] CheckedNode find() const {
    const NvmlLibrary library{find_fake};
    return collect_node({.root = tree_.root(), .nvml = &library}, {});
  }
  [[nodiscard]] GpuFacts first() const { return find().gpus.value().at(0); }
  [[nodiscard]] CheckedPeers peers() const { return find().peers.at(0); }
  void put_on_bus() const {
    tree_.pci_function(first_path, "0x10de", "0x030200");
    tree_.pci_function(second_path, "0x10de", "0x030200");
  }

  machine::Installed node_;
  NvmlLibrary library_{find_fake};
  ScratchTree tree_;
};

TEST_F(Gpus, TellWhatTheLibraryKnows) {
  EXPECT_EQ(json_of(first()), nlohmann::json::parse(R"({
    "uuid": "GPU-a", "pci_bus_id": "0000:1b:00.0", "name": "NVIDIA H200", "driver": "580.65.06",
    "vbios": "96.00.A5.00.01", "compute_mode": "exclusive process", "memory": 150e9,
    "memory_used": 1e9, "sm_clock": 345e6, "sm_clock_max": 1980e6, "sm_clock_application": 1755e6,
    "memory_clock_max": 3201e6, "power_limit": 700.5, "power_limit_default": 700,
    "throttle_reasons": [], "ecc": true, "mig": false, "persistence": true, "ecc_uncorrected": 4,
    "remapped_rows": 2, "remap_pending": true, "remap_failed": false, "retired_pages": 0,
    "processes": [], "fabric_state": "not supported", "pcie_generation": 4,
    "pcie_generation_max": 5, "pcie_width": 8, "pcie_width_max": 16})"));
}

TEST_F(Gpus, LeaveOutWhatTheLibraryDoesNotHave) {
  for (const char* name :
       {"VbiosVersion", "ApplicationsClock", "PowerManagementDefaultLimit", "RemappedRows",
        "RetiredPages", "ComputeRunningProcesses_v2", "TotalEccErrors", "CurrentClocksEventReasons",
        "CurrentClocksThrottleReasons", "GpuFabricInfo", "NvLinkState", "MemoryInfo",
        "CurrPcieLinkGeneration", "MaxPcieLinkGeneration", "CurrPcieLinkWidth",
        "MaxPcieLinkWidth"}) {
    node_.missing.insert(std::string{"nvmlDeviceGet"} + name);
  }
  EXPECT_EQ(json_of(first()), nlohmann::json::parse(R"({
    "uuid": "GPU-a", "pci_bus_id": "0000:1b:00.0", "name": "NVIDIA H200", "driver": "580.65.06",
    "compute_mode": "exclusive process", "sm_clock": 345e6, "sm_clock_max": 1980e6,
    "memory_clock_max": 3201e6, "power_limit": 700.5, "ecc": true, "mig": false,
    "persistence": true})"));
  for (const char* name : {"EccMode", "ClockInfo", "MigMode", "PersistenceMode", "ComputeMode",
                           "PciInfo_v3", "PowerManagementLimit"}) {
    node_.missing.insert(std::string{"nvmlDeviceGet"} + name);
  }
  node_.text_answer = some_error;
  EXPECT_EQ(json_of(first()),
            nlohmann::json::parse(R"({"sm_clock_max": 1980e6, "memory_clock_max": 3201e6})"));
}

TEST_F(Gpus, HaveBusIdsAsSysfsWritesThem) {
  for (const auto& [nvml, sysfs] : {std::pair{"00000000:1B:00.0", "0000:1b:00.0"},
                                    {"0000:1b:00.0", "0000:1b:00.0"},
                                    {"00010000:01:00.0", "10000:01:00.0"},
                                    {"", ""}}) {
    node_.gpus[0].bus_id = nvml;
    EXPECT_EQ(first().pci_bus_id, sysfs);
  }
}

TEST_F(Gpus, CountLinksThatAreDownAndPagesRetiredForEitherCause) {
  node_.gpus[0].links = {{0, "00000000:07:00.0"}, {1, "00000000:08:00.0"}};
  node_.gpus[0].links_down = 3;
  node_.gpus[0].single_bit_pages = 3;
  node_.gpus[0].double_bit_pages = 70;  // more than there is room for
  const GpuFacts gpu = first();
  EXPECT_EQ(gpu.nvlinks_active, 2);
  EXPECT_EQ(gpu.nvlinks_inactive, 3);
  EXPECT_THAT(gpu.nvlink_peers, Optional(ElementsAre("0000:07:00.0", "0000:08:00.0")));
  EXPECT_EQ(gpu.retired_pages, 73);
}

TEST_F(Gpus, ListHoweverManyProcesses) {
  node_.gpus[0].pids = {17, 4};
  EXPECT_THAT(first().processes, Optional(ElementsAre(17, 4)));
  node_.gpus[0].pids.resize(300);
  std::iota(node_.gpus[0].pids.begin(), node_.gpus[0].pids.end(), 1);
  EXPECT_THAT(first().processes, Optional(ElementsAreArray(node_.gpus[0].pids)));
}

TEST_F(Gpus, NameWhatHoldsTheirClocksBack) {
  node_.gpus[0].reasons = 0x45;
  EXPECT_THAT(first().throttle_reasons,
              Optional(ElementsAre("software power cap", "hardware thermal slowdown")));
  node_.gpus[0].reasons = 0x1BA;
  EXPECT_THAT(first().throttle_reasons,
              Optional(ElementsAre("application clock settings", "hardware slowdown", "sync boost",
                                   "software thermal slowdown", "hardware power brake",
                                   "display clock settings")));
}

TEST_F(Gpus, SayHowFarTheyAreInJoiningTheirFabric) {
  const nvml::FabricInfo joined{.cluster = {0xab}, .status = 0, .clique = 7, .state = 3};
  const std::string domain = "ab000000000000000000000000000000.7";
  using Text = std::optional<std::string>;
  for (const auto& [status, state, told, fabric] : {std::tuple{0, 0, Text{"not supported"}, Text{}},
                                                    {0, 1, Text{"not started"}, {}},
                                                    {0, 2, Text{"in progress"}, {}},
                                                    {0, 3, Text{"completed"}, Text{domain}},
                                                    {some_error, 3, Text{"failed: 999"}, {}},
                                                    {0, 9, {}, {}}}) {
    node_.gpus[0].fabric = joined;
    node_.gpus[0].fabric.status = status;
    node_.gpus[0].fabric.state = static_cast<unsigned char>(state);
    EXPECT_EQ(first().fabric_state, told) << state;
    EXPECT_EQ(first().fabric, fabric) << state;
  }
  node_.gpus[0].fabric = joined;
  node_.gpus[0].fabric.cluster = {};  // within its node
  EXPECT_EQ(first().fabric, std::nullopt);
}

TEST_F(Gpus, AreThoseOfTheLibraryAndThenOthersOnTheBus) {
  put_on_bus();
  tree_.pci_function("pci0000:80/0000:80:01.0/0000:81:00.0", "0x10de", "0x030200");
  tree_.write("sys/devices/" + second_path + "/numa_node", "1\n");
  tree_.write("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/max_link_width", "16\n");
  const CheckedNode found = find();
  ASSERT_THAT(found.gpus, Optional(SizeIs(3)));
  EXPECT_EQ(found.gpus_lost, 0);
  EXPECT_EQ((*found.gpus)[1].uuid, "GPU-b");
  EXPECT_EQ((*found.gpus)[1].pci_path, second_path);
  EXPECT_EQ((*found.gpus)[1].numa_node, 1);
  const GpuFacts& other = (*found.gpus)[2];
  EXPECT_EQ(other.uuid, "");
  EXPECT_EQ(other.pci_bus_id, "0000:81:00.0");
  EXPECT_EQ(other.pcie_width_max, 16);
  EXPECT_EQ(other.name, std::nullopt);
}

TEST_F(Gpus, ComeFromTheBusAloneWithoutTheLibrary) {
  const FactSources bus{.root = tree_.root()};
  EXPECT_EQ(collect_node(bus, {}).gpus, std::nullopt);
  put_on_bus();
  const CheckedNode found = collect_node(bus, {});
  ASSERT_THAT(found.gpus, Optional(SizeIs(2)));
  EXPECT_EQ(found.gpus_lost, std::nullopt);
  EXPECT_THAT(found.peers, ElementsAre(FieldsAre(0, 1, std::nullopt, "one switch")));
}

TEST_F(Gpus, AreNotAskedOfALibraryThatDoesNotCountThem) {
  node_.missing = {"nvmlDeviceGetCount_v2"};
  EXPECT_EQ(find().gpus, std::nullopt);
  EXPECT_EQ(find().gpus_lost, std::nullopt);
  node_.missing = {"nvmlDeviceGetHandleByIndex_v2"};
  EXPECT_EQ(find().gpus, std::nullopt);
  node_.missing = {};
  node_.gpus.clear();
  EXPECT_THAT(find().gpus, Optional(IsEmpty()));
}

TEST_F(Gpus, AreFoundByTheirUuid) {
  put_on_bus();
  const auto gpu = collect_gpu(sources(), "GPU-b");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->uuid, "GPU-b");
  EXPECT_EQ(gpu->pci_path, second_path);
  EXPECT_EQ(gpu->vbios, "96.00.A5.00.01");
  EXPECT_FALSE(collect_gpu(sources(), "GPU-c"));
  EXPECT_FALSE(collect_gpu({.root = tree_.root()}, "GPU-b"));
}

TEST_F(Gpus, AreVisibleWhereTheProcessMayUseThem) {
  EXPECT_THAT(collect_visible_gpus(sources()), Optional(ElementsAre("GPU-a", "GPU-b")));
  node_.gpus[0].handle_answer = nvml::no_permission;
  EXPECT_THAT(collect_visible_gpus(sources()), Optional(ElementsAre("GPU-b")));
  EXPECT_EQ(collect_visible_gpus({.root = tree_.root()}), std::nullopt);
}

TEST_F(Gpus, AreLostWhereTheLibraryCannotReachThem) {
  put_on_bus();
  constexpr int lost = 15;
  node_.gpus[0].handle_answer = lost;
  const CheckedNode found = find();
  EXPECT_EQ(found.gpus_lost, 1);
  ASSERT_THAT(found.gpus, Optional(SizeIs(2)));
  EXPECT_EQ((*found.gpus)[0].uuid, "GPU-b");
  EXPECT_EQ((*found.gpus)[1].pci_bus_id, "0000:1b:00.0");
  node_.gpus[0].handle_answer = nvml::no_permission;
  EXPECT_EQ(find().gpus_lost, 0);
  node_.gpus[0].handle_answer = nvml::operating_system;
  EXPECT_EQ(find().gpus_lost, 0);
}

TEST_F(Gpus, HaveNoErrorReportsWhereTheirPlaceIsNotKnown) {
  tree_.write("dev/kmsg", "NVRM: Xid (PCI:0000:1c:00): 94, contained\n");
  const auto gpus = find().gpus;
  ASSERT_THAT(gpus, Optional(SizeIs(2)));
  EXPECT_THAT((*gpus)[0].xids, Optional(IsEmpty()));
  EXPECT_THAT((*gpus)[1].xids, Optional(ElementsAre(94)));
  node_.missing = {"nvmlDeviceGetPciInfo_v3"};
  EXPECT_EQ(first().xids, std::nullopt);
}

TEST_F(Gpus, ReachEachOtherWhereBothReadingAndWritingMay) {
  for (const auto& [status, may] :
       {std::pair{nvml::p2p_ok, std::optional{true}}, {1, {false}}, {nvml::p2p_unknown, {}}}) {
    node_.peer_status = status;
    EXPECT_EQ(peers().peer_access, may) << status;
  }
  EXPECT_EQ(peers().link, "one switch");
  node_.missing = {"nvmlDeviceGetP2PStatus"};
  EXPECT_EQ(peers().peer_access, std::nullopt);
}

TEST_F(Gpus, AreJoinedByTheClosestThingBetweenThem) {
  const std::map<int, std::string> names{{0, "one board"},         {10, "one switch"},
                                         {20, "several switches"}, {30, "host bridge"},
                                         {40, "NUMA node"},        {50, "system"}};
  for (const auto& [level, name] : names) {
    node_.ancestor = level;
    EXPECT_EQ(peers().link, name);
  }
  node_.ancestor = 77;
  EXPECT_EQ(peers().link, std::nullopt);
  put_on_bus();
  EXPECT_EQ(peers().link, "one switch");
}

TEST_F(Gpus, AreJoinedByNvlinkDirectlyOrThroughASwitch) {
  node_.nvlink_status = nvml::p2p_ok;
  EXPECT_EQ(peers().link, "NVLink");
  node_.nvlink_status = 5;
  node_.gpus[0].links = {{0, "00000000:1C:00.0"}};
  node_.gpus[1].links = {{0, "00000000:1B:00.0"}};
  EXPECT_EQ(peers().link, "NVLink");
  node_.gpus[0].links = {{0, "00000000:05:00.0"}};
  EXPECT_EQ(peers().link, "one switch");
  node_.gpus[1].links = {{0, "00000000:05:00.0"}};
  EXPECT_EQ(peers().link, "NVLink");
}

}  // namespace
}  // namespace isoscale::preflight
