// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/rules.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/text.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::preflight {
namespace {

/// The ranks that use each GPU, by the GPU's UUID.
using Takers = std::unordered_map<std::string, std::vector<const CheckedRank*>>;

/// Adds the GPUs that ranks use but about which no fact is known, so that rules count their facts
/// as unknown. Nodes whose GPUs are partitioned (MIG) are skipped: ranks there use MIG instances,
/// which are not in the list of GPUs.
void add_unseen(std::vector<JobGpu>& gpus, const JobFacts& job, const Takers& takers) {
  static const GpuFacts unseen;
  std::map<int, const CheckedNode*> nodes;
  for (const CheckedNode& node : job.nodes) nodes[node.node] = &node;
  std::unordered_map<std::string, bool> seen;
  for (const JobGpu& one : gpus) seen[one.gpu->uuid] = true;
  for (const CheckedRank& rank : job.ranks) {
    const auto node = nodes.find(rank.node);
    if (!rank.gpu || node == nodes.end() || !seen.emplace(*rank.gpu, true).second) continue;
    const bool has_mig = node->second->gpus &&
                         std::ranges::any_of(*node->second->gpus,
                                             [](const GpuFacts& gpu) { return gpu.mig == true; });
    if (has_mig) continue;
    gpus.push_back({.node = node->second,
                    .gpu = &unseen,
                    .index = static_cast<int>(node->second->gpus ? node->second->gpus->size() : 0),
                    .ranks = takers.at(*rank.gpu)});
  }
}

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
  const bool has_other_number =
      colon != std::string_view::npos && part.substr(colon + 1) != fmt::format("{}", port.port);
  if (has_other_number) return false;
  return list.is_whole ? port.device == device : port.device.starts_with(device);
}

/// True if `part`, an entry of NCCL_IB_HCA, is the port's adapter and number, or only its adapter.
/// Without a number it counts only for the adapter's port 1, since further ports may be unused.
bool names_in_full(std::string_view part, const CheckedPort& port) {
  return part == fmt::format("{}:{}", port.device, port.port) ||
         (port.port == 1 && part == port.device);
}

std::optional<std::string> value_in(const std::map<std::string, std::string>& values,
                                    const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional{found->second};
}

}  // namespace

Place JobGpu::place() const {
  return {.host = node->host, .device = fmt::format("GPU {} ({})", index, gpu->pci_bus_id)};
}

std::string NodeRanks::host() const {
  return facts != nullptr ? facts->host : fmt::format("node {}", node);
}

std::vector<JobGpu> job_gpus(const JobFacts& job) {
  std::vector<JobGpu> gpus;
  if (job.device != "cuda") return gpus;
  Takers ranks;
  for (const CheckedRank& rank : job.ranks) {
    if (rank.gpu) ranks[*rank.gpu].push_back(&rank);
  }
  for (const CheckedNode& node : job.nodes) {
    if (!node.gpus) continue;
    std::vector<JobGpu> here;
    for (const GpuFacts& gpu : *node.gpus) {
      const auto index = static_cast<int>(here.size());
      here.push_back({.node = &node, .gpu = &gpu, .index = index, .ranks = ranks[gpu.uuid]});
    }
    // GPUs of other jobs are left out. If any rank of the node reported its GPU, these are the GPUs
    // that no rank uses, else those that NVML does not list (they have no UUID).
    const auto is_taken = [](const JobGpu& one) { return !one.ranks.empty(); };
    const bool any_taken = std::ranges::any_of(here, is_taken);
    std::ranges::copy_if(here, std::back_inserter(gpus), [&](const JobGpu& one) {
      return any_taken ? is_taken(one) : !one.gpu->uuid.empty();
    });
  }
  add_unseen(gpus, job, ranks);
  std::ranges::stable_sort(gpus, {}, [](const JobGpu& one) { return one.node->node; });
  return gpus;
}

std::string no_gpus(const JobFacts& job, std::string_view source) {
  if (job.device == "host") return "the job runs on the host";
  return fmt::format("{} gives no information on the GPUs", source);
}

bool is_joined_by_c2c(const GpuFacts& gpu) {
  return gpu.name && (gpu.name->find("GH200") != std::string::npos ||
                      gpu.name->find("GB200") != std::string::npos ||
                      gpu.name->find("GB300") != std::string::npos);
}

std::string port_text(const CheckedPort& port) {
  return fmt::format("{} port {}", port.device, port.port);
}

bool is_up(const CheckedPort& port) { return port.state == "ACTIVE"; }

bool has_up_port(const CheckedNode& node) {
  return node.ports && std::ranges::any_of(*node.ports, is_up);
}

std::string bytes_text(double bytes) {
  return units::format(units::Bytes{static_cast<std::uint64_t>(bytes)});
}

std::string bit_rate_text(double rate) { return units::format_prefixed(rate, "bit/s"); }

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3, shown = 2;  // at most 3 names are all shown, of more only 2
  if (names.size() > most) return base::listed(names, shown);
  if (names.size() < 2) return base::listed(names);
  return fmt::format("{} and {}", base::listed(std::span{names}.first(names.size() - 1)),
                     names.back());
}

std::vector<NodeRanks> nodes_of_ranks(const JobFacts& job) {
  std::map<int, NodeRanks> nodes;
  for (const CheckedRank& rank : job.ranks) {
    NodeRanks& node = nodes[rank.node];
    node.node = rank.node;
    node.ranks.push_back(&rank);
  }
  for (const CheckedNode& node : job.nodes) {
    if (const auto found = nodes.find(node.node); found != nodes.end()) found->second.facts = &node;
  }
  std::vector<NodeRanks> in_order;
  for (auto& [index, node] : nodes) in_order.push_back(std::move(node));
  return in_order;
}

std::optional<std::string> version_of(const CheckedRank& rank, const std::string& key) {
  return value_in(rank.versions, key);
}

std::optional<std::string> setting(const CheckedRank& rank, const std::string& name) {
  return value_in(rank.environment, name);
}

std::vector<std::string> parts_of_list(std::string_view list) {
  std::vector<std::string> parts;
  for (const std::string_view part : base::split(list, ',')) {
    if (!base::trimmed(part).empty()) parts.emplace_back(base::trimmed(part));
  }
  return parts;
}

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

}  // namespace isoscale::preflight
