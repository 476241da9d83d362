// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/device_sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/nvml_standin.hpp"

namespace isoscale::machine {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::NanSensitiveDoubleEq;
using testing::Pair;
using testing::SizeIs;

/// Puts the stand-in in place, for as long as libraries may call it.
struct Installed : Fake {
  Installed() { fake = this; }
  ~Installed() { fake = nullptr; }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;
};

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
                          Pair("power", DoubleEq(650.25)), Pair("sm_clock", 345e6),
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
  state_.unsupported = {"errors", "nvlink", "energy", "utilisation", "temperature", "index"};
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

TEST_F(GpuSamples, AreNaNWhereTheyFailLater) {
  const auto all = sources();
  state_.unsupported = {"power"};
  const auto values = read(all[0]);
  EXPECT_THAT(values.at("power"), NanSensitiveDoubleEq(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(values.at("sm_clock"), 345e6);
}

TEST_F(GpuSamples, FollowTheGpu) {
  const auto all = sources();
  state_.energy += 1500;
  state_.reasons = 1;
  EXPECT_THAT(read(all[0]).at("energy"), DoubleEq(5001.5));
  EXPECT_EQ(read(all[0]).at("throttle_reasons"), 1);
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
