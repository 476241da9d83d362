// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "system/preflight/findings.hpp"

/// Job facts by what rules ask for; every function is linear in ranks and devices.
namespace isoscale::system {

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
/// Why job_gpus has nothing to judge.
[[nodiscard]] std::string no_gpus(const JobFacts& job, std::string_view source);

/// "GPU 3 (0000:5d:00.0)"
[[nodiscard]] std::string gpu_text(int index, const CheckedGpu& gpu);
/// Whether NVLink-C2C joins it with its CPU (Grace): its PCIe link carries nothing that counts.
[[nodiscard]] bool is_joined_by_c2c(const CheckedGpu& gpu);
/// "mlx5_2 port 1"
[[nodiscard]] std::string port_text(const CheckedPort& port);
/// Whether it carries data.
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

}  // namespace isoscale::system
