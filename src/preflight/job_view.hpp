// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preflight/job_facts.hpp"

/// Returns a job's facts in the forms that rules need: GPUs, ports and ranks by node, environment
/// variables, and the adapters near a GPU. The time of every function is linear in ranks and
/// devices.
namespace isoscale::preflight {

/// The host and device that a finding is about; "" as in CheckResult.
struct Place {
  std::string host{}, device{};
};

/// A GPU that the job uses. If ranks report the GPUs that they took, the job uses only these;
/// otherwise it is assumed to use all GPUs that NVML lists.
struct JobGpu {
  const CheckedNode* node = nullptr;
  const GpuFacts* gpu = nullptr;
  int index = 0;  ///< in CheckedNode::gpus
  std::vector<const CheckedRank*> ranks;

  /// Returns the host, and the device as "GPU 3 (0000:5d:00.0)".
  [[nodiscard]] Place place() const;
};
/// Returns the GPUs of the job; none if it runs on the host.
[[nodiscard]] std::vector<JobGpu> job_gpus(const JobFacts& job);
/// Returns the reason why a source has no facts about the job's GPUs.
[[nodiscard]] std::string no_gpus(const JobFacts& job, std::string_view source = "NVML");

/// True if NVLink-C2C joins the GPU with its CPU (Grace). Its PCIe link then carries no relevant
/// traffic.
[[nodiscard]] bool is_joined_by_c2c(const GpuFacts& gpu);
/// Returns the name of a port: "mlx5_2 port 1".
[[nodiscard]] std::string port_text(const CheckedPort& port);
/// True if the port's state is ACTIVE.
[[nodiscard]] bool is_up(const CheckedPort& port);
[[nodiscard]] bool has_up_port(const CheckedNode& node);

/// Returns a number of bytes as text: "74.5 GiB".
[[nodiscard]] std::string bytes_text(double bytes);
/// Returns a rate in bit/s as text: "200 Gbit/s".
[[nodiscard]] std::string bit_rate_text(double rate);
/// Returns names as one text: "c1", "c1, c2 and c3" or "c1, c2 and 30 more".
[[nodiscard]] std::string listed(std::span<const std::string> names);

/// Returns the most common value, the first of several equally common ones; absent if there are no
/// values.
template <class T>
[[nodiscard]] std::optional<T> most_common(std::span<const T> values) {
  std::map<T, std::size_t> counts;
  for (const T& value : values) ++counts[value];
  std::optional<T> most;
  for (const T& value : values) {
    if (!most || counts[value] > counts[*most]) most = value;
  }
  return most;
}

struct NodeRanks {
  int node = 0;
  const CheckedNode* facts = nullptr;  ///< nullptr if nothing was collected
  std::vector<const CheckedRank*> ranks;

  [[nodiscard]] std::string host() const;
  /// True if the node is known to have an InfiniBand or RoCE port that is up.
  [[nodiscard]] bool has_network() const { return facts != nullptr && has_up_port(*facts); }
};
/// Returns the nodes that have ranks, by index.
[[nodiscard]] std::vector<NodeRanks> nodes_of_ranks(const JobFacts& job);

/// Returns the version of a piece of software, by its key in CheckedRank::versions.
[[nodiscard]] std::optional<std::string> version_of(const CheckedRank& rank,
                                                    const std::string& key);
/// Returns the value of an environment variable of a rank; nullopt = unset.
[[nodiscard]] std::optional<std::string> setting(const CheckedRank& rank, const std::string& name);
/// True if a variable's value is a number other than 0.
[[nodiscard]] bool is_switched_on(std::string_view value);
/// Splits a list at commas, and drops blanks and empty parts.
[[nodiscard]] std::vector<std::string> parts_of_list(std::string_view list);

/// True if the job has ranks on more than one node.
[[nodiscard]] bool has_several_nodes(const JobFacts& job);

/// Returns those of `variables` that are set on the first rank, with their values: "NCCL_ALGO=Ring,
/// NCCL_PROTO=LL".
[[nodiscard]] std::string settings_of_first(const JobFacts& job,
                                            const std::vector<std::string>& variables);

/// The effect of NCCL_IB_HCA on a port: the list excludes the port, allows it, or names its adapter
/// in full, which means that the port is expected to work.
enum class Naming : std::uint8_t { left_out, usable, named };
/// Returns the effect of a value of NCCL_IB_HCA on the port. As in NCCL, a leading "^" excludes the
/// listed names, "=" requires whole names (else names are prefixes), and "mlx5_0:1" names a port.
[[nodiscard]] Naming naming_of(std::string_view list, const CheckedPort& port);
/// Returns the entries of a value of NCCL_IB_HCA that match no port of the node.
[[nodiscard]] std::vector<std::string> unknown_adapters(std::string_view list,
                                                        const CheckedNode& node);

/// Returns the distance between a GPU and a port: 0 is nearest, see distance_name(). nullopt if it
/// is unknown.
[[nodiscard]] std::optional<std::size_t> distance_between(const GpuFacts& gpu,
                                                          const CheckedPort& port);
/// Returns the name of a distance, from near to far: "one switch", "several switches", "host
/// bridge", "NUMA node", "system".
[[nodiscard]] std::string_view distance_name(std::size_t distance);

struct Nearest {
  std::size_t distance = 0;               ///< as distance_between() returns it
  std::vector<const CheckedPort*> ports;  ///< all ports at this distance
};
/// Returns the ports nearest to a GPU among those of its node that are up; nullopt if none of them
/// has a known distance.
[[nodiscard]] std::optional<Nearest> nearest_ports(const GpuFacts& gpu, const CheckedNode& node);

}  // namespace isoscale::preflight
