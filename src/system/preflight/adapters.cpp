// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "system/preflight/job_view.hpp"
#include "system/preflight/pci.hpp"
#include "system/preflight/settings.hpp"

namespace isoscale::system {
namespace {

constexpr std::array<std::string_view, 5> distances{"one switch", "several switches", "host bridge",
                                                    "NUMA node", "system"};

struct AdapterList {
  bool excludes = false, is_whole = false;
  std::vector<std::string> parts;
};
AdapterList parse(std::string_view list) {
  AdapterList parsed;
  parsed.excludes = list.starts_with('^');
  if (parsed.excludes) list.remove_prefix(1);
  parsed.is_whole = list.starts_with('=');
  if (parsed.is_whole) list.remove_prefix(1);
  parsed.parts = parts_of_list(list);
  return parsed;
}

bool fits(std::string_view part, const AdapterList& list, const CheckedPort& port) {
  const std::size_t colon = part.find(':');
  const std::string_view device = part.substr(0, colon);
  if (colon != std::string_view::npos && part.substr(colon + 1) != fmt::format("{}", port.port)) {
    return false;
  }
  return list.is_whole ? port.device == device : port.device.starts_with(device);
}

/// Further ports of an adapter that is named without a port may rest.
bool names_in_full(std::string_view part, const CheckedPort& port) {
  const std::size_t colon = part.find(':');
  if (part.substr(0, colon) != port.device) return false;
  return colon == std::string_view::npos ? port.port == 1
                                         : part.substr(colon + 1) == fmt::format("{}", port.port);
}

}  // namespace

Naming naming_of(std::string_view list, const CheckedPort& port) {
  const AdapterList parsed = parse(list);
  const bool is_listed = std::ranges::any_of(
      parsed.parts, [&](const std::string& part) { return fits(part, parsed, port); });
  if (parsed.parts.empty()) return Naming::usable;
  if (parsed.excludes) return is_listed ? Naming::left_out : Naming::usable;
  if (!is_listed) return Naming::left_out;
  const bool is_named = std::ranges::any_of(
      parsed.parts, [&](const std::string& part) { return names_in_full(part, port); });
  return is_named ? Naming::named : Naming::usable;
}

std::vector<std::string> unknown_adapters(std::string_view list, const CheckedNode& node) {
  AdapterList parsed = parse(list);
  if (parsed.excludes || !node.ports) return {};
  std::vector<std::string> unknown;
  for (const std::string& part : parsed.parts) {
    const bool is_there = std::ranges::any_of(
        *node.ports, [&](const CheckedPort& port) { return fits(part, parsed, port); });
    if (!is_there) unknown.push_back(part);
  }
  return unknown;
}

std::optional<std::size_t> distance_between(const CheckedGpu& gpu, const CheckedPort& port) {
  const auto closest = closest_on_paths(gpu.pci_path, gpu.numa_node, port.pci_path, port.numa_node);
  if (!closest) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find(distances, *closest) - distances.begin());
}

std::string_view distance_name(std::size_t distance) { return distances.at(distance); }

std::optional<Nearest> nearest_ports(const CheckedGpu& gpu, const CheckedNode& node) {
  if (!node.ports) return std::nullopt;
  std::optional<Nearest> nearest;
  for (const CheckedPort& port : *node.ports) {
    if (!is_up(port)) continue;
    const std::optional<std::size_t> distance = distance_between(gpu, port);
    if (!distance || (nearest && *distance > nearest->distance)) continue;
    if (!nearest || *distance < nearest->distance) nearest = Nearest{*distance, {}};
    nearest->ports.push_back(&port);
  }
  return nearest;
}

}  // namespace isoscale::system
