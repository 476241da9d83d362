// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "system/cgroup.hpp"
#include "system/sample_files.hpp"
#include "system/sample_source.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_clocks = 16;  ///< a reading may interrupt the CPU that it is of

/// Calls `use` with each line of a text.
template <class Use>
void each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool wanted(const std::vector<int>& cpus, int cpu) {
  return cpus.empty() || std::ranges::find(cpus, cpu) != cpus.end();
}

/// Every n-th, such that no more are left than a look may cost.
std::vector<int> thinned(const std::vector<int>& cpus) {
  const std::size_t stride = (cpus.size() + most_clocks - 1) / most_clocks;
  std::vector<int> kept;
  for (std::size_t i = 0; i < cpus.size(); i += stride) kept.push_back(cpus[i]);
  return kept;
}

/// Hz by CPU, out of /proc/cpuinfo.
std::map<int, double> clocks_in_cpuinfo(std::string_view text) {
  constexpr double megahertz = 1e6;
  std::map<int, double> clocks;
  int cpu = -1;
  each_line(text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::optional<double> value = leading_number(line.substr(colon + 1));
    if (line.starts_with("processor") && value) cpu = static_cast<int>(*value);
    if (line.starts_with("cpu MHz") && value && *value > 0) clocks[cpu] = *value * megahertz;
  });
  return clocks;
}

/// Mean and least of what is known.
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

/// A file in the folders of those CPUs that have one; of many CPUs every n-th.
std::vector<fs::path> cpu_files(const FileTree& tree, const std::vector<int>& cpus,
                                const char* name) {
  const auto folder = [&](int cpu) {
    return tree.sys / fmt::format("devices/system/cpu/cpu{}", cpu);
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

/// Seconds that the wanted CPUs were busy since the system began, mean; NaN when it is not told.
double busy_time(std::string_view stat, const std::vector<int>& cpus) {
  // user nice system idle iowait irq softirq steal: guests' time is part of user's.
  constexpr std::size_t fields = 7, idle = 3, waiting = 4;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  double busy = 0;
  int found = 0;
  each_line(stat, [&](std::string_view line) {
    constexpr std::string_view prefix = "cpu";
    if (!line.starts_with(prefix) || line.starts_with("cpu ")) return;
    line.remove_prefix(prefix.size());
    const std::optional<double> cpu = leading_number(line);
    if (!cpu || !wanted(cpus, static_cast<int>(*cpu))) return;
    ++found;
    for (std::size_t field = 0; field < fields; ++field) {
      const std::size_t blank = line.find(' ');
      if (blank == std::string_view::npos) break;
      line.remove_prefix(blank + 1);
      if (field != idle && field != waiting) busy += leading_number(line).value_or(0);
    }
  });
  return found == 0 ? unknown : busy / ticks / found;
}

}  // namespace

std::vector<Source> cpu_clock_sources(const FileTree& tree, const std::vector<int>& cpus) {
  if (std::vector<fs::path> files = cpu_files(tree, cpus, "cpufreq/scaling_cur_freq");
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
  const std::string file = (tree.proc / "cpuinfo").string();
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

std::vector<Source> cpu_throttle_sources(const FileTree& tree, const std::vector<int>& cpus) {
  std::vector<fs::path> files = cpu_files(tree, cpus, "thermal_throttle/core_throttle_count");
  if (files.empty()) return {};
  return {{.channels = {{.device = "cpu", .quantity = "throttle_count", .unit = "1"}},
           .read = [files = std::move(files)](auto values) {
             values[0] = 0;
             for (const fs::path& file : files) values[0] += number_in(file).value_or(unknown);
           }}};
}

std::vector<Source> cpu_busy_sources(const FileTree& tree, const std::vector<int>& cpus) {
  const std::string file = (tree.proc / "stat").string();
  if (std::isnan(busy_time(read_file(file).value_or(""), cpus))) return {};
  return {{.channels = {{.device = "cpu", .quantity = "busy_time", .unit = "s"}},
           .read = [file, cpus](auto values) {
             values[0] = busy_time(read_file(file).value_or(""), cpus);
           }}};
}

}  // namespace isoscale::system
