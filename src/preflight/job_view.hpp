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

/// Rules ask for the facts of a job in these forms: GPUs, ports and ranks by node, environment
/// variables, and the adapters near a GPU. Every function is linear in ranks and devices.
namespace isoscale::preflight {

/// A GPU of the job's nodes: where ranks say what they took, those; else all that NVML tells of.
struct JobGpu {
  const CheckedNode* node = nullptr;
  const CheckedGpu* gpu = nullptr;
  int index = 0;  ///< in CheckedNode::gpus
  std::vector<const CheckedRank*> ranks;

  [[nodiscard]] Place place() const;
};
/// None where the job runs on the host.
[[nodiscard]] std::vector<JobGpu> job_gpus(const JobFacts& job);
/// The reason that job_gpus has nothing to judge.
[[nodiscard]] std::string no_gpus(const JobFacts& job, std::string_view source);

/// "GPU 3 (0000:5d:00.0)"
[[nodiscard]] std::string gpu_text(int index, const CheckedGpu& gpu);
/// True if NVLink-C2C joins it with its CPU (Grace): its PCIe link carries nothing that counts.
[[nodiscard]] bool is_joined_by_c2c(const CheckedGpu& gpu);
/// "mlx5_2 port 1"
[[nodiscard]] std::string port_text(const CheckedPort& port);
/// True if it carries data.
[[nodiscard]] bool is_up(const CheckedPort& port);
[[nodiscard]] bool has_up_port(const CheckedNode& node);

struct NodeRanks {
  int node = 0;
  const CheckedNode* facts = nullptr;  ///< nullptr where nothing was collected
  std::vector<const CheckedRank*> ranks;

  [[nodiscard]] std::string host() const;
};
/// The nodes on which ranks are, by index.
[[nodiscard]] std::vector<NodeRanks> nodes_of_ranks(const JobFacts& job);

/// Calls `found` once for each node and text that `judge` gives for ranks of it; "" = nothing. The
/// place names those ranks: "every rank" where they are all of the node.
using JudgeRank = std::function<std::string(const CheckedRank&, const CheckedNode*)>;
void for_ranks(const JobFacts& job, const JudgeRank& judge,
               const std::function<void(Place, const std::string& text)>& found);

/// The value of an environment variable of a rank; nullopt = unset.
[[nodiscard]] std::optional<std::string> setting(const CheckedRank& rank, const std::string& name);
/// True if it is set to a number other than 0.
[[nodiscard]] bool is_switched_on(const CheckedRank& rank, const std::string& name);
/// The parts of a list with commas, blanks aside, without empty ones.
[[nodiscard]] std::vector<std::string> parts_of_list(std::string_view list);

/// True if there are ranks on more than one node.
[[nodiscard]] bool has_several_nodes(const JobFacts& job);

/// A setting that commonly hurts.
struct BadSetting {
  std::string variable;
  /// Tells if the rank's value hurts; the node is nullptr where nothing is known of it.
  std::function<bool(const CheckedRank& rank, const CheckedNode* node)> hurts;
  std::string cost, fix;
};
/// One result for each node and value. What a rank's environment is, is always known.
void find_bad_settings(Findings& findings, const JobFacts& job,
                       const std::vector<BadSetting>& settings);

/// "NCCL_ALGO=Ring, NCCL_PROTO=LL" of the first rank, of those of these variables that are set.
[[nodiscard]] std::string settings_of_first(const JobFacts& job,
                                            const std::vector<std::string>& variables);

/// The effect of a list of NCCL_IB_HCA on a port: it leaves the port out, lets it be used, or names
/// its adapter in full, so that it is meant.
enum class Naming : std::uint8_t { left_out, usable, named };
/// The list as NCCL reads it: "^" leaves the named ones out, "=" wants whole names, else names
/// begin so; "mlx5_0:1" is a port.
[[nodiscard]] Naming naming_of(std::string_view list, const CheckedPort& port);
/// Parts of a list of NCCL_IB_HCA that no port of the node has.
[[nodiscard]] std::vector<std::string> unknown_adapters(std::string_view list,
                                                        const CheckedNode& node);

/// Place in what closest_on_paths can say, from near to far; nullopt where it says nothing.
[[nodiscard]] std::optional<std::size_t> distance_between(const CheckedGpu& gpu,
                                                          const CheckedPort& port);
/// "one switch", "several switches", "host bridge", "NUMA node", "system"
[[nodiscard]] std::string_view distance_name(std::size_t distance);

struct Nearest {
  std::size_t distance = 0;               ///< as distance_between has it
  std::vector<const CheckedPort*> ports;  ///< all that are as near
};
/// The ports nearest to a GPU among those of its node that are up; nullopt where none has a known
/// distance.
[[nodiscard]] std::optional<Nearest> nearest_ports(const CheckedGpu& gpu, const CheckedNode& node);

}  // namespace isoscale::preflight
