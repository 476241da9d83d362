// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/merge_facts.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "system/preflight/gpus.hpp"

namespace isoscale::system {
namespace {

bool is_same(const CheckedGpu& a, const CheckedGpu& b) {
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  return !a.pci_bus_id.empty() && a.pci_bus_id == b.pci_bus_id;
}

/// Takes a GPU over from a rank that sees it. Only the node's first rank reads the kernel's log.
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

/// Links that show only once both ends are known.
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

}  // namespace isoscale::system
