// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "mesh/request.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// What a search may choose from.
struct SearchSpace {
  std::vector<workloads::Request> requests;  ///< complete, of one model and global batch
  int impossible = 0;                        ///< combinations that the workload refuses
};

/// Every mesh of `ranks` ranks with tp inside a node of `node_ranks`, with every microbatch that is
/// a power of two and deals out evenly, every schedule, v, zero stage and recomputation that the
/// workload has. Axes that `mesh` names and options that `fixed` names stay; cp and ep vary only
/// where `base` or its experts use them. `base` is at the base mesh, and its global batch is kept.
/// Throws base::UsageError when `base` itself is refused.
[[nodiscard]] SearchSpace search_space(const workloads::Workload& workload,
                                       const workloads::Request& base, const mesh::Request& mesh,
                                       int ranks, int node_ranks,
                                       const std::vector<std::string>& fixed);

}  // namespace isoscale::analysis
