// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <atomic>
#include <new>

#include "machine/device_sampler.hpp"
#include "machine/gpu_facts.hpp"
#include "nvml_standin.hpp"
#include "tests/unit/scratch_tree.hpp"

namespace isoscale::machine {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

units::Nanoseconds at(std::size_t time) {
  return units::Nanoseconds{static_cast<std::int64_t>(time)};
}

std::vector<Channel> channels(const std::vector<const char*>& devices) {
  return mapped(devices, [](const char* device) {
    return Channel{.device = device, .quantity = "x", .unit = "1"};
  });
}

/// Matches a series of a channel of channels(), in seconds.
auto series(const char* device, const auto& time, const auto& value) {
  return FieldsAre(0, device, "x", "1", time, value);
}

TEST(SampleStore, DropsEverySecondSampleWhereThereAreTooMany) {
  SampleStore store{4};
  for (std::size_t time = 0; time < 5; ++time) {
    EXPECT_EQ(store.add(at(time), {static_cast<double>(time)}),
              time < 4 ? SampleStore::Thinned::no : SampleStore::Thinned::yes);
  }
  EXPECT_THAT(store.series(channels({"a"})),
              ElementsAre(series("a", ElementsAre(0, 2e-9, 4e-9), ElementsAre(0, 2, 4))));
}

TEST(SampleStore, StaysBoundedAndKeepsBothEnds) {
  SampleStore store{7};
  for (std::size_t time = 0; time < 1000; ++time) {
    static_cast<void>(store.add(at(time), {static_cast<double>(time)}));
    const auto series = store.series(channels({"a"}));
    ASSERT_LE(series[0].time.size(), 7U);
    ASSERT_EQ(series[0].value.front(), 0);
    ASSERT_EQ(series[0].value.back(), static_cast<double>(time));
  }
}

TEST(SampleStore, LeavesOutReadingsThatFailed) {
  SampleStore store{10};
  static_cast<void>(store.add(at(1), {nan, 5, nan}));
  static_cast<void>(store.add(at(2), {7, nan, nan}));
  EXPECT_THAT(store.series(channels({"a", "b", "c"})),
              ElementsAre(series("a", ElementsAre(2e-9), ElementsAre(7)),
                          series("b", ElementsAre(1e-9), ElementsAre(5))));
}

/// A counter that counts its readings, and waits for them.
struct Readings {
  std::atomic<int> count = 0;
  [[nodiscard]] Source source() {
    return {.channels = {{.device = "test", .quantity = "readings", .unit = "1"}},
            .read = [this](auto values) {
              values[0] = ++count;
              count.notify_all();
            }};
  }
  void wait_for(int wanted) {
    for (int now = count; now < wanted; now = count) count.wait(now);
  }
};

TEST(DeviceSampler, TakesTheFirstSampleAndTheLastHoweverShortItRuns) {
  Readings readings;
  DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{3600}}};
  EXPECT_EQ(readings.count, 1);
  const auto series = sampler.stop();
  ASSERT_THAT(series, SizeIs(2));
  EXPECT_THAT(series[0].value, ElementsAre(1, 2));
  EXPECT_LT(series[0].time[0], series[0].time[1]);
  EXPECT_EQ(series[1].device, "sampler");
  EXPECT_EQ(series[1].quantity, "sample_time");
  EXPECT_EQ(series[1].unit, "s");
  EXPECT_THAT(series[1].value, ElementsAre(Ge(0), Ge(0)));
}

TEST(DeviceSampler, LeavesOutASampleForWhichNoMemoryIsLeft) {
  Readings readings;
  Source source = readings.source();
  source.read = [read = source.read, &readings](auto values) {
    read(values);
    if (readings.count == 2) throw std::bad_alloc{};
  };
  DeviceSampler sampler{{std::move(source)}, {.interval = units::Seconds{1e-4}}};
  readings.wait_for(4);
  const auto series = sampler.stop();
  EXPECT_EQ(series[0].value.size() + 1, static_cast<std::size_t>(readings.count));
  EXPECT_THAT(series[0].value, Not(Contains(2)));
  EXPECT_TRUE(std::ranges::is_sorted(series[0].time));
}

TEST(DeviceSampler, HoldsNoMoreSamplesThanItMay) {
  Readings readings;
  DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{1e-6}, .most_samples = 8}};
  readings.wait_for(40);  // the interval has grown a thousandfold
  const auto series = sampler.stop();
  EXPECT_LE(series[0].value.size(), 8U);
  EXPECT_EQ(series[0].value.front(), 1);
  EXPECT_EQ(series[0].value.back(), static_cast<double>(readings.count));
}

TEST(DeviceSampler, EndsItsThreadWhenItIsDropped) {
  Readings readings;
  {
    const DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{1e-4}}};
    readings.wait_for(2);
  }
  const int then = readings.count;
  usleep(2000);
  EXPECT_EQ(readings.count, then);
}

class Files : public testing::Test, protected preflight::ScratchTree {
 protected:
  void write(const std::string& path, const std::string& text) const {
    ScratchTree::write(path, text + "\n");
  }
};

std::vector<double> values_in(const Source& source) {
  std::vector<double> values(source.channels.size());
  source.read(values);
  return values;
}
/// The only source, with these channels.
Source only(const std::vector<Source>& sources, const std::vector<Channel>& channels) {
  EXPECT_THAT(sources, SizeIs(1));
  if (sources.empty()) return {};
  EXPECT_EQ(sources.front().channels, channels);
  return sources.front();
}
const auto is_nan = testing::NanSensitiveDoubleEq(nan);

std::string cpu_file(int cpu, const std::string& name) {
  return "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + name;
}
std::string clock_file(int cpu) { return cpu_file(cpu, "cpufreq/scaling_cur_freq"); }
const std::vector<Channel> clocks{{.device = "cpu", .quantity = "clock", .unit = "Hz"},
                                  {.device = "cpu", .quantity = "clock_min", .unit = "Hz"}};

TEST_F(Files, WithoutAnythingGiveNoSource) {
  EXPECT_THAT(node_sources(root(), {}), IsEmpty());
  EXPECT_THAT(node_sources(root(), {0, 1}), IsEmpty());
  DeviceSampler sampler{{}, {}};
  EXPECT_THAT(sampler.stop(), IsEmpty());
}

TEST_F(Files, GiveClocksOfTheCpusAskedFor) {
  write(clock_file(0), "1000000");
  write(clock_file(1), "3000000");
  write(clock_file(2), "2000000");
  const Source source = only(node_sources(root(), {1, 2}), clocks);
  EXPECT_THAT(values_in(source), ElementsAre(2.5e9, 2e9));
  EXPECT_THAT(values_in(node_sources(root(), {})[0]), ElementsAre(2e9, 1e9));
  remove(clock_file(2));
  EXPECT_THAT(values_in(source), ElementsAre(3e9, 3e9));
  remove(clock_file(1));
  EXPECT_THAT(values_in(source), ElementsAre(is_nan, is_nan));
}

/// The clocks that are not looked at would lower the least.
TEST_F(Files, LookAtEveryNthOfManyClocks) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < 64; ++cpu) {
    cpus.push_back(cpu);
    write(clock_file(cpu), cpu % 4 == 0 ? "2000000" : "1");
  }
  EXPECT_THAT(values_in(node_sources(root(), cpus)[0]), ElementsAre(2e9, 2e9));
}

TEST_F(Files, GiveClocksOfCpuinfoWhereThereIsNoOtherPlace) {
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: X @ 2.3GHz\ncpu MHz\t\t: 2300.5\n\n"
        "processor\t: 1\ncpu MHz\t\t: 1200.0");
  EXPECT_THAT(values_in(node_sources(root(), {0})[0]), ElementsAre(2300.5e6, 2300.5e6));
  EXPECT_THAT(values_in(node_sources(root(), {})[0]), ElementsAre(1750.25e6, 1200e6));
  write("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00");  // as on ARM
  EXPECT_THAT(node_sources(root(), {}), IsEmpty());
}

TEST_F(Files, CountHowOftenCoresWereTooHot) {
  for (const int cpu : {0, 1, 2}) {
    write(cpu_file(cpu, "thermal_throttle/core_throttle_count"), std::to_string(cpu));
  }
  const Source source = only(node_sources(root(), {1, 2}),
                             {{.device = "cpu", .quantity = "throttle_count", .unit = "1"}});
  EXPECT_THAT(values_in(source), ElementsAre(3));
  remove(cpu_file(1, ""));  // the rest would look like a count that fell
  EXPECT_THAT(values_in(source), ElementsAre(is_nan));
}

TEST_F(Files, GiveTheTimeThatCpusWereBusy) {
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  //                           user nice system idle iowait irq softirq steal guest guest_nice
  write("proc/stat",
        "cpu  999 9 9 9 9 9 9 9 9 9\ncpu0 100 10 20 5000 300 4 6 77 50 0\n"
        "cpu1 50 0 10 5000 300 0 0 77 50 0\ncpu10 7 0 0 0 0 0 0 0 0 0\nintr 12 0 0");
  const Source source =
      only(node_sources(root(), {0, 1}), {{.device = "cpu", .quantity = "busy_time", .unit = "s"}});
  EXPECT_THAT(values_in(source), ElementsAre(DoubleEq((140 + 60) / 2.0 / ticks)));
  EXPECT_THAT(node_sources(root(), {5}), IsEmpty());
  remove("proc/stat");
  EXPECT_THAT(values_in(source), ElementsAre(is_nan));
}

TEST_F(Files, GiveEnergyThatGoesOnWhereItsRegisterWraps) {
  const auto zone = [&](const char* folder, const char* name, const char* energy) {
    lines(std::string{"sys/class/powercap/"} + folder,
          {{"name", name}, {"energy_uj", energy}, {"max_energy_range_uj", "10000000"}});
  };
  zone("intel-rapl:0", "package-0", "9000000");
  zone("intel-rapl:0:0", "core", "1");
  zone("intel-rapl:0:1", "dram", "500000");
  zone("intel-rapl:1", "psys", "1");
  zone("intel-rapl-mmio:0", "package-0", "1");  // the same once more
  const auto sources = node_sources(root(), {});
  ASSERT_THAT(sources, SizeIs(2));
  EXPECT_EQ(sources[0].channels[0],
            (Channel{.device = "package 0", .quantity = "energy", .unit = "J"}));
  EXPECT_EQ(sources[1].channels[0].device, "dram 0");
  EXPECT_THAT(values_in(sources[0]), ElementsAre(0));
  const std::string register_file = "sys/class/powercap/intel-rapl:0/energy_uj";
  const auto joules = [&](const char* microjoules) {
    write(register_file, microjoules);
    return values_in(sources[0]);
  };
  EXPECT_THAT(joules("9500000"), ElementsAre(DoubleEq(0.5)));
  EXPECT_THAT(joules("250000"), ElementsAre(DoubleEq(1.25)));
  remove(register_file);
  EXPECT_THAT(values_in(sources[0]), ElementsAre(is_nan));
  EXPECT_THAT(joules("1250000"), ElementsAre(DoubleEq(2.25)));
}

TEST_F(Files, GiveTemperaturesOfPackages) {
  const auto channel = [](const char* device) {
    return std::vector<Channel>{{.device = device, .quantity = "temperature", .unit = "K"}};
  };
  lines("sys/class/thermal/thermal_zone0", {{"type", "acpitz"}, {"temp", "20000"}});
  lines("sys/class/thermal/thermal_zone1", {{"type", "x86_pkg_temp"}, {"temp", "41500"}});
  EXPECT_THAT(values_in(only(node_sources(root(), {}), channel("package 0"))),
              ElementsAre(DoubleEq(314.65)));
  // Where a driver tells packages from cores, it is asked.
  lines("sys/class/hwmon/hwmon2", {{"name", "coretemp"},
                                   {"temp1_label", "Package id 1"},
                                   {"temp1_input", "50000"},
                                   {"temp2_label", "Core 0"},
                                   {"temp2_input", "60000"}});
  EXPECT_THAT(values_in(only(node_sources(root(), {}), channel("package 1"))),
              ElementsAre(DoubleEq(323.15)));
}

TEST_F(Files, GiveCountersOfPortsThatAreActive) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  write(port + "state", "4: ACTIVE");
  write(port + "counters/port_xmit_data", "1000");  // words of 4 bytes
  write(port + "counters/port_rcv_data", "2000");
  write(port + "counters/link_downed", "3");
  write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  write("sys/class/infiniband/mlx5_1/ports/1/counters/port_xmit_data", "1");
  const std::vector<Channel> counters{
      {.device = "mlx5_0 port 1", .quantity = "sent_bytes", .unit = "B"},
      {.device = "mlx5_0 port 1", .quantity = "received_bytes", .unit = "B"},
      {.device = "mlx5_0 port 1", .quantity = "link_downed", .unit = "1"}};
  EXPECT_THAT(values_in(only(node_sources(root(), {}), counters)), ElementsAre(4000, 8000, 3));
}

TEST_F(Files, GiveCountersOfRealEthernetThatIsUp) {
  for (const std::string name : {"eth0", "eth1", "lo"}) {
    const std::string device = "sys/class/net/" + name;
    lines(device + "/statistics", {{"tx_bytes", "10"}, {"rx_bytes", "20"}});
    write(device + "/operstate", name == "eth1" ? "down" : "up");
    if (name != "lo") write(device + "/device/vendor", "0x1af4");
  }
  const auto sources = node_sources(root(), {});
  ASSERT_THAT(sources, SizeIs(1));
  EXPECT_EQ(sources[0].channels[0].device, "eth0");
  EXPECT_THAT(values_in(sources[0]), ElementsAre(10, 20));
}

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
                  Pair("gpu_nvlink_peers", "0000:07:00.0,0000:09:00.0"),
                  Pair("gpu_pci", "0000:1b:00.0"), Pair("gpu_persistence", "on"),
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

class GpuSamples : public Nvml {
 protected:
  [[nodiscard]] std::vector<Source> sources(const char* uuid = "GPU-12ab") const {
    return gpu_sources(library_, uuid);
  }
  /// By quantity.
  static std::map<std::string, double> read(const Source& source) {
    const std::vector<double> values = values_in(source);
    std::map<std::string, double> result;
    for (std::size_t i = 0; i < values.size(); ++i) result[source.channels[i].quantity] = values[i];
    return result;
  }

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
  EXPECT_THAT(values.at("power"), is_nan);
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
