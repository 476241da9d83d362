// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Damaged series of devices, and that none of them reaches a report.
#include "analysis/devices/device_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace isoscale::analysis {
namespace {

using results::DeviceSeries;
using results::PointData;
using results::RunData;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A second apart, from 0.
DeviceSeries series(std::string device, std::string quantity, std::string unit,
                    std::vector<double> values) {
  DeviceSeries result{
      .device = std::move(device), .quantity = std::move(quantity), .unit = std::move(unit)};
  for (std::size_t i = 0; i < values.size(); ++i) result.time.push_back(static_cast<double>(i));
  result.value = std::move(values);
  return result;
}

DeviceSeries energy(std::vector<double> values) {
  return series("gpu 0", "energy", "J", std::move(values));
}

PointData point_with(std::vector<DeviceSeries> all) {
  PointData point;
  point.ranks = point.nodes = 1;
  point.measured_seconds = 10;
  point.step_times.assign(10, {1});
  point.work_per_step = 100;
  point.device_series = std::move(all);
  return point;
}

RunData run_on(const char* device) {
  RunData run;
  run.device = device;
  return run;
}

TEST(Quantity, HasItsUnitAndKind) {
  using enum QuantityKind;
  const auto expect = [](const char* name, std::string_view unit, QuantityKind kind) {
    EXPECT_EQ(quantity_of(name).unit, unit) << name;
    EXPECT_EQ(quantity_of(name).kind, kind) << name;
  };
  expect("sm_clock", "Hz", level);
  expect("power", "W", level);
  expect("energy", "J", counter);
  expect("busy_time", "s", counter);
  expect("link_downed", "1", counter);
  expect("throttle_reasons", "1", bits);
  expect("fan_speed", "", level);
  expect("pcie_errors", "", counter);
  expect("pcie_bytes", "", counter);
}

TEST(Flaw, HasNoSeriesAsSampled) {
  EXPECT_EQ(flaw_of(energy({0, 0, 5})), "");
  EXPECT_EQ(flaw_of(energy({7})), "");
  EXPECT_EQ(flaw_of(series("cpu", "clock", "Hz", {3e9, 2e9, 3e9})), "");
  EXPECT_EQ(flaw_of(series("cpu", "busy_time", "s", {100, 101, 102})), "");
  EXPECT_EQ(flaw_of(series("gpu 0", "throttle_reasons", "1", {4, 0, 64})), "");
  EXPECT_EQ(flaw_of(series("gpu 0", "fan_speed", "furlong", {-4, 0})), "");
}

TEST(Flaw, OfValues) {
  EXPECT_EQ(flaw_of(energy({})), "it has no samples");
  for (const double value : {nan, infinite, -infinite, 1e300}) {
    EXPECT_EQ(flaw_of(energy({0, value})), "its values are not plausible");
  }
  EXPECT_EQ(flaw_of(series("gpu 0", "throttle_reasons", "1", {nan})),
            "its values are not plausible");
  EXPECT_EQ(flaw_of(energy({0, 5, 4})), "it counts and falls");
  EXPECT_EQ(flaw_of(series("eth0", "some_errors", "?", {5, 4})), "it counts and falls");
  EXPECT_EQ(flaw_of(series("cpu", "clock", "Hz", {-5})), "it is below 0");
  EXPECT_EQ(flaw_of(series("cpu", "busy_time", "s", {-5, -4})), "it is below 0");
  EXPECT_EQ(flaw_of(series("gpu 0", "utilisation", "1", {0.5, 1.5})), "it is a share above 1");
  EXPECT_EQ(flaw_of(series("cpu", "busy_time", "s", {0, 50})), "it grows faster than time");
}

TEST(Flaw, OfTimes) {
  DeviceSeries damaged = energy({0, 1, 2});
  for (const std::vector<double>& time :
       {std::vector<double>{0, 1, 1}, {0, 2, 1}, {0, 1e-300, 1}}) {
    damaged.time = time;
    EXPECT_EQ(flaw_of(damaged), "its times do not rise");
  }
  for (const std::vector<double>& time :
       {std::vector<double>{0, 1, nan}, {0, 1, infinite}, {-1e300, 0, 1}}) {
    damaged.time = time;
    EXPECT_EQ(flaw_of(damaged), "its times are not plausible");
  }
  damaged.time = {0, 1};
  EXPECT_EQ(flaw_of(damaged), "it has not one time for each value");
}

TEST(Flaw, OfUnits) {
  EXPECT_EQ(flaw_of(series("cpu", "clock", "GHz", {3})), "its unit is another one");
  EXPECT_EQ(flaw_of(series("gpu 0", "energy", "", {0, 1})), "its unit is another one");
}

TEST(UsableSeries, AreSaidToBeLeftOutOnceForEachReason) {
  const PointData point =
      point_with({energy({5, 4}), series("cpu", "clock", "GHz", {3}), energy({7, 6}),
                  series("eth0", "sent_bytes", "B", {2, 1}), energy({1, 2})});
  const UsableSeries usable = usable_series(point);
  EXPECT_THAT(usable.series, ElementsAre(&point.device_series[4]));
  EXPECT_THAT(usable.left_out,
              ElementsAre("rank 0, gpu 0: energy is left out, since it counts and falls (and so "
                          "are 2 more series)",
                          "rank 0, cpu: clock is left out, since its unit is another one"));
}

TEST(UsableSeries, OfOneNameTheFirstThatIsUsableCounts) {
  const PointData point = point_with({energy({}), energy({1, 2}), energy({1, 9})});
  const UsableSeries usable = usable_series(point);
  EXPECT_THAT(usable.series, ElementsAre(&point.device_series[1]));
  EXPECT_THAT(usable.left_out,
              ElementsAre(HasSubstr("it has no samples"), HasSubstr("it is there twice")));
  EXPECT_EQ(usable_series(point).find(0, "gpu 0", "energy"), &point.device_series[1]);
  EXPECT_EQ(usable_series(point).find(1, "gpu 0", "energy"), nullptr);
}

TEST(DamagedDevices, ACounterWhoseFirstSeriesIsEmptyTellsItsOwnBusyShare) {
  const PointData point = point_with(
      {series("cpu", "busy_time", "s", {}), series("cpu", "busy_time", "s", {0, 0.5, 1})});
  EXPECT_THAT(device_state(run_on("host"), point).utilisation, Optional(0.5));
}

TEST(DamagedDevices, GiveNoNumbersButWarnings) {
  for (const double bad : {nan, infinite, -5.0}) {
    const PointData point =
        point_with({series("gpu 0", "sm_clock", "Hz", {bad, bad}),
                    series("gpu 0", "temperature", "K", {bad, bad}),
                    series("gpu 0", "utilisation", "1", {bad, bad}),
                    series("gpu 0", "power", "W", {bad, bad}), energy({0, bad})});
    const DeviceState state = device_state(run_on("cuda"), point);
    EXPECT_THAT(state.series, IsEmpty());
    EXPECT_EQ(state.clock, std::nullopt);
    EXPECT_EQ(state.clock_min, std::nullopt);
    EXPECT_EQ(state.temperature, std::nullopt);
    EXPECT_EQ(state.utilisation, std::nullopt);
    EXPECT_EQ(state.energy.power, std::nullopt);
    EXPECT_EQ(state.energy.missing, "1 of 1 GPUs reported neither energy nor power");
    EXPECT_THAT(state.warnings, Not(IsEmpty()));
    EXPECT_THAT(state.warnings, Each(HasSubstr("is left out, since")));
    EXPECT_THAT(state.warnings, Each(Not(AnyOf(HasSubstr("nan"), HasSubstr("inf")))));
  }
}

TEST(DamagedDevices, ALoopOfNoLengthIsAsLongAsItsSamples) {
  PointData point = point_with({energy({0, 100, 200})});
  for (const double seconds : {nan, infinite, -3.0}) {
    point.measured_seconds = seconds;
    EXPECT_THAT(energy_of(run_on("cuda"), point).joules, Optional(200));
  }
}

TEST(DamagedDevices, ReasonsThatAreNoSetOfBitsAreSkipped) {
  const PointData point =
      point_with({series("gpu 0", "throttle_reasons", "1", {0x08, -1, 1e300, 0x1p60, 0})});
  EXPECT_THAT(device_warnings(point),
              ElementsAre("rank 0, gpu 0: clocks were held down by hardware slowdown (50% of the "
                          "samples)"));
}

}  // namespace
}  // namespace isoscale::analysis
