// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>

#include "mesh/mesh.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// How the ranks of a point lie on nodes.
struct NodeUse {
  int nodes = 0;
  int fewest = 0, most = 0;  ///< ranks of the point on one of its nodes
  int most_of_launch = 0;    ///< ranks of the launch on one node, the fullest
  bool fills_node = false;   ///< it is on one node, with all ranks that the launch has there
  std::map<mesh::Axis, mesh::Reach> axes{};  ///< of more than one rank

  bool operator==(const NodeUse&) const = default;
};

/// Absent where the node of some rank is not known.
[[nodiscard]] std::optional<NodeUse> node_use(const results::RunData& run,
                                              const results::PointData& point);

}  // namespace isoscale::analysis
