// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/folder_entries.hpp"
#include "base/text.hpp"
#include "machine/device_sampler.hpp"
#include "machine/nvml_library.hpp"
#include "machine/procfs_and_cgroups.hpp"

namespace isoscale::machine {
namespace {

namespace fs = std::filesystem;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr double freezing = 273.15;  // K
/// The largest number of CPUs whose files are read, since reading a clock may interrupt the CPU.
constexpr std::size_t most_clocks = 16;

bool wanted(const std::vector<int>& cpus, int cpu) {
  return cpus.empty() || std::ranges::find(cpus, cpu) != cpus.end();
}

/// Keeps every n-th CPU, so that at most `most_clocks` are left and a sample takes little time.
std::vector<int> thinned(const std::vector<int>& cpus) {
  const std::size_t stride = (cpus.size() + most_clocks - 1) / most_clocks;
  std::vector<int> kept;
  for (std::size_t i = 0; i < cpus.size(); i += stride) kept.push_back(cpus[i]);
  return kept;
}

/// Reads the clock of each CPU in Hz from /proc/cpuinfo.
std::map<int, double> clocks_in_cpuinfo(std::string_view text) {
  constexpr double megahertz = 1e6;
  std::map<int, double> clocks;
  int cpu = -1;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::optional<double> value = leading_number(line.substr(colon + 1));
    if (line.starts_with("processor") && value) cpu = static_cast<int>(*value);
    if (line.starts_with("cpu MHz") && value && *value > 0) clocks[cpu] = *value * megahertz;
  }
  return clocks;
}

/// Writes the mean of the known clocks to values[0] and the lowest to values[1]; NaN if none is
/// known.
void put_mean_and_least(const std::vector<double>& clocks, std::span<double> values) {
  values[0] = values[1] = unknown;
  if (clocks.empty()) return;
  double sum = 0;
  for (const double clock : clocks) sum += clock;
  values[0] = sum / static_cast<double>(clocks.size());
  values[1] = std::ranges::min(clocks);
}

std::vector<Channel> clock_channels() {
  return {{.device = "cpu", .quantity = "clock", .unit = "Hz"},
          {.device = "cpu", .quantity = "clock_min", .unit = "Hz"}};
}

/// Returns the file `name` of each CPU that has one. If there are more than most_clocks CPUs, only
/// every n-th is tried (see thinned()). Empty `cpus` means all.
std::vector<fs::path> cpu_files(const fs::path& root, const std::vector<int>& cpus,
                                const char* name) {
  const auto folder = [&](int cpu) {
    return root / fmt::format("sys/devices/system/cpu/cpu{}", cpu);
  };
  std::vector<int> candidates = cpus;
  std::error_code failure;
  for (int cpu = 0; cpus.empty() && fs::exists(folder(cpu), failure); ++cpu) {
    candidates.push_back(cpu);
  }
  std::vector<fs::path> files;
  if (candidates.empty()) return files;
  for (const int cpu : thinned(candidates)) {
    fs::path file = folder(cpu) / name;
    if (number_in(file)) files.push_back(std::move(file));
  }
  return files;
}

/// Returns the mean over `cpus` of the seconds that a CPU was busy since the system started; NaN if
/// unknown.
double busy_time(std::string_view stat, const std::vector<int>& cpus) {
  // The fields are user nice system idle iowait irq softirq, then steal, which is not counted.
  constexpr std::size_t fields = 7, idle = 3, waiting = 4;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  double busy = 0;
  int found = 0;
  for (const std::string_view line : base::split(stat, '\n')) {
    constexpr std::string_view prefix = "cpu";
    if (!line.starts_with(prefix) || line.starts_with("cpu ")) continue;
    const std::vector<std::string_view> parts = base::split(line.substr(prefix.size()), ' ');
    const std::optional<double> cpu = leading_number(parts.front());
    if (!cpu || !wanted(cpus, static_cast<int>(*cpu))) continue;
    ++found;
    for (std::size_t field = 0; field < fields && field + 1 < parts.size(); ++field) {
      if (field != idle && field != waiting) busy += leading_number(parts[field + 1]).value_or(0);
    }
  }
  return found == 0 ? unknown : busy / ticks / found;
}

/// Turns a register that counts up to a limit and then restarts into a counter that only grows.
class WrappingCounter {
 public:
  WrappingCounter(fs::path file, double range) : file_(std::move(file)), range_(range) {}

  /// Returns the count since the first reading; NaN if the file cannot be read now.
  [[nodiscard]] double read() {
    const std::optional<double> now = number_in(file_);
    if (!now) return unknown;
    if (last_) {
      const double step = *now - *last_;
      sum_ += step < 0 ? step + range_ : step;
    }
    last_ = now;
    return sum_;
  }

 private:
  fs::path file_;
  double range_;
  std::optional<double> last_;
  double sum_ = 0;
};

/// Returns the name of the device that a RAPL zone measures; nullopt for zones that are neither a
/// package nor memory. The name is "package 0" for the package "package-0". It is "dram 0" for the
/// memory below the zone intel-rapl:0, with the number of that zone.
std::optional<std::string> energy_device(const fs::path& zone, const std::string& name) {
  constexpr std::string_view package = "package-", memory = "dram";
  if (name.starts_with(package)) return "package " + name.substr(package.size());
  if (name != memory) return std::nullopt;  // core, uncore: parts of a package; psys: the system
  const std::string id = zone.filename().string();  // intel-rapl:0:1
  const std::size_t first = id.find(':');
  return fmt::format("{} {}", memory, id.substr(first + 1, id.find(':', first + 1) - first - 1));
}

Source temperature_source(std::string device, fs::path file) {
  return {.channels = {{.device = std::move(device), .quantity = "temperature", .unit = "K"}},
          .read = [file = std::move(file)](auto values) {
            constexpr double milli = 1e-3;
            const std::optional<double> celsius = number_in(file);
            values[0] = celsius ? *celsius * milli + freezing : unknown;
          }};
}

/// Returns sources for the temperature sensors that CPU drivers provide for CPU packages.
std::vector<Source> hwmon_sources(const fs::path& root) {
  constexpr std::string_view package = "Package id ";
  std::vector<Source> sources;
  for (const fs::path& chip : base::entries_of(root / "sys/class/hwmon", "hwmon")) {
    const std::string driver = line_in(chip / "name").value_or("");
    if (driver == "k10temp" || driver == "zenpower") {
      if (!number_in(chip / "temp1_input")) continue;
      sources.push_back(
          temperature_source(fmt::format("package {}", sources.size()), chip / "temp1_input"));
    }
    if (driver != "coretemp") continue;
    for (const fs::path& label : base::entries_of(chip, "temp")) {
      const std::string file = label.filename().string();
      const std::size_t end = file.find("_label");
      if (end == std::string::npos) continue;
      const std::string name = line_in(label).value_or("");
      const fs::path input = chip / (file.substr(0, end) + "_input");
      if (!name.starts_with(package) || !number_in(input)) continue;
      sources.push_back(temperature_source("package " + name.substr(package.size()), input));
    }
  }
  return sources;
}

std::vector<Source> zone_sources(const fs::path& root) {
  std::vector<Source> sources;
  for (const fs::path& zone : base::entries_of(root / "sys/class/thermal", "thermal_zone")) {
    const std::string type = line_in(zone / "type").value_or("");
    const bool is_cpu = type == "x86_pkg_temp" || type.starts_with("cpu");
    if (!is_cpu || !number_in(zone / "temp")) continue;
    sources.push_back(temperature_source(fmt::format("package {}", sources.size()), zone / "temp"));
  }
  return sources;
}

/// A counter of the kernel: its file, and the amount that one count stands for.
struct Counter {
  const char* file;
  const char* quantity;
  const char* unit;
  double scale;
};

constexpr double word = 4;  // bytes per count: InfiniBand counts data in words
constexpr Counter port_counters[]{{"port_xmit_data", "sent_bytes", "B", word},
                                  {"port_rcv_data", "received_bytes", "B", word},
                                  {"symbol_error", "symbol_errors", "1", 1},
                                  {"link_downed", "link_downed", "1", 1}};
constexpr Counter ethernet_counters[]{{"tx_bytes", "sent_bytes", "B", 1},
                                      {"rx_bytes", "received_bytes", "B", 1},
                                      {"tx_errors", "send_errors", "1", 1},
                                      {"rx_errors", "receive_errors", "1", 1}};

/// Adds one source with those `counters` that can be read in the folder; adds no source if none
/// can.
void add_counters(std::vector<Source>& sources, const std::string& device, const fs::path& folder,
                  std::span<const Counter> counters) {
  Source source;
  std::vector<std::pair<fs::path, double>> files;
  for (const Counter& counter : counters) {
    if (!number_in(folder / counter.file)) continue;
    source.channels.push_back(
        {.device = device, .quantity = counter.quantity, .unit = counter.unit});
    files.emplace_back(folder / counter.file, counter.scale);
  }
  if (files.empty()) return;
  source.read = [files = std::move(files)](std::span<double> values) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::optional<double> count = number_in(files[i].first);
      values[i] = count ? *count * files[i].second : unknown;
    }
  };
  sources.push_back(std::move(source));
}

std::vector<Source> cpu_clock_sources(const fs::path& root, const std::vector<int>& cpus) {
  if (std::vector<fs::path> files = cpu_files(root, cpus, "cpufreq/scaling_cur_freq");
      !files.empty()) {
    return {{.channels = clock_channels(), .read = [files = std::move(files)](auto values) {
               constexpr double kilohertz = 1e3;
               std::vector<double> clocks;
               for (const fs::path& file : files) {
                 if (const auto value = number_in(file)) clocks.push_back(*value * kilohertz);
               }
               put_mean_and_least(clocks, values);
             }}};
  }
  const std::string file = (root / "proc/cpuinfo").string();
  const std::optional<std::string> text = read_file(file);
  if (!text || clocks_in_cpuinfo(*text).empty()) return {};
  return {{.channels = clock_channels(), .read = [file, cpus](auto values) {
             std::vector<double> clocks;
             for (const auto& [cpu, clock] : clocks_in_cpuinfo(read_file(file).value_or(""))) {
               if (wanted(cpus, cpu)) clocks.push_back(clock);
             }
             put_mean_and_least(clocks, values);
           }}};
}

std::vector<Source> cpu_throttle_sources(const fs::path& root, const std::vector<int>& cpus) {
  std::vector<fs::path> files = cpu_files(root, cpus, "thermal_throttle/core_throttle_count");
  if (files.empty()) return {};
  return {{.channels = {{.device = "cpu", .quantity = "throttle_count", .unit = "1"}},
           .read = [files = std::move(files)](auto values) {
             values[0] = 0;
             for (const fs::path& file : files) values[0] += number_in(file).value_or(unknown);
           }}};
}

std::vector<Source> cpu_busy_sources(const fs::path& root, const std::vector<int>& cpus) {
  const std::string file = (root / "proc/stat").string();
  if (std::isnan(busy_time(read_file(file).value_or(""), cpus))) return {};
  return {{.channels = {{.device = "cpu", .quantity = "busy_time", .unit = "s"}},
           .read = [file, cpus](auto values) {
             values[0] = busy_time(read_file(file).value_or(""), cpus);
           }}};
}

std::vector<Source> energy_sources(const fs::path& root) {
  constexpr double micro = 1e-6;
  std::vector<Source> sources;
  for (const fs::path& zone : base::entries_of(root / "sys/class/powercap", "intel-rapl:")) {
    const std::optional<std::string> name = line_in(zone / "name");
    const std::optional<std::string> device = name ? energy_device(zone, *name) : std::nullopt;
    const std::optional<double> range = number_in(zone / "max_energy_range_uj");
    if (!device || !range || !number_in(zone / "energy_uj")) continue;
    sources.push_back({.channels = {{.device = *device, .quantity = "energy", .unit = "J"}},
                       .read = [counter = WrappingCounter{zone / "energy_uj", *range}](
                                   auto values) mutable { values[0] = counter.read() * micro; }});
  }
  return sources;
}

std::vector<Source> temperature_sources(const fs::path& root) {
  std::vector<Source> sources = hwmon_sources(root);
  return sources.empty() ? zone_sources(root) : sources;
}

std::vector<Source> network_sources(const fs::path& root) {
  std::vector<Source> sources;
  for (const fs::path& adapter : base::entries_of(root / "sys/class/infiniband")) {
    for (const fs::path& port : base::entries_of(adapter / "ports")) {
      // The file holds a text like "4: ACTIVE".
      const std::string state = line_in(port / "state").value_or("");
      if (!state.ends_with("ACTIVE")) continue;
      add_counters(sources,
                   fmt::format("{} port {}", adapter.filename().string(), port.filename().string()),
                   port / "counters", port_counters);
    }
  }
  for (const fs::path& device : base::entries_of(root / "sys/class/net")) {
    std::error_code failure;
    const bool real = fs::exists(device / "device", failure);  // bridges and loopback have no such
                                                               // folder
    if (!real || line_in(device / "operstate") != "up") continue;
    add_counters(sources, device.filename().string(), device / "statistics", ethernet_counters);
  }
  return sources;
}

using nvml::ask;
using nvml::Device;
using nvml::Functions;

/// A function that asks NVML for one value; it returns nullopt if NVML does not answer.
using Question = std::optional<double> (*)(const Functions&, Device);

std::optional<double> scaled(std::optional<unsigned long long> value, double scale) {
  return value ? std::optional{static_cast<double>(*value) * scale} : std::nullopt;
}

std::optional<double> temperature_of(const Functions& nvml, Device device) {
  const auto celsius = ask<unsigned>(nvml.temperature, device, nvml::gpu_temperature);
  return celsius ? std::optional{*celsius + freezing} : std::nullopt;
}
std::optional<double> utilisation_of(const Functions& nvml, Device device) {
  constexpr double percent = 0.01;
  const auto rates = ask<nvml::Utilisation>(nvml.utilisation, device);
  return rates ? std::optional{rates->gpu * percent} : std::nullopt;
}
template <int clock>
std::optional<double> clock_of(const Functions& nvml, Device device) {
  return nvml::ask_clock(nvml.clock_info, device, clock);
}
template <int error>
std::optional<double> errors_of(const Functions& nvml, Device device) {
  return scaled(ask<unsigned long long>(nvml.ecc_errors, device, error, nvml::aggregate_count), 1);
}
/// Returns the value of a field of NVML; nullopt if the field has no value of this type.
std::optional<unsigned long long> field_of(const Functions& nvml, Device device, unsigned field,
                                           unsigned scope, int type) {
  nvml::FieldValue asked{};
  asked.field = field;
  asked.scope = scope;
  if (nvml.field_values == nullptr || nvml.field_values(device, 1, &asked) != nvml::success ||
      asked.answer != nvml::success || asked.type != type) {
    return std::nullopt;
  }
  return asked.value;
}
template <unsigned field>
std::optional<double> nvlink_of(const Functions& nvml, Device device) {
  constexpr double kibi = 1024;
  return scaled(field_of(nvml, device, field, nvml::all_links, nvml::unsigned_long_long), kibi);
}
/// Returns the power in W. nvmlDeviceGetPowerUsage, which averages over a second since Ampere
/// (NVML's reference), is asked only if the driver lacks the field of the present power.
std::optional<double> power_of(const Functions& nvml, Device device) {
  const auto now = field_of(nvml, device, nvml::power_now, nvml::whole_gpu, nvml::unsigned_int);
  return now ? scaled(static_cast<unsigned>(*now), 1e-3)
             : nvml::ask_power(nvml.power_usage, device);
}

struct Quantity {
  const char* name;
  const char* unit;
  Question question;
};

constexpr std::array<Quantity, 11> quantities{{
    {"sm_clock", "Hz", clock_of<nvml::sm_clock>},
    {"memory_clock", "Hz", clock_of<nvml::memory_clock>},
    {"power", "W", power_of},
    {"energy", "J",
     [](const Functions& nvml, Device gpu) {
       return scaled(ask<unsigned long long>(nvml.total_energy, gpu), 1e-3);
     }},
    {"temperature", "K", temperature_of},
    {"utilisation", "1", utilisation_of},
    {"throttle_reasons", "1",
     [](const Functions& nvml, Device gpu) {
       return scaled(ask<unsigned long long>(nvml.clock_reasons, gpu), 1);
     }},
    {"ecc_corrected", "1", errors_of<nvml::corrected>},
    {"ecc_uncorrected", "1", errors_of<nvml::uncorrected>},
    {"nvlink_sent_bytes", "B", nvlink_of<nvml::nvlink_sent>},
    {"nvlink_received_bytes", "B", nvlink_of<nvml::nvlink_received>},
}};

}  // namespace

std::vector<Source> node_sources(const fs::path& root, const std::vector<int>& cpus) {
  std::vector<Source> all;
  for (const auto& sources : {cpu_clock_sources(root, cpus), cpu_throttle_sources(root, cpus),
                              cpu_busy_sources(root, cpus), energy_sources(root),
                              temperature_sources(root), network_sources(root)}) {
    all.insert(all.end(), sources.begin(), sources.end());
  }
  return all;
}

std::vector<Source> gpu_sources(const NvmlLibrary& library, std::string_view uuid,
                                std::span<const std::string_view> wanted) {
  const Functions* const functions = library.functions();
  const std::optional<Device> gpu =
      functions == nullptr ? std::nullopt : nvml::find_device(*functions, uuid);
  if (!gpu) return {};
  const auto index = ask<unsigned>(functions->index, *gpu);
  const std::string name = index ? fmt::format("gpu {}", *index) : "gpu";
  Source source;
  std::vector<Question> questions;
  for (const Quantity& quantity : quantities) {
    if (!wanted.empty() && std::ranges::find(wanted, quantity.name) == wanted.end()) continue;
    if (!quantity.question(*functions, *gpu)) continue;
    source.channels.push_back({.device = name, .quantity = quantity.name, .unit = quantity.unit});
    questions.push_back(quantity.question);
  }
  if (questions.empty()) return {};
  source.read = [functions, gpu = *gpu, questions = std::move(questions)](auto values) {
    for (std::size_t i = 0; i < questions.size(); ++i) {
      values[i] = questions[i](*functions, gpu).value_or(unknown);
    }
  };
  return {std::move(source)};
}

}  // namespace isoscale::machine
