// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "machine/gpu_facts.hpp"
#include "tests/unit/nvml_standin.hpp"

namespace isoscale::machine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

class Nvml : public testing::Test {
 public:
  Nvml() { fake = &state_; }
  ~Nvml() override { fake = nullptr; }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

 protected:
  [[nodiscard]] static std::optional<GpuFacts> facts(std::string_view uuid = "GPU-12ab") {
    return gpu_facts(NvmlLibrary{find_fake}, uuid);
  }
  Fake state_;
};

TEST_F(Nvml, TellsWhatItKnows) {
  state_.links = {{0, "00000000:09:00.0"}, {3, "00000000:07:00.0"}, {17, "00000000:09:00.0"}};
  const auto known = facts();
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->name, "NVIDIA H200");
  EXPECT_EQ(known->uuid, "GPU-12ab");
  EXPECT_EQ(known->pci_bus_id, "00000000:1B:00.0");
  EXPECT_EQ(known->driver, "580.65.06");
  EXPECT_EQ(known->memory, 150e9);
  EXPECT_EQ(known->memory_used, 1e9);
  EXPECT_EQ(known->sm_clock, 345e6);
  EXPECT_EQ(known->sm_clock_max, 1980e6);
  EXPECT_EQ(known->memory_clock, 2619e6);
  EXPECT_EQ(known->memory_clock_max, 3201e6);
  EXPECT_EQ(known->power_limit, 700.5);
  EXPECT_EQ(known->ecc, true);
  EXPECT_EQ(known->mig, false);
  EXPECT_EQ(known->persistence, true);
  EXPECT_EQ(known->compute_mode, "exclusive process");
  EXPECT_EQ(known->nvlinks_active, 3);
  EXPECT_THAT(known->nvlink_peers, Optional(ElementsAre("00000000:07:00.0", "00000000:09:00.0")));
}

TEST_F(Nvml, IsShutDownWhereItWasInitialised) {
  {
    const NvmlLibrary library{find_fake};
    EXPECT_EQ(state_.initialised, 1);
  }
  EXPECT_EQ(state_.initialised, 0);
  state_.init_answer = some_error;
  EXPECT_EQ(facts(), std::nullopt);
  EXPECT_EQ(state_.initialised, 0);
}

TEST_F(Nvml, IsNoErrorWhereItIsMissing) {
  EXPECT_FALSE(gpu_facts(NvmlLibrary{[](const char*) -> void* { return nullptr; }}, "GPU-12ab"));
  state_.missing = {"nvmlInit_v2"};
  EXPECT_EQ(facts(), std::nullopt);
  state_.missing = {"nvmlDeviceGetHandleByUUID"};
  EXPECT_EQ(facts(), std::nullopt);
  state_.missing = {"nvmlShutdown"};
  EXPECT_NE(facts(), std::nullopt);
}

TEST_F(Nvml, OfThisMachineAnswersOrIsAbsent) {
  const NvmlLibrary library = NvmlLibrary::open();
  EXPECT_EQ(gpu_facts(library, "GPU-00000000-0000-0000-0000-000000000000"), std::nullopt);
}

TEST_F(Nvml, KnowsAnInstanceByTheUuidThatCudaGivesIt) {
  EXPECT_EQ(facts("GPU-ffff"), std::nullopt);
  state_.uuid = "MIG-12ab";
  ASSERT_NE(facts("GPU-12ab"), std::nullopt);
  EXPECT_EQ(facts("GPU-12ab")->uuid, "MIG-12ab");
}

TEST_F(Nvml, LeavesOutWhatIsMissingOrFails) {
  state_.missing = {"nvmlDeviceGetEccMode",         "nvmlDeviceGetClockInfo",
                    "nvmlDeviceGetMemoryInfo",      "nvmlDeviceGetMigMode",
                    "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetComputeMode",
                    "nvmlDeviceGetPciInfo_v3",      "nvmlDeviceGetPowerManagementLimit",
                    "nvmlDeviceGetNvLinkState"};
  state_.text_answer = some_error;
  const auto known = facts();
  ASSERT_TRUE(known.has_value());
  EXPECT_THAT(gpu_facts_text(*known), IsEmpty());
  EXPECT_THAT(gpu_facts_number(*known),
              ElementsAre(Pair("gpu_memory_clock_max", 3201e6), Pair("gpu_sm_clock_max", 1980e6)));
  EXPECT_EQ(known->nvlinks_active, std::nullopt);
  EXPECT_EQ(known->nvlink_peers, std::nullopt);
}

TEST_F(Nvml, CountsNoLinksWhereThereIsNoNvlink) {
  state_.nvlink_answer = nvml::not_supported;
  EXPECT_EQ(facts()->nvlinks_active, 0);
  EXPECT_THAT(facts()->nvlink_peers, Optional(IsEmpty()));
  state_.nvlink_answer = some_error;
  EXPECT_EQ(facts()->nvlinks_active, std::nullopt);
}

TEST_F(Nvml, CountsLinksWhosePeersAreUnknown) {
  state_.links = {{0, "x"}, {1, "y"}};
  state_.missing = {"nvmlDeviceGetNvLinkRemotePciInfo_v2"};
  EXPECT_EQ(facts()->nvlinks_active, 2);
  EXPECT_EQ(facts()->nvlink_peers, std::nullopt);
}

TEST_F(Nvml, KnowsAnNvlinkDomainOfSeveralNodes) {
  EXPECT_EQ(facts()->fabric, std::nullopt);
  state_.fabric = {.cluster = {0xab, 0x01}, .status = 0, .clique = 7, .state = 3};
  EXPECT_EQ(facts()->fabric, "ab010000000000000000000000000000.7");
  EXPECT_EQ(gpu_facts_text(*facts()).at("gpu_fabric"), *facts()->fabric);
  state_.fabric.state = 2;  // not yet
  EXPECT_EQ(facts()->fabric, std::nullopt);
  state_.fabric = {.cluster = {0xab}, .status = some_error, .clique = 7, .state = 3};
  EXPECT_EQ(facts()->fabric, std::nullopt);
  state_.fabric = {.cluster = {}, .status = 0, .clique = 7, .state = 3};  // within its node
  EXPECT_EQ(facts()->fabric, std::nullopt);
  state_.fabric = {.cluster = {0xab}, .status = 0, .clique = 7, .state = 3};
  state_.missing = {"nvmlDeviceGetGpuFabricInfo"};
  EXPECT_EQ(facts()->fabric, std::nullopt);
}

TEST_F(Nvml, GivesFactsTheKeysOfTheRunFile) {
  state_.links = {{0, "B"}, {1, "A"}};
  const auto known = facts();
  EXPECT_THAT(
      gpu_facts_text(*known),
      ElementsAre(Pair("gpu_compute_mode", "exclusive process"), Pair("gpu_driver", "580.65.06"),
                  Pair("gpu_ecc", "on"), Pair("gpu_mig", "off"), Pair("gpu_name", "NVIDIA H200"),
                  Pair("gpu_nvlink_peers", "A,B"), Pair("gpu_pci", "00000000:1B:00.0"),
                  Pair("gpu_persistence", "on"), Pair("gpu_uuid", "GPU-12ab")));
  EXPECT_THAT(gpu_facts_number(*known),
              ElementsAre(Pair("gpu_memory_clock", 2619e6), Pair("gpu_memory_clock_max", 3201e6),
                          Pair("gpu_memory_total", 150e9), Pair("gpu_memory_used", 1e9),
                          Pair("gpu_nvlinks", 2), Pair("gpu_power_limit", 700.5),
                          Pair("gpu_sm_clock", 345e6), Pair("gpu_sm_clock_max", 1980e6)));
}

}  // namespace
}  // namespace isoscale::machine
