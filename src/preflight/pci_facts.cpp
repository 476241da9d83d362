// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/collect_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "machine/procfs_and_cgroups.hpp"

namespace isoscale::preflight {
namespace {

namespace fs = std::filesystem;
using machine::number_in;
using machine::read_file;

/// Returns the number of lanes in a link's file. The kernel writes 0 or 255 if it is unknown; the
/// result is then nullopt.
std::optional<int> lanes_in(const fs::path& file) {
  constexpr int unknown = 255;
  const std::optional<double> lanes = number_in(file);
  if (!lanes || *lanes < 1 || *lanes >= unknown) return std::nullopt;
  return static_cast<int>(*lanes);
}

/// Returns the PCIe generation that has the speed in a link's file: 5 for "32.0 GT/s PCIe"; nullopt
/// if no generation has it.
std::optional<int> generation_in(const fs::path& file) {
  constexpr std::array<double, 6> speeds{2.5, 5, 8, 16, 32, 64};  // GT/s
  const std::optional<double> speed = number_in(file);
  const auto* const found = speed ? std::ranges::find(speeds, *speed) : speeds.end();
  if (found == speeds.end()) return std::nullopt;
  return static_cast<int>(found - speeds.begin()) + 1;
}

/// Returns the folder's path with all symbolic links resolved; nullopt if that fails.
std::optional<fs::path> real_folder(const fs::path& function) {
  std::error_code failure;
  fs::path folder = fs::canonical(function, failure);
  return failure ? std::nullopt : std::optional{std::move(folder)};
}

std::optional<std::string> path_of(const fs::path& function) {
  constexpr std::string_view devices = "/devices/", bus = "pci";
  const std::optional<fs::path> folder = real_folder(function);
  if (!folder) return std::nullopt;
  const std::string text = folder->string();
  const std::size_t begin = text.rfind(devices);
  if (begin == std::string::npos) return std::nullopt;
  // On Arm the folder of a host bridge may lie inside that of a platform device. So the path to
  // return begins at the first PCI bus.
  std::size_t at = begin + devices.size();
  while (text.compare(at, bus.size(), bus) != 0) {
    at = text.find('/', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  return text.substr(at);
}

/// True if `name` looks like the bus id of a PCI function: "0000:16:00.0".
bool is_bus_id(std::string_view name) {
  return name.find(':') != std::string_view::npos && name.find('.') != std::string_view::npos;
}

/// Returns the little-endian number in `bytes` bytes of the configuration space, from `offset` on.
std::uint32_t number_at(std::string_view configuration, std::size_t offset, std::size_t bytes) {
  constexpr unsigned bits = 8;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(configuration[offset + i]))
             << (bits * i);
  }
  return value;
}

constexpr std::size_t conventional_size = 256, configuration_size = 4096;

/// True if the configuration space is that of a switch's downstream port: the PCI Express
/// capability has device/port type 6.
bool is_downstream_port(std::string_view configuration) {
  // The offset that leads to the list of capabilities, and the greatest length of this list.
  constexpr std::size_t first = 0x34, capabilities = 48;
  constexpr std::uint32_t express = 0x10, downstream_port = 6;
  std::size_t at = number_at(configuration, first, 1) & 0xFCU;
  for (std::size_t i = 0; i < capabilities && at != 0 && at + 4 <= conventional_size; ++i) {
    if (number_at(configuration, at, 1) == express) {
      return ((number_at(configuration, at + 2, 2) >> 4U) & 0xFU) == downstream_port;
    }
    at = number_at(configuration, at + 1, 1) & 0xFCU;
  }
  return false;
}

/// Returns the control register of a function's Access Control Services; 0 if the function has
/// none.
std::uint32_t access_control(std::string_view configuration) {
  constexpr std::uint32_t services = 0x0D, none = 0xFFFF;  // ids of extended capabilities
  constexpr std::size_t capabilities = 480, control = 6, header = 4;
  std::size_t at = conventional_size;
  for (std::size_t i = 0; i < capabilities; ++i) {
    if (at < conventional_size || at + control + 2 > configuration_size) return 0;
    const std::uint32_t id = number_at(configuration, at, 2);
    if (id == services) return number_at(configuration, at + control, 2);
    if (id == 0 || id == none) return 0;
    at = (number_at(configuration, at, header) >> 20U) & 0xFFCU;
  }
  return 0;
}

}  // namespace

machine::PciFacts pci_facts(const fs::path& function) {
  machine::PciFacts facts;
  facts.pcie_generation = generation_in(function / "current_link_speed");
  facts.pcie_generation_max = generation_in(function / "max_link_speed");
  facts.pcie_width = lanes_in(function / "current_link_width");
  facts.pcie_width_max = lanes_in(function / "max_link_width");
  const std::optional<double> node = number_in(function / "numa_node");
  if (node && *node >= 0) facts.numa_node = static_cast<int>(*node);  // -1: unknown
  facts.pci_path = path_of(function);
  return facts;
}

std::string_view name(PciDistance distance) {
  constexpr std::array<std::string_view, 5> names{"one switch", "several switches", "host bridge",
                                                  "NUMA node", "system"};
  return names[static_cast<std::size_t>(distance)];
}

std::optional<PciDistance> distance_between(const machine::PciFacts& a,
                                            const machine::PciFacts& b) {
  if (!a.pci_path || !b.pci_path) return std::nullopt;
  const std::vector<std::string_view> path_a = base::split(*a.pci_path, '/'),
                                      path_b = base::split(*b.pci_path, '/');
  const auto [end_a, end_b] = std::ranges::mismatch(path_a, path_b);
  const auto shared = end_a - path_a.begin();
  if (shared == 0) {
    if (!a.numa_node || !b.numa_node) return std::nullopt;
    return *a.numa_node == *b.numa_node ? PciDistance::numa_node : PciDistance::system;
  }
  if (shared == 1) return PciDistance::host_bridge;
  // If one switch joins both functions, each path has at most two parts below the part that they
  // share: the switch's downstream port, and the function itself.
  const auto below = std::max(path_a.end() - end_a, path_b.end() - end_b);
  return below <= 2 ? PciDistance::one_switch : PciDistance::several_switches;
}

std::optional<bool> redirects_peers(std::string_view configuration) {
  constexpr std::uint32_t request_redirect = 1U << 2U, completion_redirect = 1U << 3U;
  if (configuration.size() < configuration_size) return std::nullopt;
  return is_downstream_port(configuration) &&
         (access_control(configuration) & (request_redirect | completion_redirect)) != 0;
}

std::optional<bool> bridges_redirect_peers(std::span<const fs::path> functions) {
  std::set<fs::path> bridges;
  for (const fs::path& function : functions) {
    const std::optional<fs::path> folder = real_folder(function);
    if (!folder) continue;
    for (fs::path at = folder->parent_path(); is_bus_id(at.filename().string());
         at = at.parent_path()) {
      bridges.insert(at);
    }
  }
  bool all_known = !bridges.empty();
  for (const fs::path& bridge : bridges) {
    const std::optional<std::string> configuration = read_file((bridge / "config").string());
    const auto redirects = configuration ? redirects_peers(*configuration) : std::nullopt;
    if (redirects == true) return true;
    all_known = all_known && redirects.has_value();
  }
  return all_known ? std::optional{false} : std::nullopt;
}

}  // namespace isoscale::preflight
