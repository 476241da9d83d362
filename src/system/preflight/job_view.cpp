// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/job_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"

namespace isoscale::system {

Place JobGpu::place() const { return {.host = node->host, .device = gpu_text(index, *gpu)}; }

std::string NodeRanks::host() const {
  return facts != nullptr ? facts->host : fmt::format("node {}", node);
}

namespace {

/// Ranks by the GPU that they took.
using Takers = std::unordered_map<std::string, std::vector<const CheckedRank*>>;

/// Adds those that were taken and that nobody could look at, so that rules find all unknown of
/// them. Where GPUs are partitioned ranks take instances, which are not listed.
void add_unseen(std::vector<JobGpu>& gpus, const JobFacts& job, const Takers& takers) {
  static const CheckedGpu unseen;
  std::map<int, const CheckedNode*> nodes;
  for (const CheckedNode& node : job.nodes) nodes[node.node] = &node;
  std::unordered_map<std::string, bool> seen;
  for (const JobGpu& one : gpus) seen[one.gpu->uuid] = true;
  for (const CheckedRank& rank : job.ranks) {
    const auto node = nodes.find(rank.node);
    if (!rank.gpu || node == nodes.end() || !seen.emplace(*rank.gpu, true).second) continue;
    const bool has_mig = node->second->gpus &&
                         std::ranges::any_of(*node->second->gpus,
                                             [](const CheckedGpu& gpu) { return gpu.mig == true; });
    if (has_mig) continue;
    gpus.push_back({.node = node->second,
                    .gpu = &unseen,
                    .index = static_cast<int>(node->second->gpus ? node->second->gpus->size() : 0),
                    .ranks = takers.at(*rank.gpu)});
  }
}

}  // namespace

std::vector<JobGpu> job_gpus(const JobFacts& job) {
  std::vector<JobGpu> gpus;
  if (job.device != "cuda") return gpus;
  Takers ranks;
  for (const CheckedRank& rank : job.ranks) {
    if (rank.gpu) ranks[*rank.gpu].push_back(&rank);
  }
  for (const CheckedNode& node : job.nodes) {
    if (!node.gpus) continue;
    const auto begin = gpus.size();
    int index = 0;
    bool any_taken = false;
    for (const CheckedGpu& gpu : *node.gpus) {
      JobGpu& one =
          gpus.emplace_back(JobGpu{.node = &node, .gpu = &gpu, .index = index++, .ranks = {}});
      if (const auto found = ranks.find(gpu.uuid); found != ranks.end()) one.ranks = found->second;
      any_taken = any_taken || !one.ranks.empty();
    }
    // Others may belong to others; one without a UUID is not told of by NVML.
    const auto is_foreign = [&](const JobGpu& one) {
      return any_taken ? one.ranks.empty() : one.gpu->uuid.empty();
    };
    gpus.erase(
        std::remove_if(gpus.begin() + static_cast<std::ptrdiff_t>(begin), gpus.end(), is_foreign),
        gpus.end());
  }
  add_unseen(gpus, job, ranks);
  std::ranges::stable_sort(gpus, {}, [](const JobGpu& one) { return one.node->node; });
  return gpus;
}

std::string no_gpus(const JobFacts& job, std::string_view source) {
  if (job.device == "host") return "the job runs on the host";
  return fmt::format("{} gives no information on it", source);
}

std::string gpu_text(int index, const CheckedGpu& gpu) {
  return fmt::format("GPU {} ({})", index, gpu.pci_bus_id);
}

bool is_joined_by_c2c(const CheckedGpu& gpu) {
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

void for_ranks(const JobFacts& job, const JudgeRank& judge,
               const std::function<void(Place, const std::string& text)>& found) {
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    std::map<std::string, std::vector<std::string>> ranks;
    for (const CheckedRank* rank : node.ranks) {
      const std::string text = judge(*rank, node.facts);
      if (!text.empty()) ranks[text].push_back(fmt::format("{}", rank->rank));
    }
    for (const auto& [text, numbers] : ranks) {
      std::string who = fmt::format("{} {}", base::plural(numbers.size(), "rank"), listed(numbers));
      // Alike on all nodes, so that many nodes are one result.
      if (numbers.size() == node.ranks.size()) who = "every rank";
      found({.host = node.host(), .device = std::move(who)}, text);
    }
  }
}

}  // namespace isoscale::system
