// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/device_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/render/machine.hpp"
#include "analysis/render/render.hpp"
#include "tests/unit/report_samples.hpp"

namespace isoscale::analysis {
namespace {

using results::DeviceSeries;
using results::PointData;
using results::RunData;
using testing::AnyOf;
using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::SizeIs;

constexpr double step = 0.5;  // s
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Samples a second apart, from 0, with their unit if it is not the quantity's; the point's loop of
/// 20 steps takes ten, the first two warm up.
DeviceSeries series(int rank, std::string device, std::string quantity, std::vector<double> values,
                    std::optional<std::string> unit = std::nullopt) {
  DeviceSeries result{.rank = rank,
                      .device = std::move(device),
                      .quantity = quantity,
                      .unit = unit.value_or(std::string{devices::quantity_of(quantity).unit})};
  for (std::size_t i = 0; i < values.size(); ++i) result.time.push_back(static_cast<double>(i));
  result.value = std::move(values);
  return result;
}

/// A counter of joules of the first GPU.
DeviceSeries energy(std::vector<double> values) {
  return series(0, "gpu 0", "energy", std::move(values));
}

PointData point(int ranks, int nodes) {
  PointData data = samples::measured(0, {.dp = ranks}, step);
  data.nodes = nodes;
  data.step_times.assign(20, std::vector<double>(static_cast<std::size_t>(ranks), step));
  data.traced.assign(20, 0);
  data.dropped.assign(20, 0);
  data.warm_up_steps = 2;
  data.measured_seconds = 10;
  data.work_per_step = 100;
  return data;
}

/// A point of one rank with these series.
PointData point_with(std::vector<DeviceSeries> all) {
  PointData data = point(1, 1);
  data.device_series = std::move(all);
  return data;
}

RunData run_on(const std::string& device) {
  RunData run = samples::run();
  run.device = device;
  run.rank_facts.clear();
  return run;
}

std::vector<double> steady(double value) { return std::vector<double>(11, value); }

TEST(DeviceState, IsEmptyWithoutSamplesAndForPointsThatAreNotOk) {
  EXPECT_THAT(devices::device_state(run_on("host"), point(2, 1)).series, IsEmpty());
  PointData failed = point(2, 1);
  failed.device_series = {series(0, "cpu", "clock", steady(2e9))};
  failed.status = results::PointStatus::failed;
  EXPECT_THAT(devices::device_state(run_on("host"), failed).series, IsEmpty());
}

TEST(DeviceState, SummarisesWhatFollowsWarmUp) {
  PointData data = point_with({series(0, "cpu", "clock", {1e9, 3e9, 2e9, 4e9}),
                               series(0, "package 0", "energy", {0, 1, 2, 5})});
  const devices::DeviceState state = devices::device_state(run_on("host"), data);
  ASSERT_THAT(state.series, SizeIs(2));
  EXPECT_THAT(state.series[0].minimum, Optional(2e9));  // the first is of warm-up
  EXPECT_THAT(state.series[0].median, Optional(3e9));
  EXPECT_THAT(state.series[0].maximum, Optional(4e9));
  EXPECT_EQ(state.series[0].first, 1e9);
  EXPECT_EQ(state.series[0].last, 4e9);
  EXPECT_EQ(state.series[0].samples, 4U);
  EXPECT_EQ(state.series[1].median, std::nullopt);
  EXPECT_EQ(state.series[1].last, 5);
}

TEST(DeviceState, TellsWhatTheComputingDevicesAreLike) {
  PointData data = point(2, 1);
  data.device_series = {series(0, "gpu 0", "sm_clock", steady(1.9e9)),
                        series(1, "gpu 1", "sm_clock", steady(1.7e9)),
                        series(0, "gpu 0", "temperature", steady(330)),
                        series(1, "gpu 1", "utilisation", steady(0.5)),
                        series(0, "cpu", "clock", steady(3e9)),
                        series(0, "package 0", "temperature", steady(350))};
  const devices::DeviceState gpus = devices::device_state(run_on("cuda"), data);
  EXPECT_THAT(gpus.clock, Optional(DoubleEq(1.8e9)));
  EXPECT_THAT(gpus.clock_min, Optional(1.7e9));
  EXPECT_THAT(gpus.temperature, Optional(330));
  EXPECT_THAT(gpus.utilisation, Optional(0.5));
  const devices::DeviceState cpus = devices::device_state(run_on("host"), data);
  EXPECT_THAT(cpus.clock, Optional(3e9));
  EXPECT_EQ(cpus.clock_min, std::nullopt);
  EXPECT_THAT(cpus.temperature, Optional(350));
  EXPECT_EQ(cpus.utilisation, std::nullopt);
}

TEST(DeviceEnergy, ComesFromCountersOfAllGpus) {
  PointData data = point(2, 1);
  data.device_series = {energy({1000, 1700}), series(1, "gpu 1", "energy", {50, 350}),
                        series(1, "gpu 1", "power", {9, 9})};  // not where there is a counter
  const devices::Energy energy = devices::energy_of(run_on("cuda"), data);
  EXPECT_EQ(energy.of, "GPUs");
  EXPECT_THAT(energy.power, Optional(DoubleEq(1000)));
  EXPECT_THAT(energy.joules, Optional(DoubleEq(10'000)));
  EXPECT_THAT(energy.joules_per_step, Optional(DoubleEq(500)));
  EXPECT_THAT(energy.joules_per_token, Optional(DoubleEq(5)));
  EXPECT_EQ(energy.missing, "");
}

TEST(DeviceEnergy, ElseIsTheIntegralOfPower) {
  PointData data = point_with({series(0, "gpu 0", "power", {100, 300, 300})});
  data.device_series[0].time = {0, 1, 5};  // 200 W for a second, 300 W for four
  EXPECT_THAT(devices::energy_of(run_on("cuda"), data).power, Optional(DoubleEq(280)));
  // A loop without a length is as long as its samples.
  data = point_with({energy({0, 100, 200})});
  for (const double seconds : {nan, infinite, -3.0}) {
    data.measured_seconds = seconds;
    EXPECT_THAT(devices::energy_of(run_on("cuda"), data).joules, Optional(200));
  }
}

TEST(DeviceEnergy, IsAbsentWhereAGpuIsMissing) {
  PointData data = point(3, 1);
  data.device_series = {energy({0, 1}), series(1, "gpu 1", "energy", {7}),
                        series(2, "gpu 2", "power", {100, 100})};
  const devices::Energy energy = devices::energy_of(run_on("cuda"), data);
  EXPECT_EQ(energy.power, std::nullopt);
  EXPECT_EQ(energy.joules_per_step, std::nullopt);
  EXPECT_THAT(energy.missing, HasSubstr("1 of 3 GPUs"));
}

TEST(DeviceEnergy, OfAHostRunIsThatOfAllPackagesAndTheirMemory) {
  PointData data = point(4, 2);
  data.device_series = {
      series(0, "package 0", "energy", {0, 100}), series(0, "package 1", "energy", {0, 80}),
      series(0, "dram 0", "energy", {0, 20}), series(2, "package 0", "energy", {0, 50})};
  EXPECT_THAT(devices::energy_of(run_on("host"), data).power, Optional(DoubleEq(250)));
  EXPECT_EQ(devices::energy_of(run_on("host"), data).of, "CPU packages");
}

TEST(DeviceEnergy, IsAbsentWhereANodeOrOneOfItsPackagesIsMissing) {
  PointData data = point(4, 2);
  data.device_series = {series(0, "package 0", "energy", {0, 100}),
                        series(2, "dram 0", "energy", {0, 50})};
  EXPECT_THAT(devices::energy_of(run_on("host"), data).missing, HasSubstr("1 of 2 nodes"));
  data.device_series[1].device = "package 0";
  EXPECT_TRUE(devices::energy_of(run_on("host"), data).power.has_value());
  RunData run = run_on("host");
  run.rank_facts = {{.rank = 0, .number = {{"sockets", 2}}}};
  EXPECT_EQ(devices::energy_of(run, data).power, std::nullopt);
}

TEST(DeviceEnergy, OfAShortLoopIsNoneAtAll) {
  PointData data = point(1, 1);
  data.measured_seconds = 0.4;
  data.device_series = {energy({0, 100})};
  const devices::Energy energy = devices::energy_of(run_on("cuda"), data);
  EXPECT_EQ(energy.power, std::nullopt);
  EXPECT_THAT(energy.missing, HasSubstr("0.4 s, too short"));
}

TEST(DeviceWarnings, NameAClockThatFell) {
  PointData data = point_with(
      {series(0, "gpu 0", "sm_clock", {0, 2e9, 2e9, 2e9, 2e9, 1.9e9, 1.9e9, 1.9e9, 1.9e9, 1.9e9})});
  EXPECT_THAT(devices::device_warnings(data),
              ElementsAre(HasSubstr("rank 0, gpu 0: the SM clock went from "
                                    "2 GHz to 1.9 GHz")));
  // 2%
  for (double& clock : data.device_series[0].value) clock = std::max(clock, 1.96e9);
  EXPECT_THAT(devices::device_warnings(data), IsEmpty());
}

TEST(DeviceWarnings, NameAClockThatDipsAgainAndAgain) {
  PointData data = point(1, 1);
  std::vector<double> clocks(21, 2e9);
  clocks[6] = clocks[11] = 1.7e9;
  data.device_series = {series(0, "gpu 0", "sm_clock", clocks)};
  EXPECT_THAT(devices::device_warnings(data), IsEmpty());  // 2 of 20
  data.device_series[0].value[16] = 1.7e9;
  EXPECT_THAT(devices::device_warnings(data), ElementsAre(HasSubstr("below 90% of its median")));
}

TEST(DeviceWarnings, DoNotCountAGpuThatIdles) {
  PointData data = point(1, 1);
  const std::vector<double> clocks{0, 2e9, 2e9, 2e9, 2e9, 2e9, 2e9, 1e9, 1e9, 1e9};
  const std::vector<double> reasons{1, 0, 0, 0, 0, 0, 0, 1, 1, 1};
  data.device_series = {series(0, "gpu 0", "sm_clock", clocks)};
  EXPECT_THAT(devices::device_warnings(data), SizeIs(1));
  data.device_series.push_back(series(0, "gpu 0", "throttle_reasons", reasons));
  EXPECT_THAT(devices::device_warnings(data), IsEmpty());
}

TEST(DeviceWarnings, BelieveClocksOfCpusThatWereBusyOnly) {
  PointData data =
      point_with({series(0, "cpu", "clock", {3e9, 3e9, 3e9, 3e9, 3e9, 2e9, 2e9, 2e9, 2e9})});
  EXPECT_THAT(devices::device_warnings(data), IsEmpty());  // nothing says that they were
  data.device_series.push_back(series(0, "cpu", "busy_time", {0, 1, 2, 3, 4, 4.9, 5.8, 6.7, 7.6}));
  EXPECT_THAT(devices::device_warnings(data),
              ElementsAre(HasSubstr("rank 0, cpu: the clock went from 3 GHz "
                                    "to 2 GHz")));
  data.device_series.back().value = {0, 1, 2, 3, 4, 4.1, 4.2, 4.3, 4.4};
  EXPECT_THAT(devices::device_warnings(data), IsEmpty());
}

TEST(DeviceWarnings, NameReasonsThatHeldClocksDown) {
  PointData data = point(1, 1);
  std::vector<double> reasons(21, 0);
  reasons[0] = 0x80;  // in warm-up
  reasons[5] = 0x44;
  reasons[6] = 0x03;  // idle, and a setting
  data.device_series = {series(0, "gpu 0", "throttle_reasons", reasons)};
  EXPECT_THAT(devices::device_warnings(data),
              ElementsAre("rank 0, gpu 0: clocks were held down by hardware thermal slowdown (5% "
                          "of the samples)"));
  for (std::size_t i = 10; i < 20; ++i) data.device_series[0].value[i] = 0x04;
  EXPECT_THAT(devices::device_warnings(data), ElementsAre(HasSubstr("software power cap (55%")));
  // Reasons that are no set of bits are skipped.
  data.device_series = {series(0, "gpu 0", "throttle_reasons", {0x08, -1, 1e300, 0x1p60, 0})};
  data.warm_up_steps = 0;
  EXPECT_THAT(devices::device_warnings(data),
              ElementsAre("rank 0, gpu 0: clocks were held down by hardware slowdown (50% of the "
                          "samples)"));
}

TEST(DeviceWarnings, NameErrorsThatWereCounted) {
  PointData data = point_with({series(0, "gpu 0", "ecc_corrected", {12, 12, 15}),
                               series(0, "gpu 0", "ecc_uncorrected", {3, 3, 3}),
                               series(0, "mlx5_0 port 1", "symbol_errors", {0, 1}),
                               series(0, "cpu", "throttle_count", {4, 6}),
                               series(0, "eth0", "sent_bytes", {0, 1e9})});
  EXPECT_THAT(devices::device_warnings(data),
              ElementsAre("rank 0, gpu 0: 3 corrected ECC errors",
                          "rank 0, mlx5_0 port 1: 1 symbol errors of the link",
                          "rank 0, cpu: 2 slow-downs of cores for their temperature"));
}

TEST(DeviceReports, SayItInEveryFormat) {
  RunData run = run_on("cuda");
  PointData data = point_with({series(0, "gpu 0", "sm_clock", steady(1.98e9)),
                               series(0, "gpu 0", "temperature", steady(333.15)),
                               series(0, "gpu 0", "utilisation", steady(1)), energy({0, 700}),
                               series(0, "gpu 0", "ecc_corrected", {0, 2})});
  run.points = {data};
  const std::vector<RunReport> reports{make_report(run, "x.h5", {})};
  const std::string text = render::render_text({reports});
  EXPECT_THAT(text, HasSubstr("GPUs beside the loop"));
  EXPECT_THAT(text, HasSubstr("1.98 GHz  1.98 GHz  100.0%    60 °C  700 W"));
  EXPECT_THAT(text, HasSubstr("WARNING  1 rank: rank 0, gpu 0: 2 corrected ECC errors"));
  const std::string markdown = render::render_markdown({reports});
  EXPECT_THAT(markdown, HasSubstr("| 700 W | 350 J | 3.5 J |"));
  EXPECT_THAT(markdown, HasSubstr("- WARNING: 1 rank: rank 0, gpu 0: 2 corrected ECC errors"));
  const auto json = nlohmann::json::parse(render::render_json({reports}));
  const auto& state = json["runs"][0]["points"][0]["device_state"];
  EXPECT_EQ(state["energy_per_step"], 350);
  EXPECT_EQ(state["energy_per_token"], 3.5);
  EXPECT_EQ(state["power"], 700);
  EXPECT_EQ(state["energy_missing"], nullptr);
  EXPECT_EQ(state["series"].size(), 5U);
  EXPECT_EQ(state["series"][0]["median"], 1.98e9);
  EXPECT_EQ(state["series"][3]["median"], nullptr);
}

TEST(DeviceReports, SayNothingOfWhatWasNotSampled) {
  RunData run = run_on("host");
  run.points = {point(1, 1)};
  const std::vector<RunReport> reports{make_report(run, "x.h5", {})};
  EXPECT_THAT(render::render_text({reports}), Not(HasSubstr("beside the loop")));
  EXPECT_THAT(render::render_text({reports}), Not(HasSubstr("energy")));
  EXPECT_EQ(
      nlohmann::json::parse(render::render_json({reports}))["runs"][0]["points"][0]["device_state"],
      nullptr);
}

TEST(DeviceReports, SayWhyThereIsNoEnergyOnceAndKeepWarningsShort) {
  RunData run = run_on("cuda");
  PointData data = point(1, 1);
  for (int rank = 0; rank < 9; ++rank) {
    data.device_series.push_back(series(rank, "gpu 0", "ecc_corrected", {0, 2}));
  }
  run.points = {data, data};
  run.points[1].index = 1;
  const std::vector<RunReport> reports{make_report(run, "x.h5", {})};
  const render::Facts facts = render::device_remarks(reports[0].curves[0]);
  std::size_t warnings = 0, reasons = 0;
  for (const auto& [key, value] : facts) {
    warnings += key == "WARNING" ? 1U : 0U;
    reasons += key == "energy" ? 1U : 0U;
  }
  EXPECT_EQ(warnings, 5 * reports[0].curves[0].points.size());
  EXPECT_EQ(reasons, 1U);
}

TEST(Quantity, HasItsUnitAndKind) {
  using enum devices::QuantityKind;
  const auto expect = [](const char* name, std::string_view unit, devices::QuantityKind kind) {
    EXPECT_EQ(devices::quantity_of(name).unit, unit) << name;
    EXPECT_EQ(devices::quantity_of(name).kind, kind) << name;
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

TEST(Flaw, IsNamedOfValuesTimesAndUnits) {
  struct Case {
    const char* flaw;
    std::vector<DeviceSeries> all;
  };
  const auto with_times = [](std::vector<double> time) {
    DeviceSeries damaged = energy({0, 1, 2});
    damaged.time = std::move(time);
    return damaged;
  };
  for (const Case& at : std::vector<Case>{
           {"",
            {energy({0, 0, 5}), energy({7}), series(0, "cpu", "clock", {3e9, 2e9, 3e9}),
             series(0, "cpu", "busy_time", {100, 101, 102}),
             series(0, "gpu 0", "throttle_reasons", {4, 0, 64}),
             series(0, "gpu 0", "fan_speed", {-4, 0}, "furlong")}},
           {"it has no samples", {energy({})}},
           {"its values are not plausible",
            {energy({0, nan}), energy({0, infinite}), energy({0, -infinite}), energy({0, 1e300}),
             series(0, "gpu 0", "throttle_reasons", {nan})}},
           {"it counts and falls",
            {energy({0, 5, 4}), series(0, "eth0", "some_errors", {5, 4}, "?")}},
           {"it is below 0",
            {series(0, "cpu", "clock", {-5}), series(0, "cpu", "busy_time", {-5, -4})}},
           {"it is a share above 1", {series(0, "gpu 0", "utilisation", {0.5, 1.5})}},
           {"it grows faster than time", {series(0, "cpu", "busy_time", {0, 50})}},
           {"its times do not rise",
            {with_times({0, 1, 1}), with_times({0, 2, 1}), with_times({0, 1e-300, 1})}},
           {"its times are not plausible",
            {with_times({0, 1, nan}), with_times({0, 1, infinite}), with_times({-1e300, 0, 1})}},
           {"it has not one time for each value", {with_times({0, 1})}},
           {"its unit is another one",
            {series(0, "cpu", "clock", {3}, "GHz"), series(0, "gpu 0", "energy", {0, 1}, "")}}}) {
    for (const DeviceSeries& one : at.all)
      EXPECT_EQ(devices::flaw_of(one), at.flaw) << one.quantity;
  }
}

TEST(UsableSeries, AreTheFirstUsableOfEachNameAndTellWhatIsLeftOutOnceForEachReason) {
  PointData data =
      point_with({energy({5, 4}), series(0, "cpu", "clock", {3}, "GHz"), energy({7, 6}),
                  series(0, "eth0", "sent_bytes", {2, 1}), energy({1, 2})});
  EXPECT_THAT(devices::usable_series(data).series, ElementsAre(&data.device_series[4]));
  EXPECT_THAT(devices::usable_series(data).left_out,
              ElementsAre("rank 0, gpu 0: energy is left out, since it counts and falls (and so "
                          "are 2 more series)",
                          "rank 0, cpu: clock is left out, since its unit is another one"));
  data.device_series = {energy({}), energy({1, 2}), energy({1, 9})};
  EXPECT_THAT(devices::usable_series(data).series, ElementsAre(&data.device_series[1]));
  EXPECT_THAT(devices::usable_series(data).left_out,
              ElementsAre(HasSubstr("it has no samples"), HasSubstr("it is there twice")));
  EXPECT_EQ(devices::usable_series(data).find(0, "gpu 0", "energy"), &data.device_series[1]);
  EXPECT_EQ(devices::usable_series(data).find(1, "gpu 0", "energy"), nullptr);
  // A counter whose first series is empty tells its own busy share.
  data.device_series = {series(0, "cpu", "busy_time", {}),
                        series(0, "cpu", "busy_time", {0, 0.5, 1})};
  EXPECT_THAT(devices::device_state(run_on("host"), data).utilisation, Optional(0.5));
}

TEST(DamagedDevices, GiveNoNumbersButWarnings) {
  for (const double bad : {nan, infinite, -5.0}) {
    const PointData data = point_with({series(0, "gpu 0", "sm_clock", {bad, bad}),
                                       series(0, "gpu 0", "temperature", {bad, bad}),
                                       series(0, "gpu 0", "utilisation", {bad, bad}),
                                       series(0, "gpu 0", "power", {bad, bad}), energy({0, bad})});
    const devices::DeviceState state = devices::device_state(run_on("cuda"), data);
    EXPECT_THAT(state.series, IsEmpty());
    EXPECT_FALSE(state.clock || state.clock_min || state.temperature || state.utilisation);
    EXPECT_EQ(state.energy.power, std::nullopt);
    EXPECT_EQ(state.energy.missing, "1 of 1 GPUs reported neither energy nor power");
    EXPECT_THAT(state.warnings, Not(IsEmpty()));
    EXPECT_THAT(state.warnings, Each(HasSubstr("is left out, since")));
    EXPECT_THAT(state.warnings, Each(Not(AnyOf(HasSubstr("nan"), HasSubstr("inf")))));
  }
}

}  // namespace
}  // namespace isoscale::analysis
