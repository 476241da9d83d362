// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/run_data.hpp"

/// What joins ranks, in few words: links of one class are alike, and are compared with each other.
namespace isoscale::runner {

/// From the facts of all ranks of a launch, by world rank; pure.
class LinkClasses {
 public:
  explicit LinkClasses(std::span<const results::RankFacts> facts);

  /// Of two ranks. On one node "same node", and between GPUs "same node, NVLink" or "same node,
  /// PCIe" where that is known; else "other node, NVLink domain" (GPUs of one clique), "other node,
  /// same rail" (GPUs in the same place of their nodes), "other node".
  [[nodiscard]] std::string of_pair(int a, int b) const;
  /// Of ranks that communicate together: "one node" or "several nodes".
  [[nodiscard]] std::string of_group(std::span<const int> ranks) const;

 private:
  [[nodiscard]] const results::RankFacts& facts(int rank) const {
    return facts_[static_cast<std::size_t>(rank)];
  }

  std::span<const results::RankFacts> facts_;  ///< not owned
  std::vector<int> rail_;                      ///< place of a rank's GPU on its node; -1 = unknown
};

/// Gives every row of `point` that communicates its class, in text "class".
void classify_rows(const LinkClasses& classes, results::PointData& point);

}  // namespace isoscale::runner
