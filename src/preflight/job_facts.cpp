// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/job_facts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.hpp"

namespace isoscale::preflight {
namespace {

/// A field of facts: its name in JSON, and the member.
template <class Struct, class Value>
struct Field {
  const char* name;
  Value Struct::*member;
};

// The fields of job facts are listed here by name, once for both writing and reading.

template <class Struct, class Value>
constexpr Field<Struct, Value> field(const char* name, Value Struct::*member) {
  return {name, member};
}

constexpr auto fields_of(const GpuFacts*) {
  using F = GpuFacts;
  return std::tuple(
      field("uuid", &F::uuid), field("pci_bus_id", &F::pci_bus_id), field("name", &F::name),
      field("driver", &F::driver), field("vbios", &F::vbios),
      field("compute_mode", &F::compute_mode), field("memory", &F::memory),
      field("memory_used", &F::memory_used), field("sm_clock", &F::sm_clock),
      field("sm_clock_max", &F::sm_clock_max),
      field("sm_clock_application", &F::sm_clock_application),
      field("memory_clock_max", &F::memory_clock_max), field("power_limit", &F::power_limit),
      field("power_limit_default", &F::power_limit_default),
      field("throttle_reasons", &F::throttle_reasons), field("ecc", &F::ecc), field("mig", &F::mig),
      field("persistence", &F::persistence), field("ecc_uncorrected", &F::ecc_uncorrected),
      field("remapped_rows", &F::remapped_rows), field("remap_pending", &F::remap_pending),
      field("remap_failed", &F::remap_failed), field("retired_pages", &F::retired_pages),
      field("xids", &F::xids), field("processes", &F::processes),
      field("nvlinks_active", &F::nvlinks_active), field("nvlinks_inactive", &F::nvlinks_inactive),
      field("nvlink_peers", &F::nvlink_peers), field("fabric", &F::fabric),
      field("fabric_state", &F::fabric_state), field("pcie_generation", &F::pcie_generation),
      field("pcie_generation_max", &F::pcie_generation_max), field("pcie_width", &F::pcie_width),
      field("pcie_width_max", &F::pcie_width_max), field("numa_node", &F::numa_node),
      field("pci_path", &F::pci_path));
}

constexpr auto fields_of(const CheckedPeers*) {
  using F = CheckedPeers;
  return std::tuple(field("i", &F::i), field("j", &F::j), field("peer_access", &F::peer_access),
                    field("link", &F::link));
}

constexpr auto fields_of(const CheckedPort*) {
  using F = CheckedPort;
  return std::tuple(
      field("device", &F::device), field("port", &F::port), field("link_layer", &F::link_layer),
      field("state", &F::state), field("physical_state", &F::physical_state),
      field("rate", &F::rate), field("link_downed", &F::link_downed),
      field("symbol_errors", &F::symbol_errors), field("pcie_generation", &F::pcie_generation),
      field("pcie_generation_max", &F::pcie_generation_max), field("pcie_width", &F::pcie_width),
      field("pcie_width_max", &F::pcie_width_max), field("numa_node", &F::numa_node),
      field("pci_path", &F::pci_path));
}

constexpr auto fields_of(const CheckedNode*) {
  using F = CheckedNode;
  return std::tuple(
      field("node", &F::node), field("host", &F::host), field("cpu_model", &F::cpu_model),
      field("os", &F::os), field("cores", &F::cores), field("cpu_quota", &F::cpu_quota),
      field("memory", &F::memory), field("shm_size", &F::shm_size), field("shm_free", &F::shm_free),
      field("numa_cpus", &F::numa_cpus), field("governors", &F::governors),
      field("frequency_driver", &F::frequency_driver),
      field("energy_preferences", &F::energy_preferences),
      field("iommu_translates", &F::iommu_translates), field("acs", &F::acs),
      field("nvidia_peermem", &F::nvidia_peermem), field("gdrcopy", &F::gdrcopy),
      field("dmabuf", &F::dmabuf), field("nccl_plugins", &F::nccl_plugins), field("gpus", &F::gpus),
      field("gpus_lost", &F::gpus_lost), field("peers", &F::peers), field("ports", &F::ports));
}

constexpr auto fields_of(const CheckedNeighbour*) {
  using F = CheckedNeighbour;
  return std::tuple(field("rank", &F::rank), field("bandwidth", &F::bandwidth));
}

constexpr auto fields_of(const CheckedRank*) {
  using F = CheckedRank;
  return std::tuple(field("rank", &F::rank), field("node", &F::node),
                    field("local_rank", &F::local_rank), field("pid", &F::pid),
                    field("cpus", &F::cpus), field("cores", &F::cores), field("gpu", &F::gpu),
                    field("visible_gpus", &F::visible_gpus),
                    field("blas_threads", &F::blas_threads),
                    field("locked_memory_limit", &F::locked_memory_limit),
                    field("locked_memory_unlimited", &F::locked_memory_unlimited),
                    field("versions", &F::versions), field("environment", &F::environment),
                    field("missing_files", &F::missing_files), field("launcher", &F::launcher),
                    field("gemm_rate", &F::gemm_rate), field("neighbours", &F::neighbours));
}

constexpr auto fields_of(const JobFacts*) {
  using F = JobFacts;
  return std::tuple(field("device", &F::device), field("share_gpu", &F::share_gpu),
                    field("world", &F::world), field("device_problem", &F::device_problem),
                    field("device_reason", &F::device_reason),
                    field("sniff_skipped", &F::sniff_skipped), field("nodes", &F::nodes),
                    field("ranks", &F::ranks));
}

using nlohmann::json;

template <class T>
concept Facts = requires(const T* facts) { fields_of(facts); };
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// Calls `use` with each field of a struct of facts.
template <Facts T, class Use>
void each_field(const T* facts, const Use& use) {
  std::apply([&](const auto&... field) { (use(field), ...); }, fields_of(facts));
}

template <class T>
json json_of(const std::vector<T>& values);

/// Writes a value; null means absent. Fields that have their default value are left out.
template <class T>
json json_of(const T& value) {
  if constexpr (Facts<T>) {
    json object = json::object();
    const T without_facts;
    each_field(&value, [&](const auto& field) {
      json written = json_of(value.*field.member);
      if (written != json_of(without_facts.*field.member)) object[field.name] = std::move(written);
    });
    return object;
  } else if constexpr (IsOptional<T>::value) {
    return value ? json_of(*value) : json();
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? json(value) : json();
  } else {
    return json(value);
  }
}

template <class T>
json json_of(const std::vector<T>& values) {
  json array = json::array();
  for (const T& value : values) array.push_back(json_of(value));
  return array;
}

void expect(bool is_right, std::string_view wanted) {
  if (!is_right) throw base::Error(fmt::format("job facts: {} is expected", wanted));
}

template <class T>
bool is_integer(const json& from) {
  if (from.is_number_unsigned()) return std::in_range<T>(from.get<std::uint64_t>());
  return from.is_number_integer() && std::in_range<T>(from.get<std::int64_t>());
}

template <class T>
void read(std::vector<T>& values, const json& from);
template <class T>
void read(std::map<std::string, T>& values, const json& from);

template <class T>
void read(T& value, const json& from) {
  if constexpr (Facts<T>) {
    expect(from.is_object(), "an object");
    each_field(&value, [&](const auto& field) {
      if (from.contains(field.name)) read(value.*field.member, from.at(field.name));
    });
  } else if constexpr (IsOptional<T>::value) {
    read(value.emplace(), from);
  } else {
    // The library itself would convert any number to an integer.
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      expect(is_integer<T>(from), "a whole number of its type");
    }
    from.get_to(value);
  }
}

template <class T>
void read(std::vector<T>& values, const json& from) {
  expect(from.is_array(), "an array");
  values.clear();
  for (const json& item : from) read(values.emplace_back(), item);
}

template <class T>
void read(std::map<std::string, T>& values, const json& from) {
  expect(from.is_object(), "an object");
  values.clear();
  for (const auto& [key, item] : from.items()) read(values[key], item);
}

bool is_same(const GpuFacts& a, const GpuFacts& b) {
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  return !a.pci_bus_id.empty() && a.pci_bus_id == b.pci_bus_id;
}

/// Adds the facts of a GPU that another rank of the node reported. They replace the facts of a GPU
/// that was known only from the PCI bus, except for its Xids, which only the node's first rank
/// reads from the kernel's log.
void add_gpu(CheckedNode& node, GpuFacts seen) {
  if (!node.gpus) node.gpus.emplace();
  const auto known =
      std::ranges::find_if(*node.gpus, [&](const GpuFacts& gpu) { return is_same(gpu, seen); });
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

std::vector<CheckedNode> merge_nodes(std::vector<CheckedNode> reported) {
  std::map<int, CheckedNode> nodes;
  for (CheckedNode& node : reported) {
    const int index = node.node;
    const auto known = nodes.find(index);
    if (known == nodes.end()) {
      nodes.emplace(index, std::move(node));
      continue;
    }
    for (GpuFacts& gpu : node.gpus.value_or(std::vector<GpuFacts>{})) {
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

bool joined_by_nvlinks(const GpuFacts& a, const GpuFacts& b) {
  if (!a.nvlink_peers || !b.nvlink_peers) return false;
  return std::ranges::any_of(*a.nvlink_peers, [&](const std::string& peer) {
    return peer == b.pci_bus_id ||
           std::ranges::find(*b.nvlink_peers, peer) != b.nvlink_peers->end();
  });
}

std::string to_json(const JobFacts& facts) {
  return json_of(facts).dump(-1, ' ', false, json::error_handler_t::replace);
}

JobFacts job_facts_from_json(std::string_view text) try {
  JobFacts facts;
  read(facts, json::parse(text));
  return facts;
} catch (const json::exception& failure) {
  throw base::Error(fmt::format("job facts: {}", failure.what()));
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
