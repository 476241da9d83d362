// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/node_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/folder.hpp"
#include "system/preflight/pci.hpp"
#include "system/sample_files.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

/// A whole number that the text begins with, taken off it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The number at the end of "node12", "cpu3"; nullopt for other names.
std::optional<int> number_after(std::string_view prefix, const fs::path& folder) {
  const std::string name = folder.filename().string();
  std::string_view rest = std::string_view{name}.substr(std::min(prefix.size(), name.size()));
  const std::optional<int> number = take_number(rest);
  return rest.empty() ? number : std::nullopt;
}

/// CPUs by what a file of theirs says.
std::optional<std::map<std::string, int>> cpus_by(const fs::path& root, const char* file) {
  std::map<std::string, int> cpus;
  for (const fs::path& cpu : base::entries_of(root / "sys/devices/system/cpu", "cpu")) {
    if (!number_after("cpu", cpu)) continue;
    if (const auto value = line_in(cpu / file)) ++cpus[*value];
  }
  return cpus.empty() ? std::nullopt : std::optional{std::move(cpus)};
}

bool is_folder(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure);
}

/// Kinds of the IOMMU groups.
std::vector<std::string> group_types(const fs::path& root, const std::vector<fs::path>& functions) {
  std::vector<std::string> types;
  for (const fs::path& function : functions) {
    if (auto type = iommu_group_type(function)) types.push_back(*std::move(type));
  }
  if (!types.empty()) return types;
  for (const fs::path& group : base::entries_of(root / "sys/kernel/iommu_groups")) {
    if (auto type = line_in(group / "type")) types.push_back(*std::move(type));
  }
  return types;
}

/// Whether the kernel was told to leave addresses as they are.
bool passthrough_asked(const fs::path& root) {
  const std::string line = fmt::format(" {} ", line_in(root / "proc/cmdline").value_or(""));
  return line.find(" iommu=pt ") != std::string::npos ||
         line.find(" iommu.passthrough=1 ") != std::string::npos;
}

}  // namespace

std::optional<std::vector<int>> cpu_list(std::string_view text) {
  constexpr int most = 1 << 16;
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::optional<int> first = take_number(text);
    std::optional<int> last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
    }
    if (!first || !last || *last < *first || *last >= most) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (text.empty()) break;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
  return cpus;
}

std::map<std::string, std::vector<int>> numa_cpus(const fs::path& root) {
  std::map<std::string, std::vector<int>> by_node;
  for (const fs::path& folder : base::entries_of(root / "sys/devices/system/node", "node")) {
    const std::optional<int> node = number_after("node", folder);
    const std::optional<std::string> line = line_in(folder / "cpulist");
    if (!node || !line) continue;
    if (auto cpus = cpu_list(*line)) by_node[std::to_string(*node)] = *std::move(cpus);
  }
  return by_node;
}

std::optional<std::map<std::string, int>> governors(const fs::path& root) {
  return cpus_by(root, "cpufreq/scaling_governor");
}

std::optional<std::string> frequency_driver(const fs::path& root) {
  const auto drivers = cpus_by(root, "cpufreq/scaling_driver");
  return drivers ? std::optional{drivers->begin()->first} : std::nullopt;
}

std::optional<std::map<std::string, int>> energy_preferences(const fs::path& root) {
  return cpus_by(root, "cpufreq/energy_performance_preference");
}

std::optional<bool> iommu_translates(const fs::path& root, const std::vector<fs::path>& functions) {
  const std::vector<std::string> types = group_types(root, functions);
  if (!types.empty()) {
    return std::ranges::any_of(types,
                               [](const std::string& type) { return type.starts_with("DMA"); });
  }
  // Kernels before 5.11 do not tell the kind of a group.
  const fs::path units = root / "sys/class/iommu";
  const bool none = is_folder(units) && base::entries_of(units).empty();
  return none || passthrough_asked(root) ? std::optional{false} : std::nullopt;
}

std::optional<bool> has_module(const fs::path& root,
                               std::initializer_list<std::string_view> names) {
  const fs::path modules = root / "sys/module";
  if (!is_folder(modules)) return std::nullopt;
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return is_folder(modules / name); });
}

std::optional<bool> has_dmabuf(const fs::path& root) {
  constexpr std::pair first_kernel{5, 12};
  const std::optional<std::string> driver = line_in(root / "proc/driver/nvidia/version");
  const std::optional<std::string> release = line_in(root / "proc/sys/kernel/osrelease");
  if (!driver || !release) return std::nullopt;
  std::string_view rest = *release;
  const std::optional<int> major = take_number(rest);
  if (!major || !rest.starts_with('.')) return std::nullopt;
  rest.remove_prefix(1);
  const std::optional<int> minor = take_number(rest);
  if (!minor) return std::nullopt;
  return std::pair{*major, *minor} >= first_kernel &&
         driver->find("Open Kernel Module") != std::string::npos;
}

fs::path below(const fs::path& root, const fs::path& file) {
  return file.is_absolute() ? root / file.relative_path() : file;
}

}  // namespace isoscale::system
