// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/device_state_and_energy.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis::devices {
namespace {

using results::DeviceSeries;
using results::PointData;
using results::RunData;

constexpr double step = 0.5;  // s

/// Samples a second apart, from 0, with their unit if it is not the quantity's; the point's loop of
/// 20 steps takes ten, the first two warm up.
DeviceSeries series(int rank, std::string device, std::string quantity, std::vector<double> values,
                    std::optional<std::string> unit = std::nullopt) {
  DeviceSeries result{.rank = rank,
                      .device = std::move(device),
                      .quantity = quantity,
                      .unit = unit.value_or(std::string{quantity_of(quantity).unit})};
  for (std::size_t i = 0; i < values.size(); ++i) result.time.push_back(static_cast<double>(i));
  result.value = std::move(values);
  return result;
}

/// Samples of the first GPU.
DeviceSeries gpu(std::string quantity, std::vector<double> values) {
  return series(0, "gpu 0", std::move(quantity), std::move(values));
}
/// Its counter of joules.
DeviceSeries energy(std::vector<double> values) { return gpu("energy", std::move(values)); }

PointData point(int ranks, int nodes, std::vector<DeviceSeries> all = {}) {
  PointData data = measured(0, {.dp = ranks}, step);
  data.nodes = nodes;
  data.step_times.assign(20, std::vector<double>(static_cast<std::size_t>(ranks), step));
  data.traced.assign(20, 0);
  data.dropped.assign(20, 0);
  data.warm_up_steps = 2;
  data.measured_seconds = 10;
  data.work_per_step = 100;
  data.device_series = std::move(all);
  return data;
}

/// A point of one rank with these series.
PointData point_with(std::vector<DeviceSeries> all) { return point(1, 1, std::move(all)); }

RunData run_on(const std::string& device) {
  RunData run = samples::run();
  run.device = device;
  run.rank_facts.clear();
  return run;
}

std::vector<double> steady(double value) { return std::vector<double>(11, value); }

TEST(DeviceState, SummarisesWhatFollowsWarmUpOfPointsThatAreOk) {
  PointData data = point_with({series(0, "cpu", "clock", {1e9, 3e9, 2e9, 4e9}),
                               series(0, "package 0", "energy", {0, 1, 2, 5})});
  const DeviceState state = device_state(run_on("host"), data);
  ASSERT_THAT(state.series, SizeIs(2));
  EXPECT_THAT(state.series[0].minimum, Optional(2e9));  // the first is of warm-up
  EXPECT_THAT(state.series[0].median, Optional(3e9));
  EXPECT_THAT(state.series[0].maximum, Optional(4e9));
  EXPECT_THAT(state.series[0].data->value, ElementsAre(1e9, 3e9, 2e9, 4e9));
  EXPECT_EQ(state.series[1].median, std::nullopt);
  EXPECT_EQ(state.series[1].data->value.back(), 5);
  data.status = results::PointStatus::failed;
  EXPECT_THAT(device_state(run_on("host"), data).series, IsEmpty());
}

TEST(DeviceState, TellsWhatTheComputingDevicesAreLike) {
  const PointData data = point(
      2, 1,
      {gpu("sm_clock", steady(1.9e9)), series(1, "gpu 1", "sm_clock", steady(1.7e9)),
       gpu("temperature", steady(330)), series(1, "gpu 1", "utilisation", steady(0.5)),
       series(0, "cpu", "clock", steady(3e9)), series(0, "package 0", "temperature", steady(350))});
  const DeviceState gpus = device_state(run_on("cuda"), data);
  EXPECT_THAT(gpus.clock, Optional(DoubleEq(1.8e9)));
  EXPECT_THAT(gpus.clock_min, Optional(1.7e9));
  EXPECT_THAT(gpus.temperature, Optional(330));
  EXPECT_THAT(gpus.utilisation, Optional(0.5));
  const DeviceState cpus = device_state(run_on("host"), data);
  EXPECT_THAT(cpus.clock, Optional(3e9));
  EXPECT_EQ(cpus.clock_min, std::nullopt);
  EXPECT_THAT(cpus.temperature, Optional(350));
  EXPECT_EQ(cpus.utilisation, std::nullopt);
}

TEST(DeviceEnergy, ComesFromCountersOfAllGpus) {
  const Energy found = energy_of(
      run_on("cuda"), point(2, 1,
                            {energy({1000, 1700}), series(1, "gpu 1", "energy", {50, 350}),
                             series(1, "gpu 1", "power", {9, 9})}));  // beside a counter
  EXPECT_EQ(found.of, "GPUs");
  EXPECT_THAT(found.power, Optional(DoubleEq(1000)));
  EXPECT_THAT(found.joules, Optional(DoubleEq(10'000)));
  EXPECT_THAT(found.joules_per_step, Optional(DoubleEq(500)));
  EXPECT_THAT(found.joules_per_token, Optional(DoubleEq(5)));
  EXPECT_EQ(found.missing, "");
}

TEST(DeviceEnergy, ElseIsTheIntegralOfPower) {
  PointData data = point_with({gpu("power", {100, 300, 300})});
  data.device_series[0].time = {0, 1, 5};  // 200 W for a second, 300 W for four
  EXPECT_THAT(energy_of(run_on("cuda"), data).power, Optional(DoubleEq(280)));
  // A loop without a length is as long as its samples.
  data = point_with({energy({0, 100, 200})});
  for (const double seconds : {nan, infinite, -3.0}) {
    data.measured_seconds = seconds;
    EXPECT_THAT(energy_of(run_on("cuda"), data).joules, Optional(200));
  }
}

TEST(DeviceEnergy, OfAHostRunIsThatOfAllPackagesAndTheirMemory) {
  const Energy found = energy_of(
      run_on("host"),
      point(4, 2,
            {series(0, "package 0", "energy", {0, 100}), series(0, "package 1", "energy", {0, 80}),
             series(0, "dram 0", "energy", {0, 20}), series(2, "package 0", "energy", {0, 50})}));
  EXPECT_THAT(found.power, Optional(DoubleEq(250)));
  EXPECT_EQ(found.of, "CPU packages");
}

TEST(DeviceEnergy, IsAbsentWhereADeviceIsMissingOrTheLoopIsShort) {
  const Energy gpus =
      energy_of(run_on("cuda"), point(3, 1,
                                      {energy({0, 1}), series(1, "gpu 1", "energy", {7}),
                                       series(2, "gpu 2", "power", {100, 100})}));
  EXPECT_FALSE(gpus.power || gpus.joules_per_step);
  EXPECT_THAT(gpus.missing, HasSubstr("1 of 3 GPUs"));
  RunData run = run_on("host");
  PointData data = point(
      4, 2, {series(0, "package 0", "energy", {0, 100}), series(2, "dram 0", "energy", {0, 50})});
  EXPECT_THAT(energy_of(run, data).missing, HasSubstr("1 of 2 nodes"));
  data.device_series[1].device = "package 0";
  EXPECT_TRUE(energy_of(run, data).power);
  run.rank_facts = {{.rank = 0, .number = {{"sockets", 2}}}};
  EXPECT_FALSE(energy_of(run, data).power) << "one of two packages";
  PointData brief = point_with({energy({0, 100})});
  brief.measured_seconds = 0.4;
  EXPECT_FALSE(energy_of(run_on("cuda"), brief).power);
  EXPECT_THAT(energy_of(run_on("cuda"), brief).missing, HasSubstr("0.4 s"));
}

std::vector<std::string> warnings(std::vector<DeviceSeries> all) {
  return device_warnings(point_with(std::move(all)));
}

TEST(DeviceWarnings, NameAClockThatFellOrDipsAgainAndAgain) {
  std::vector<double> clocks{0, 2e9, 2e9, 2e9, 2e9, 1.9e9, 1.9e9, 1.9e9, 1.9e9, 1.9e9};
  EXPECT_THAT(warnings({gpu("sm_clock", clocks)}),
              ElementsAre(AllOf(HasSubstr("rank 0, gpu 0"), HasSubstr("2 GHz to 1.9 GHz"))));
  for (double& clock : clocks) clock = std::max(clock, 1.96e9);
  EXPECT_THAT(warnings({gpu("sm_clock", clocks)}), IsEmpty()) << "2%";
  clocks.assign(21, 2e9);
  clocks[6] = clocks[11] = 1.7e9;
  EXPECT_THAT(warnings({gpu("sm_clock", clocks)}), IsEmpty()) << "2 of 20";
  clocks[16] = 1.7e9;
  EXPECT_THAT(warnings({gpu("sm_clock", clocks)}), ElementsAre(HasSubstr("90%")));
}

TEST(DeviceWarnings, CountOnlyWhatIsBusy) {
  const DeviceSeries clock = gpu("sm_clock", {0, 2e9, 2e9, 2e9, 2e9, 2e9, 2e9, 1e9, 1e9, 1e9});
  EXPECT_THAT(warnings({clock}), SizeIs(1));
  EXPECT_THAT(warnings({clock, gpu("throttle_reasons", {1, 0, 0, 0, 0, 0, 0, 1, 1, 1})}),
              IsEmpty());
  const DeviceSeries cpu = series(0, "cpu", "clock", {3e9, 3e9, 3e9, 3e9, 3e9, 2e9, 2e9, 2e9, 2e9});
  EXPECT_THAT(warnings({cpu}), IsEmpty()) << "nothing says that it was";
  EXPECT_THAT(warnings({cpu, series(0, "cpu", "busy_time", {0, 1, 2, 3, 4, 4.9, 5.8, 6.7, 7.6})}),
              ElementsAre(AllOf(HasSubstr("rank 0, cpu"), HasSubstr("3 GHz to 2 GHz"))));
  EXPECT_THAT(warnings({cpu, series(0, "cpu", "busy_time", {0, 1, 2, 3, 4, 4.1, 4.2, 4.3, 4.4})}),
              IsEmpty());
}

TEST(DeviceWarnings, NameReasonsThatHeldClocksDown) {
  std::vector<double> reasons(21, 0);
  reasons[0] = 0x80;  // in warm-up
  reasons[5] = 0x44;
  reasons[6] = 0x03;  // idle, and a setting
  EXPECT_THAT(warnings({gpu("throttle_reasons", reasons)}),
              ElementsAre(HasSubstr("hardware thermal slowdown (5%")));
  for (std::size_t i = 10; i < 20; ++i)
    reasons[i] = 0x14;  // a software power cap is usual under load
  EXPECT_THAT(warnings({gpu("throttle_reasons", reasons)}),
              ElementsAre(AllOf(HasSubstr("sync boost (50%"), Not(HasSubstr("power cap")))));
  // Reasons that are no set of bits are skipped.
  PointData data = point_with({gpu("throttle_reasons", {0x08, 8.5, -1, 1e300, 0x1p60, 0})});
  data.warm_up_steps = 0;
  EXPECT_THAT(device_warnings(data), ElementsAre(HasSubstr("hardware slowdown (50%")));
}

TEST(DeviceWarnings, NameErrorsThatWereCounted) {
  EXPECT_THAT(warnings({gpu("ecc_corrected", {12, 12, 15}), gpu("ecc_uncorrected", {3, 3, 3}),
                        series(0, "mlx5_0 port 1", "symbol_errors", {0, 1}),
                        series(0, "cpu", "throttle_count", {4, 6}),
                        series(0, "eth0", "sent_bytes", {0, 1e9})}),
              ElementsAre(HasSubstr("gpu 0: 3 corrected ECC"), HasSubstr("mlx5_0 port 1: 1 symbol"),
                          HasSubstr("cpu: 2 slow-downs")));
}

TEST(DeviceReports, SayItInEveryFormat) {
  RunData run = run_on("cuda");
  run.points = {
      point_with({gpu("sm_clock", steady(1.98e9)), gpu("temperature", steady(333.15)),
                  gpu("utilisation", steady(1)), energy({0, 700}), gpu("ecc_corrected", {0, 2})})};
  const std::string text = rendered(run, render::render_text);
  EXPECT_THAT(text, HasSubstr("1.98 GHz  1.98 GHz  100.0%    60 °C  700 W"));
  EXPECT_THAT(text, HasSubstr("WARNING  1 rank: rank 0, gpu 0: 2 corrected"));
  const std::string markdown = rendered(run, render::render_markdown);
  EXPECT_THAT(markdown, HasSubstr("| 700 W | 350 J | 3.5 J |"));
  EXPECT_THAT(markdown, HasSubstr("- WARNING: 1 rank: rank 0, gpu 0: 2 corrected"));
  const auto state = json_of(run)["points"][0]["device_state"];
  expect_holds(state, {{"energy_per_step", 350},
                       {"energy_per_token", 3.5},
                       {"power", 700},
                       {"energy_missing", nullptr}});
  ASSERT_EQ(state["series"].size(), 5U);
  EXPECT_EQ(state["series"][0]["median"], 1.98e9);
  EXPECT_EQ(state["series"][3]["median"], nullptr);
  // They say nothing of what was not sampled.
  run.points = {point(1, 1)};
  EXPECT_THAT(rendered(run, render::render_text),
              Not(AnyOf(HasSubstr("beside the loop"), HasSubstr("energy"))));
  EXPECT_EQ(json_of(run)["points"][0]["device_state"], nullptr);
}

TEST(DeviceReports, SayWhyThereIsNoEnergyOnceAndKeepWarningsShort) {
  RunData run = run_on("cuda");
  PointData data = point(1, 1);
  for (int rank = 0; rank < 9; ++rank) {
    data.device_series.push_back(series(rank, "gpu 0", "ecc_corrected", {0, 2}));
  }
  run.points = {data, data};
  run.points[1].index = 1;
  const Curve curve = curve_of(run);
  std::map<std::string, std::size_t> count;
  for (const auto& [key, value] : render::device_remarks(curve)) ++count[key];
  EXPECT_EQ(count["WARNING"], 5 * curve.points.size());
  EXPECT_EQ(count["energy"], 1U);
}

TEST(Flaw, IsNamedOfValuesTimesAndUnits) {
  const auto with_times = [](std::vector<double> time) {
    DeviceSeries damaged = energy({0, 1, 2});
    damaged.time = std::move(time);
    return damaged;
  };
  const std::vector<std::pair<const char*, std::vector<DeviceSeries>>> cases{
      {"",
       {energy({0, 0, 5}), energy({7}), series(0, "cpu", "clock", {3e9, 2e9, 3e9}),
        series(0, "cpu", "busy_time", {100, 101, 102}), gpu("throttle_reasons", {4, 0, 64}),
        series(0, "gpu 0", "fan_speed", {-4, 0}, "furlong")}},
      {"no samples", {energy({})}},
      {"values are not plausible",
       {energy({0, nan}), energy({0, infinite}), energy({0, -infinite}), energy({0, 1e300}),
        gpu("throttle_reasons", {nan})}},
      {"falls", {energy({0, 5, 4}), series(0, "eth0", "some_errors", {5, 4}, "?")}},
      {"below 0", {series(0, "cpu", "clock", {-5}), series(0, "cpu", "busy_time", {-5, -4})}},
      {"above 1", {gpu("utilisation", {0.5, 1.5})}},
      {"faster than time", {series(0, "cpu", "busy_time", {0, 50})}},
      {"do not rise", {with_times({0, 1, 1}), with_times({0, 2, 1}), with_times({0, 1e-300, 1})}},
      {"times are not plausible",
       {with_times({0, 1, nan}), with_times({0, 1, infinite}), with_times({-1e300, 0, 1})}},
      {"one time for each", {with_times({0, 1})}},
      {"unit is another",
       {series(0, "cpu", "clock", {3}, "GHz"), series(0, "gpu 0", "energy", {0, 1}, "")}}};
  for (const auto& [part, all] : cases) {
    for (const DeviceSeries& one : all) {
      EXPECT_THAT(flaw_of(one), HasSubstr(part)) << one.quantity;
      EXPECT_EQ(flaw_of(one).empty(), *part == 0) << one.quantity;
    }
  }
}

TEST(UsableSeries, AreTheFirstUsableOfEachNameAndTellWhatIsLeftOutOnceForEachReason) {
  PointData data =
      point_with({energy({5, 4}), series(0, "cpu", "clock", {3}, "GHz"), energy({7, 6}),
                  series(0, "eth0", "sent_bytes", {2, 1}), energy({1, 2})});
  EXPECT_THAT(usable_series(data).series, ElementsAre(&data.device_series[4]));
  EXPECT_THAT(usable_series(data).left_out,
              ElementsAre(AllOf(HasSubstr("gpu 0: energy"), HasSubstr("falls (and so are 2")),
                          AllOf(HasSubstr("cpu: clock"), HasSubstr("unit is another"))));
  data.device_series = {energy({}), energy({1, 2}), energy({1, 9})};
  EXPECT_THAT(usable_series(data).series, ElementsAre(&data.device_series[1]));
  EXPECT_THAT(usable_series(data).left_out,
              ElementsAre(HasSubstr("no samples"), HasSubstr("twice")));
  EXPECT_EQ(usable_series(data).find(0, "gpu 0", "energy"), &data.device_series[1]);
  EXPECT_EQ(usable_series(data).find(1, "gpu 0", "energy"), nullptr);
  // A counter whose first series is empty tells its own busy share.
  data.device_series = {series(0, "cpu", "busy_time", {}),
                        series(0, "cpu", "busy_time", {0, 0.5, 1})};
  EXPECT_THAT(device_state(run_on("host"), data).utilisation, Optional(0.5));
}

TEST(DamagedDevices, GiveNoNumbersButWarnings) {
  for (const double bad : {nan, infinite, -5.0}) {
    const PointData data =
        point_with({gpu("sm_clock", {bad, bad}), gpu("temperature", {bad, bad}),
                    gpu("utilisation", {bad, bad}), gpu("power", {bad, bad}), energy({0, bad})});
    const DeviceState state = device_state(run_on("cuda"), data);
    EXPECT_THAT(state.series, IsEmpty());
    EXPECT_FALSE(state.clock || state.clock_min || state.temperature || state.utilisation);
    EXPECT_EQ(state.energy.power, std::nullopt);
    EXPECT_THAT(state.energy.missing, HasSubstr("1 of 1 GPUs"));
    EXPECT_THAT(state.warnings, Not(IsEmpty()));
    EXPECT_THAT(state.warnings,
                Each(AllOf(HasSubstr("left out"), Not(HasSubstr("nan")), Not(HasSubstr("inf")))));
  }
}

}  // namespace
}  // namespace isoscale::analysis::devices
