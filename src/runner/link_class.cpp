// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/link_class.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "mesh/mesh.hpp"

namespace isoscale::runner {
namespace {

using results::RankFacts;
using results::RowData;

/// "" when it is not known.
std::string fact(const RankFacts& facts, const char* key) {
  const auto found = facts.text.find(key);
  return found == facts.text.end() ? std::string{} : found->second;
}

std::set<std::string> peers_of(const RankFacts& facts) {
  const std::string list = fact(facts, "gpu_nvlink_peers");
  std::set<std::string> peers;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    peers.insert(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return peers;
}

/// Whether NVLinks lead from one GPU to the other, or from both to the same switch.
bool have_nvlink(const RankFacts& a, const RankFacts& b) {
  const std::set<std::string> peers_a = peers_of(a), peers_b = peers_of(b);
  if (peers_a.contains(fact(b, "gpu_pci")) || peers_b.contains(fact(a, "gpu_pci"))) return true;
  return std::ranges::any_of(peers_a, [&](const auto& peer) { return peers_b.contains(peer); });
}

bool is_alike(const RankFacts& a, const RankFacts& b, const char* key) {
  const std::string value = fact(a, key);
  return !value.empty() && value == fact(b, key);
}

/// NVML has told how many links there are: none is an answer too.
bool knows_links(const RankFacts& facts) {
  return facts.number.contains("gpu_nvlinks") &&
         (facts.number.at("gpu_nvlinks") == 0 || facts.text.contains("gpu_nvlink_peers"));
}

/// The groups that a row's ranks communicate in, as ranks of the point.
std::vector<std::vector<int>> groups_of(const RowData& row, const results::PointData& point) {
  if (!row.ranks.empty()) return {row.ranks};
  mesh::AxisSet axes = mesh::every_axis;
  for (const mesh::Axis axis : mesh::all_axes) {
    if (mesh::name(axis) == text_of(row, "axis")) axes = axis;
  }
  std::map<int, std::vector<int>> groups;
  for (int rank = 0; rank < point.mesh.size(); ++rank) {
    groups[mesh::group_colour(point.mesh, rank, axes)].push_back(rank);
  }
  std::vector<std::vector<int>> result;
  for (auto& [colour, ranks] : groups) result.push_back(std::move(ranks));
  return result;
}

}  // namespace

LinkClasses::LinkClasses(std::span<const RankFacts> facts)
    : facts_(facts), rail_(facts.size(), -1) {
  // The GPUs that a node's ranks have, by bus id: rank k of one node need not have its k-th GPU.
  std::map<int, std::set<std::string>> gpus_of_node;
  for (const RankFacts& rank : facts) {
    if (const std::string gpu = fact(rank, "gpu_pci"); !gpu.empty()) {
      gpus_of_node[rank.node].insert(gpu);
    }
  }
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const std::string gpu = fact(facts[rank], "gpu_pci");
    if (gpu.empty()) continue;
    const std::set<std::string>& gpus = gpus_of_node[facts[rank].node];
    rail_[rank] = static_cast<int>(std::distance(gpus.begin(), gpus.find(gpu)));
  }
}

std::string LinkClasses::of_pair(int a, int b) const {
  const RankFacts &one = facts(a), &other = facts(b);
  if (one.node != other.node) {
    if (is_alike(one, other, "gpu_fabric")) return "other node, NVLink domain";
    const int rail = rail_[static_cast<std::size_t>(a)];
    const bool same = rail >= 0 && rail == rail_[static_cast<std::size_t>(b)];
    return same ? "other node, same rail" : "other node";
  }
  const bool is_one_gpu = is_alike(one, other, "gpu_uuid");
  if (is_one_gpu || !knows_links(one) || !knows_links(other)) return "same node";
  return have_nvlink(one, other) ? "same node, NVLink" : "same node, PCIe";
}

std::string LinkClasses::of_group(std::span<const int> ranks) const {
  const bool is_one = std::ranges::all_of(
      ranks, [&](int rank) { return facts(rank).node == facts(ranks.front()).node; });
  return is_one ? "one node" : "several nodes";
}

void classify_rows(const LinkClasses& classes, results::PointData& point) {
  const auto world = [&](int rank) { return point.world_rank.at(static_cast<std::size_t>(rank)); };
  for (RowData& row : point.rows) {
    if (row.number.contains("src") && row.number.contains("dst")) {
      row.text["class"] = classes.of_pair(world(static_cast<int>(row.number.at("src"))),
                                          world(static_cast<int>(row.number.at("dst"))));
      continue;
    }
    const bool has_groups = row.number.contains("members") || text_of(row, "op") == "p2p";
    if (!has_groups) continue;
    std::string widest;
    for (std::vector<int>& group : groups_of(row, point)) {
      for (int& rank : group) rank = world(rank);
      const std::string found = classes.of_group(group);
      if (widest.empty() || found == "several nodes") widest = found;
    }
    row.text["class"] = widest;
  }
}

}  // namespace isoscale::runner
