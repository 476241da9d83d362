// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preflight/job_facts.hpp"
#include "preflight/rules.hpp"

/// The forms in which rules read the facts of a job: GPUs, ports and ranks by node, environment
/// variables, and the adapters near a GPU. Every function is linear in ranks and devices.
namespace isoscale::preflight {

/// A GPU of the job's nodes. If ranks report which GPUs they took, only these are GPUs of the job;
/// else all that NVML lists.
struct JobGpu {
  const CheckedNode* node = nullptr;
  const CheckedGpu* gpu = nullptr;
  int index = 0;  ///< in CheckedNode::gpus
  std::vector<const CheckedRank*> ranks;

  [[nodiscard]] Place place() const;
};
/// Returns the GPUs of the job; none if it runs on the host.
[[nodiscard]] std::vector<JobGpu> job_gpus(const JobFacts& job);
/// Returns the reason why job_gpus() is empty.
[[nodiscard]] std::string no_gpus(const JobFacts& job, std::string_view source);

/// Returns "GPU 3 (0000:5d:00.0)".
[[nodiscard]] std::string gpu_text(int index, const CheckedGpu& gpu);
/// True if NVLink-C2C joins the GPU with its CPU (Grace). Its PCIe link then carries no relevant
/// traffic.
[[nodiscard]] bool is_joined_by_c2c(const CheckedGpu& gpu);
/// Returns "mlx5_2 port 1".
[[nodiscard]] std::string port_text(const CheckedPort& port);
/// True if the port carries data.
[[nodiscard]] bool is_up(const CheckedPort& port);
[[nodiscard]] bool has_up_port(const CheckedNode& node);

struct NodeRanks {
  int node = 0;
  const CheckedNode* facts = nullptr;  ///< nullptr if nothing was collected
  std::vector<const CheckedRank*> ranks;

  [[nodiscard]] std::string host() const;
};
/// Returns the nodes that have ranks, by index.
[[nodiscard]] std::vector<NodeRanks> nodes_of_ranks(const JobFacts& job);

/// Judges a rank: returns a text, or "" if nothing is wrong. for_ranks() calls `found` once for
/// each node and text; the place names the ranks, or "every rank" if the text applies to all ranks
/// of the node.
using JudgeRank = std::function<std::string(const CheckedRank&, const CheckedNode*)>;
void for_ranks(const JobFacts& job, const JudgeRank& judge,
               const std::function<void(Place, const std::string& text)>& found);

/// Returns the value of an environment variable of a rank; nullopt = unset.
[[nodiscard]] std::optional<std::string> setting(const CheckedRank& rank, const std::string& name);
/// True if the variable is set to a number other than 0.
[[nodiscard]] bool is_switched_on(const CheckedRank& rank, const std::string& name);
/// Splits a list at commas, and drops blanks and empty parts.
[[nodiscard]] std::vector<std::string> parts_of_list(std::string_view list);

/// True if the job has ranks on more than one node.
[[nodiscard]] bool has_several_nodes(const JobFacts& job);

/// A setting that usually hurts performance.
struct BadSetting {
  std::string variable;
  /// True if the rank's value hurts; the node is nullptr if nothing is known about it.
  std::function<bool(const CheckedRank& rank, const CheckedNode* node)> hurts;
  std::string cost, fix;
};
/// Warns once for each node and value that hurts. A rank's environment is always known.
void find_bad_settings(Findings& findings, const JobFacts& job,
                       const std::vector<BadSetting>& settings);

/// Returns those of the variables that are set on the first rank: "NCCL_ALGO=Ring, NCCL_PROTO=LL".
[[nodiscard]] std::string settings_of_first(const JobFacts& job,
                                            const std::vector<std::string>& variables);

/// The effect of a list of NCCL_IB_HCA on a port: it excludes the port, allows it, or names its
/// adapter in full, so that the port is expected to work.
enum class Naming : std::uint8_t { left_out, usable, named };
/// Reads the list as NCCL does: "^" excludes the names, "=" wants whole names, else names are
/// prefixes; "mlx5_0:1" is a port.
[[nodiscard]] Naming naming_of(std::string_view list, const CheckedPort& port);
/// Returns the parts of a list of NCCL_IB_HCA that match no port of the node.
[[nodiscard]] std::vector<std::string> unknown_adapters(std::string_view list,
                                                        const CheckedNode& node);

/// Returns the index of closest_on_paths()'s answer in the list from near to far; nullopt if it has
/// none.
[[nodiscard]] std::optional<std::size_t> distance_between(const CheckedGpu& gpu,
                                                          const CheckedPort& port);
/// Returns "one switch", "several switches", "host bridge", "NUMA node" or "system".
[[nodiscard]] std::string_view distance_name(std::size_t distance);

struct Nearest {
  std::size_t distance = 0;               ///< as distance_between() returns it
  std::vector<const CheckedPort*> ports;  ///< all ports at this distance
};
/// Returns the nearest ports to a GPU among those of its node that are up; nullopt if none has a
/// known distance.
[[nodiscard]] std::optional<Nearest> nearest_ports(const CheckedGpu& gpu, const CheckedNode& node);

}  // namespace isoscale::preflight
