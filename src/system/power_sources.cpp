// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/folder.hpp"
#include "system/sample_files.hpp"
#include "system/sample_source.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A register that counts up to a limit and then starts anew, as one that never does.
class WrappingCounter {
 public:
  WrappingCounter(fs::path file, double range) : file_(std::move(file)), range_(range) {}

  /// What was counted since the first reading; NaN when the file cannot be read now.
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

/// "package-0" -> "package 0"; a zone within another one takes its number from that.
std::optional<std::string> energy_device(const fs::path& zone, const std::string& name) {
  constexpr std::string_view package = "package-", memory = "dram";
  if (name.starts_with(package)) return "package " + name.substr(package.size());
  if (name != memory) return std::nullopt;  // core and uncore are in a package; psys has it all
  const std::string id = zone.filename().string();  // intel-rapl:0:1
  const std::size_t first = id.find(':');
  return fmt::format("{} {}", memory, id.substr(first + 1, id.find(':', first + 1) - first - 1));
}

Source temperature_source(std::string device, fs::path file) {
  return {.channels = {{.device = std::move(device), .quantity = "temperature", .unit = "K"}},
          .read = [file = std::move(file)](auto values) {
            constexpr double milli = 1e-3, freezing = 273.15;
            const std::optional<double> celsius = number_in(file);
            values[0] = celsius ? *celsius * milli + freezing : unknown;
          }};
}

/// The sensors of packages that drivers of CPUs give.
std::vector<Source> hwmon_sources(const FileTree& tree) {
  constexpr std::string_view package = "Package id ";
  std::vector<Source> sources;
  for (const fs::path& chip : base::entries_of(tree.sys / "class/hwmon", "hwmon")) {
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

std::vector<Source> zone_sources(const FileTree& tree) {
  std::vector<Source> sources;
  for (const fs::path& zone : base::entries_of(tree.sys / "class/thermal", "thermal_zone")) {
    const std::string type = line_in(zone / "type").value_or("");
    const bool is_cpu = type == "x86_pkg_temp" || type.starts_with("cpu");
    if (!is_cpu || !number_in(zone / "temp")) continue;
    sources.push_back(temperature_source(fmt::format("package {}", sources.size()), zone / "temp"));
  }
  return sources;
}

}  // namespace

std::vector<Source> energy_sources(const FileTree& tree) {
  constexpr double micro = 1e-6;
  std::vector<Source> sources;
  for (const fs::path& zone : base::entries_of(tree.sys / "class/powercap", "intel-rapl:")) {
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

std::vector<Source> temperature_sources(const FileTree& tree) {
  std::vector<Source> sources = hwmon_sources(tree);
  return sources.empty() ? zone_sources(tree) : sources;
}

}  // namespace isoscale::system
