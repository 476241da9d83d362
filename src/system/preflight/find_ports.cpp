// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/folder.hpp"
#include "system/preflight/node_settings.hpp"
#include "system/preflight/pci.hpp"
#include "system/sample_files.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view adapters_folder = "sys/class/infiniband";

/// "ACTIVE" of "4: ACTIVE".
std::optional<std::string> state_in(const fs::path& file) {
  std::optional<std::string> line = line_in(file);
  if (!line) return std::nullopt;
  const std::size_t colon = line->find(": ");
  if (colon != std::string::npos) line->erase(0, colon + 2);
  return line;
}

/// 400e9 of "400 Gb/sec (4X NDR)".
std::optional<double> rate_in(const fs::path& file) {
  constexpr double giga = 1e9;
  const std::optional<std::string> line = line_in(file);
  if (!line || line->find(" Gb/sec") == std::string::npos) return std::nullopt;
  const std::optional<double> rate = leading_number(*line);
  return rate ? std::optional{*rate * giga} : std::nullopt;
}

std::optional<std::int64_t> count_in(const fs::path& file) {
  const std::optional<double> count = number_in(file);
  return count ? std::optional{static_cast<std::int64_t>(*count)} : std::nullopt;
}

CheckedPort read_port(std::string device, const fs::path& folder, const PciFacts& pci) {
  CheckedPort port;
  port.device = std::move(device);
  port.link_layer = line_in(folder / "link_layer");
  port.state = state_in(folder / "state");
  port.physical_state = state_in(folder / "phys_state");
  port.rate = rate_in(folder / "rate");
  port.link_downed = count_in(folder / "counters/link_downed");
  port.symbol_errors = count_in(folder / "counters/symbol_error");
  port.pcie_generation = pci.generation;
  port.pcie_generation_max = pci.generation_max;
  port.pcie_width = pci.width;
  port.pcie_width_max = pci.width_max;
  port.numa_node = pci.numa_node;
  port.pci_path = pci.path;
  return port;
}

}  // namespace

std::optional<std::vector<CheckedPort>> find_ports(const fs::path& root) {
  std::error_code failure;
  // A kernel without the subsystem has no such folder in a class folder that it does have.
  if (!fs::is_directory(root / "sys/class", failure)) return std::nullopt;
  std::vector<CheckedPort> ports;
  for (const fs::path& adapter : base::entries_of(root / adapters_folder)) {
    const PciFacts pci = pci_facts(adapter / "device");
    for (const fs::path& folder : base::entries_of(adapter / "ports")) {
      const std::string number = folder.filename().string();
      CheckedPort port = read_port(adapter.filename().string(), folder, pci);
      const auto parsed =
          std::from_chars(number.data(), number.data() + number.size(), port.port).ec;
      if (parsed == std::errc{}) ports.push_back(std::move(port));
    }
  }
  std::ranges::stable_sort(ports, [](const CheckedPort& a, const CheckedPort& b) {
    return std::pair{a.device, a.port} < std::pair{b.device, b.port};
  });
  return ports;
}

std::vector<fs::path> adapter_functions(const fs::path& root) {
  std::vector<fs::path> functions;
  for (const fs::path& adapter : base::entries_of(root / adapters_folder)) {
    functions.push_back(adapter / "device");
  }
  return functions;
}

}  // namespace isoscale::system
