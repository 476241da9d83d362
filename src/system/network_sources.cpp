// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "base/folder.hpp"
#include "system/sample_files.hpp"
#include "system/sample_source.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

/// A counter's file and what one count of it is worth.
struct Counter {
  const char* file;
  const char* quantity;
  const char* unit;
  double scale;
};

constexpr double word = 4;  // bytes: what InfiniBand counts data in
constexpr Counter port_counters[]{{"port_xmit_data", "sent_bytes", "B", word},
                                  {"port_rcv_data", "received_bytes", "B", word},
                                  {"symbol_error", "symbol_errors", "1", 1},
                                  {"link_downed", "link_downed", "1", 1}};
constexpr Counter ethernet_counters[]{{"tx_bytes", "sent_bytes", "B", 1},
                                      {"rx_bytes", "received_bytes", "B", 1},
                                      {"tx_errors", "send_errors", "1", 1},
                                      {"rx_errors", "receive_errors", "1", 1}};

/// Those counters in a folder that can be read; nothing where none can.
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
      values[i] = count ? *count * files[i].second : std::numeric_limits<double>::quiet_NaN();
    }
  };
  sources.push_back(std::move(source));
}

}  // namespace

std::vector<Source> network_sources(const FileTree& tree) {
  std::vector<Source> sources;
  for (const fs::path& adapter : base::entries_of(tree.sys / "class/infiniband")) {
    for (const fs::path& port : base::entries_of(adapter / "ports")) {
      // "4: ACTIVE"
      const std::string state = line_in(port / "state").value_or("");
      if (!state.ends_with("ACTIVE")) continue;
      add_counters(sources,
                   fmt::format("{} port {}", adapter.filename().string(), port.filename().string()),
                   port / "counters", port_counters);
    }
  }
  for (const fs::path& device : base::entries_of(tree.sys / "class/net")) {
    std::error_code failure;
    const bool real = fs::exists(device / "device", failure);  // bridges and loopback have none
    if (!real || line_in(device / "operstate") != "up") continue;
    add_counters(sources, device.filename().string(), device / "statistics", ethernet_counters);
  }
  return sources;
}

}  // namespace isoscale::system
