// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/job_facts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::preflight {
namespace {

// The fields of job facts are listed here by name, once for both writing and reading:
// fields(&facts, visit) calls visit(name, pointer to member) for each.

template <class Visit>
void fields(const CheckedGpu*, Visit visit) {
  visit("uuid", &CheckedGpu::uuid);
  visit("pci_bus_id", &CheckedGpu::pci_bus_id);
  visit("name", &CheckedGpu::name);
  visit("driver", &CheckedGpu::driver);
  visit("vbios", &CheckedGpu::vbios);
  visit("compute_mode", &CheckedGpu::compute_mode);
  visit("memory", &CheckedGpu::memory);
  visit("memory_used", &CheckedGpu::memory_used);
  visit("sm_clock", &CheckedGpu::sm_clock);
  visit("sm_clock_max", &CheckedGpu::sm_clock_max);
  visit("sm_clock_application", &CheckedGpu::sm_clock_application);
  visit("memory_clock_max", &CheckedGpu::memory_clock_max);
  visit("power_limit", &CheckedGpu::power_limit);
  visit("power_limit_default", &CheckedGpu::power_limit_default);
  visit("throttle_reasons", &CheckedGpu::throttle_reasons);
  visit("ecc", &CheckedGpu::ecc);
  visit("mig", &CheckedGpu::mig);
  visit("persistence", &CheckedGpu::persistence);
  visit("ecc_uncorrected", &CheckedGpu::ecc_uncorrected);
  visit("remapped_rows", &CheckedGpu::remapped_rows);
  visit("remap_pending", &CheckedGpu::remap_pending);
  visit("remap_failed", &CheckedGpu::remap_failed);
  visit("retired_pages", &CheckedGpu::retired_pages);
  visit("xids", &CheckedGpu::xids);
  visit("processes", &CheckedGpu::processes);
  visit("nvlinks_active", &CheckedGpu::nvlinks_active);
  visit("nvlinks_inactive", &CheckedGpu::nvlinks_inactive);
  visit("nvlink_peers", &CheckedGpu::nvlink_peers);
  visit("fabric", &CheckedGpu::fabric);
  visit("fabric_state", &CheckedGpu::fabric_state);
  visit("pcie_generation", &CheckedGpu::pcie_generation);
  visit("pcie_generation_max", &CheckedGpu::pcie_generation_max);
  visit("pcie_width", &CheckedGpu::pcie_width);
  visit("pcie_width_max", &CheckedGpu::pcie_width_max);
  visit("numa_node", &CheckedGpu::numa_node);
  visit("pci_path", &CheckedGpu::pci_path);
}

template <class Visit>
void fields(const CheckedPeers*, Visit visit) {
  visit("i", &CheckedPeers::i);
  visit("j", &CheckedPeers::j);
  visit("peer_access", &CheckedPeers::peer_access);
  visit("link", &CheckedPeers::link);
}

template <class Visit>
void fields(const CheckedPort*, Visit visit) {
  visit("device", &CheckedPort::device);
  visit("port", &CheckedPort::port);
  visit("link_layer", &CheckedPort::link_layer);
  visit("state", &CheckedPort::state);
  visit("physical_state", &CheckedPort::physical_state);
  visit("rate", &CheckedPort::rate);
  visit("link_downed", &CheckedPort::link_downed);
  visit("symbol_errors", &CheckedPort::symbol_errors);
  visit("pcie_generation", &CheckedPort::pcie_generation);
  visit("pcie_generation_max", &CheckedPort::pcie_generation_max);
  visit("pcie_width", &CheckedPort::pcie_width);
  visit("pcie_width_max", &CheckedPort::pcie_width_max);
  visit("numa_node", &CheckedPort::numa_node);
  visit("pci_path", &CheckedPort::pci_path);
}

template <class Visit>
void fields(const CheckedNode*, Visit visit) {
  visit("node", &CheckedNode::node);
  visit("host", &CheckedNode::host);
  visit("cpu_model", &CheckedNode::cpu_model);
  visit("os", &CheckedNode::os);
  visit("cores", &CheckedNode::cores);
  visit("cpu_quota", &CheckedNode::cpu_quota);
  visit("memory", &CheckedNode::memory);
  visit("shm_size", &CheckedNode::shm_size);
  visit("shm_free", &CheckedNode::shm_free);
  visit("numa_cpus", &CheckedNode::numa_cpus);
  visit("governors", &CheckedNode::governors);
  visit("frequency_driver", &CheckedNode::frequency_driver);
  visit("energy_preferences", &CheckedNode::energy_preferences);
  visit("iommu_translates", &CheckedNode::iommu_translates);
  visit("acs", &CheckedNode::acs);
  visit("nvidia_peermem", &CheckedNode::nvidia_peermem);
  visit("gdrcopy", &CheckedNode::gdrcopy);
  visit("dmabuf", &CheckedNode::dmabuf);
  visit("nccl_plugins", &CheckedNode::nccl_plugins);
  visit("gpus", &CheckedNode::gpus);
  visit("gpus_lost", &CheckedNode::gpus_lost);
  visit("peers", &CheckedNode::peers);
  visit("ports", &CheckedNode::ports);
}

template <class Visit>
void fields(const CheckedNeighbour*, Visit visit) {
  visit("rank", &CheckedNeighbour::rank);
  visit("bandwidth", &CheckedNeighbour::bandwidth);
}

template <class Visit>
void fields(const CheckedRank*, Visit visit) {
  visit("rank", &CheckedRank::rank);
  visit("node", &CheckedRank::node);
  visit("local_rank", &CheckedRank::local_rank);
  visit("pid", &CheckedRank::pid);
  visit("cpus", &CheckedRank::cpus);
  visit("cores", &CheckedRank::cores);
  visit("gpu", &CheckedRank::gpu);
  visit("visible_gpus", &CheckedRank::visible_gpus);
  visit("blas_threads", &CheckedRank::blas_threads);
  visit("locked_memory_limit", &CheckedRank::locked_memory_limit);
  visit("locked_memory_unlimited", &CheckedRank::locked_memory_unlimited);
  visit("versions", &CheckedRank::versions);
  visit("environment", &CheckedRank::environment);
  visit("missing_files", &CheckedRank::missing_files);
  visit("launcher", &CheckedRank::launcher);
  visit("gemm_rate", &CheckedRank::gemm_rate);
  visit("neighbours", &CheckedRank::neighbours);
}

template <class Visit>
void fields(const JobFacts*, Visit visit) {
  visit("device", &JobFacts::device);
  visit("share_gpu", &JobFacts::share_gpu);
  visit("world", &JobFacts::world);
  visit("device_problem", &JobFacts::device_problem);
  visit("device_reason", &JobFacts::device_reason);
  visit("sniff_skipped", &JobFacts::sniff_skipped);
  visit("nodes", &JobFacts::nodes);
  visit("ranks", &JobFacts::ranks);
}

using nlohmann::json;

template <class T>
concept Struct = requires(const T* facts) { fields(facts, [](const char*, auto) {}); };

// There is one overload for each kind of field; null means absent.

json json_of(const std::string& value) { return value; }
json json_of(bool value) { return value; }  // NOLINT: the value itself
json json_of(int value) { return value; }
json json_of(std::int64_t value) { return value; }
json json_of(double value) { return std::isfinite(value) ? json(value) : json(); }

template <class T>
json json_of(const std::optional<T>& value);
template <class T>
json json_of(const std::vector<T>& values);
template <class T>
json json_of(const std::map<std::string, T>& values);

/// Writes a struct of facts. Fields that have their default value are left out.
template <Struct T>
json json_of(const T& facts) {
  json object = json::object();
  const T untold;
  fields(&facts, [&](const char* key, auto member) {
    json value = json_of(facts.*member);
    if (value != json_of(untold.*member)) object[key] = std::move(value);
  });
  return object;
}

template <class T>
json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : json();
}

template <class T>
json json_of(const std::vector<T>& values) {
  json array = json::array();
  for (const T& value : values) array.push_back(json_of(value));
  return array;
}

template <class T>
json json_of(const std::map<std::string, T>& values) {
  json object = json::object();
  for (const auto& [key, value] : values) object[key] = json_of(value);
  return object;
}

[[noreturn]] void refuse(const std::string& where, const std::string& problem) {
  throw base::Error(fmt::format("job facts{}{}: {}", where.empty() ? "" : ", ", where, problem));
}

std::string path_of(const std::string& where, std::string_view key) {
  return where.empty() ? std::string{key} : fmt::format("{}.{}", where, key);
}

void read(std::string& value, const json& from, const std::string& where) {
  if (!from.is_string()) refuse(where, "a text is expected");
  value = from.get<std::string>();
}

void read(bool& value, const json& from, const std::string& where) {
  if (!from.is_boolean()) refuse(where, "true or false is expected");
  value = from.get<bool>();
}

void read(double& value, const json& from, const std::string& where) {
  if (!from.is_number()) refuse(where, "a number is expected");
  value = from.get<double>();
}

template <std::signed_integral T>
void read(T& value, const json& from, const std::string& where) {
  const auto fits = [](auto number) { return std::in_range<T>(number); };
  const bool whole = from.is_number_unsigned()
                         ? fits(from.get<std::uint64_t>())
                         : from.is_number_integer() && fits(from.get<std::int64_t>());
  if (!whole) refuse(where, "a whole number is expected");
  value = from.get<T>();
}

template <class T>
void read(std::optional<T>& value, const json& from, const std::string& where);
template <class T>
void read(std::vector<T>& values, const json& from, const std::string& where);
template <class T>
void read(std::map<std::string, T>& values, const json& from, const std::string& where);

template <Struct T>
void read(T& facts, const json& from, const std::string& where) {
  if (!from.is_object()) refuse(where, "an object is expected");
  std::vector<std::string_view> names;
  fields(&facts, [&](const char* key, auto member) {
    names.emplace_back(key);
    if (from.contains(key)) read(facts.*member, from.at(key), path_of(where, key));
  });
  for (const auto& item : from.items()) {
    if (std::ranges::find(names, item.key()) != names.end()) continue;
    refuse(where, fmt::format("there is no field {}{}", base::quoted(item.key()),
                              base::did_you_mean(item.key(), names)));
  }
}

template <class T>
void read(std::optional<T>& value, const json& from, const std::string& where) {
  read(value.emplace(), from, where);
}

template <class T>
void read(std::vector<T>& values, const json& from, const std::string& where) {
  if (!from.is_array()) refuse(where, "an array is expected");
  values.clear();
  for (std::size_t i = 0; i < from.size(); ++i) {
    read(values.emplace_back(), from[i], fmt::format("{}[{}]", where, i));
  }
}

template <class T>
void read(std::map<std::string, T>& values, const json& from, const std::string& where) {
  if (!from.is_object()) refuse(where, "an object is expected");
  values.clear();
  for (const auto& item : from.items()) {
    read(values[item.key()], item.value(), path_of(where, base::printable(item.key())));
  }
}

bool is_same(const CheckedGpu& a, const CheckedGpu& b) {
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  return !a.pci_bus_id.empty() && a.pci_bus_id == b.pci_bus_id;
}

/// Adds the facts of a GPU that another rank of the node reported. They replace the facts of a GPU
/// that was known only from the PCI bus, except for its Xids, which only the node's first rank
/// reads from the kernel's log.
void add_gpu(CheckedNode& node, CheckedGpu seen) {
  if (!node.gpus) node.gpus.emplace();
  const auto known =
      std::ranges::find_if(*node.gpus, [&](const CheckedGpu& gpu) { return is_same(gpu, seen); });
  if (known == node.gpus->end()) {
    node.gpus->push_back(std::move(seen));
  } else if (known->uuid.empty()) {
    if (!seen.xids) seen.xids = std::move(known->xids);
    *known = std::move(seen);
  }
}

/// Marks the pairs of GPUs that NVLinks join. This needs the facts of both GPUs of a pair.
void find_nvlinks(CheckedNode& node) {
  if (!node.gpus) return;
  for (CheckedPeers& peers : node.peers) {
    const auto i = static_cast<std::size_t>(peers.i), j = static_cast<std::size_t>(peers.j);
    if (i >= node.gpus->size() || j >= node.gpus->size()) continue;
    if (joined_by_nvlinks((*node.gpus)[i], (*node.gpus)[j])) peers.link = "NVLink";
  }
}

std::vector<CheckedNode> merge_nodes(std::vector<CheckedNode> told) {
  std::map<int, CheckedNode> nodes;
  for (CheckedNode& node : told) {
    const int index = node.node;
    const auto known = nodes.find(index);
    if (known == nodes.end()) {
      nodes.emplace(index, std::move(node));
      continue;
    }
    for (CheckedGpu& gpu : node.gpus.value_or(std::vector<CheckedGpu>{})) {
      add_gpu(known->second, std::move(gpu));
    }
  }
  std::vector<CheckedNode> in_order;
  for (auto& [index, node] : nodes) {
    find_nvlinks(node);
    in_order.push_back(std::move(node));
  }
  return in_order;
}

}  // namespace

bool joined_by_nvlinks(const CheckedGpu& a, const CheckedGpu& b) {
  if (!a.nvlink_peers || !b.nvlink_peers) return false;
  return std::ranges::any_of(*a.nvlink_peers, [&](const std::string& peer) {
    return peer == b.pci_bus_id ||
           std::ranges::find(*b.nvlink_peers, peer) != b.nvlink_peers->end();
  });
}

std::string to_json(const JobFacts& facts) {
  return json_of(facts).dump(-1, ' ', false, json::error_handler_t::replace);
}

JobFacts job_facts_from_json(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) refuse("", "this is not JSON");
  JobFacts facts;
  read(facts, parsed, "");
  return facts;
}

JobFacts merge(std::vector<JobFacts> parts) {
  if (parts.empty()) return {};
  std::vector<CheckedNode> nodes;
  std::vector<CheckedRank> ranks;
  for (JobFacts& part : parts) {
    std::ranges::move(part.nodes, std::back_inserter(nodes));
    std::ranges::move(part.ranks, std::back_inserter(ranks));
  }
  std::ranges::stable_sort(ranks, {}, &CheckedRank::rank);
  const auto repeated = std::ranges::unique(ranks, {}, &CheckedRank::rank);
  ranks.erase(repeated.begin(), repeated.end());
  JobFacts job = std::move(parts.front());
  job.nodes = merge_nodes(std::move(nodes));
  job.ranks = std::move(ranks);
  return job;
}

}  // namespace isoscale::preflight
