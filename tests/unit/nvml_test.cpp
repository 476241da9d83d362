// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/nvml.hpp"
#include "machine/device_sampler.hpp"
#include "machine/gpu_facts.hpp"
#include "nvml_standin.hpp"

namespace isoscale::machine {
namespace {

class Nvml : public testing::Test {
 protected:
  [[nodiscard]] static std::optional<GpuFacts> facts(std::string_view uuid = "GPU-12ab") {
    return gpu_facts(NvmlLibrary{find_fake}, uuid);
  }
  Installed state_;
  FakeGpu& gpu_ = state_.gpus.front();
};

TEST_F(Nvml, TellsWhatItKnowsUnderTheKeysOfTheRunFile) {
  gpu_.links = {{0, "00000000:09:00.0"}, {3, "00000000:07:00.0"}, {17, "00000000:09:00.0"}};
  gpu_.fabric = {.cluster = {0xab, 0x01}, .status = 0, .clique = 7, .state = 3};
  const auto known = facts();
  EXPECT_THAT(
      gpu_facts_text(known.value()),
      ElementsAre(Pair("gpu_compute_mode", "exclusive process"), Pair("gpu_driver", "580.65.06"),
                  Pair("gpu_ecc", "on"), Pair("gpu_fabric", "ab010000000000000000000000000000.7"),
                  Pair("gpu_mig", "off"), Pair("gpu_name", "NVIDIA H200"),
                  Pair("gpu_nvlink_peers", "00000000:07:00.0,00000000:09:00.0"),
                  Pair("gpu_pci", "00000000:1B:00.0"), Pair("gpu_persistence", "on"),
                  Pair("gpu_uuid", "GPU-12ab")));
  EXPECT_THAT(gpu_facts_number(*known),
              ElementsAre(Pair("gpu_memory_clock", 2619e6), Pair("gpu_memory_clock_max", 3201e6),
                          Pair("gpu_memory_total", 150e9), Pair("gpu_memory_used", 1e9),
                          Pair("gpu_nvlinks", 3), Pair("gpu_power_limit", 700.5),
                          Pair("gpu_sm_clock", 345e6), Pair("gpu_sm_clock_max", 1980e6)));
  EXPECT_THAT(gpu_facts_text({}), IsEmpty());
  EXPECT_THAT(gpu_facts_number({}), IsEmpty());
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
  for (const char* const needed : {"nvmlInit_v2", "nvmlDeviceGetHandleByUUID"}) {
    state_.missing = {needed};
    EXPECT_EQ(facts(), std::nullopt) << needed;
  }
  state_.missing = {"nvmlShutdown"};
  EXPECT_NE(facts(), std::nullopt);
}

TEST_F(Nvml, OfThisMachineAnswersOrIsAbsent) {
  const NvmlLibrary library = NvmlLibrary::open();
  EXPECT_EQ(gpu_facts(library, "GPU-00000000-0000-0000-0000-000000000000"), std::nullopt);
}

TEST_F(Nvml, KnowsAnInstanceByTheUuidThatCudaGivesIt) {
  EXPECT_EQ(facts("GPU-ffff"), std::nullopt);
  gpu_.uuid = "MIG-12ab";
  ASSERT_NE(facts("GPU-12ab"), std::nullopt);
  EXPECT_EQ(facts("GPU-12ab")->uuid, "MIG-12ab");
}

TEST_F(Nvml, CountsNoLinksWhereThereIsNoNvlinkAndThoseWhosePeersAreUnknown) {
  state_.nvlink_answer = nvml::not_supported;
  EXPECT_EQ(facts()->nvlinks_active, 0);
  EXPECT_THAT(facts()->nvlink_peers, Optional(IsEmpty()));
  state_.nvlink_answer = some_error;
  EXPECT_EQ(facts()->nvlinks_active, std::nullopt);
  state_.nvlink_answer = nvml::success;
  gpu_.links = {{0, "x"}, {1, "y"}};
  state_.missing = {"nvmlDeviceGetNvLinkRemotePciInfo_v2"};
  EXPECT_EQ(facts()->nvlinks_active, 2);
  EXPECT_EQ(facts()->nvlink_peers, std::nullopt);
}

class GpuSamples : public testing::Test {
 protected:
  [[nodiscard]] std::vector<Source> sources(const char* uuid = "GPU-12ab") const {
    return gpu_sources(library_, uuid);
  }
  /// By quantity.
  static std::map<std::string, double> read(const Source& source) {
    std::vector<double> values(source.channels.size());
    source.read(values);
    std::map<std::string, double> result;
    for (std::size_t i = 0; i < values.size(); ++i) result[source.channels[i].quantity] = values[i];
    return result;
  }

  Installed state_;
  FakeGpu& gpu_ = state_.gpus.front();
  NvmlLibrary library_{find_fake};
};

TEST_F(GpuSamples, AreInBaseUnits) {
  const auto all = sources();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].channels[0], (Channel{.device = "gpu 3", .quantity = "sm_clock", .unit = "Hz"}));
  EXPECT_THAT(read(all[0]),
              ElementsAre(Pair("ecc_corrected", 12), Pair("ecc_uncorrected", 1),
                          Pair("energy", DoubleEq(5000)), Pair("memory_clock", 2619e6),
                          Pair("nvlink_received_bytes", 20480), Pair("nvlink_sent_bytes", 10240),
                          Pair("power", DoubleEq(640.5)), Pair("sm_clock", 345e6),
                          Pair("temperature", DoubleEq(334.15)), Pair("throttle_reasons", 0x44),
                          Pair("utilisation", DoubleEq(0.75))));
}

TEST_F(GpuSamples, AreThoseThatAreWanted) {
  const std::array<std::string_view, 2> wanted{"throttle_reasons", "sm_clock"};
  const auto all = gpu_sources(library_, "GPU-12ab", wanted);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(read(all[0]), ElementsAre(Pair("sm_clock", 345e6), Pair("throttle_reasons", 0x44)));
}

TEST_F(GpuSamples, HaveNoChannelForWhatTheGpuDoesNotSupport) {
  state_.unsupported = {"errors",      "nvlink",      "energy", "power now",
                        "utilisation", "temperature", "index"};
  const auto all = sources();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].channels[0].device, "gpu");
  EXPECT_THAT(read(all[0]), ElementsAre(Pair("memory_clock", 2619e6), Pair("power", 650.25),
                                        Pair("sm_clock", 345e6), Pair("throttle_reasons", 0x44)));
}

TEST_F(GpuSamples, DoNotTakeANumberOfAnotherTypeForACounter) {
  state_.nvlink_type = 0;  // double
  EXPECT_FALSE(read(sources()[0]).contains("nvlink_sent_bytes"));
}

TEST_F(GpuSamples, FollowTheGpuAndAreNaNWhereTheyFailLater) {
  const auto all = sources();
  gpu_.energy += 1500;
  gpu_.reasons = 1;
  state_.unsupported = {"power", "power now"};
  const auto values = read(all[0]);
  EXPECT_THAT(values.at("energy"), DoubleEq(5001.5));
  EXPECT_EQ(values.at("throttle_reasons"), 1);
  EXPECT_THAT(values.at("power"),
              testing::NanSensitiveDoubleEq(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(values.at("sm_clock"), 345e6);
}

TEST_F(GpuSamples, NeedALibraryAndAGpuThatItKnows) {
  EXPECT_THAT(sources("GPU-ffff"), IsEmpty());
  const NvmlLibrary none{[](const char*) -> void* { return nullptr; }};
  EXPECT_THAT(gpu_sources(none, "GPU-12ab"), IsEmpty());
}

TEST_F(GpuSamples, UseFunctionsUnderTheirOlderNames) {
  state_.missing = {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetFieldValues",
                    "nvmlDeviceGetTotalEccErrors"};
  const NvmlLibrary older{find_fake};
  const auto values = read(gpu_sources(older, "GPU-12ab")[0]);
  EXPECT_EQ(values.at("throttle_reasons"), 0x44);
  EXPECT_FALSE(values.contains("nvlink_sent_bytes"));
  EXPECT_FALSE(values.contains("ecc_corrected"));
}

}  // namespace
}  // namespace isoscale::machine
