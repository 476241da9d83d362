// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "mesh/request.hpp"
#include "workloads/workload.hpp"

/// How a training request follows the mesh: batch, model, limits, twin.
namespace isoscale::workloads::hybrid {

[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);
/// One rank, all microbatches of the twin's replicas, f64, and none of the options that only say
/// how ranks share the work.
[[nodiscard]] Request reference(const Request& twin);
/// Tokens per step over all ranks, times the request's growth.
[[nodiscard]] double work_per_step(const Request& request);

/// Powers of two dealt to dp, tp, pp in turn, what else divides to dp.
[[nodiscard]] mesh::Request balanced_mesh(int ranks);

}  // namespace isoscale::workloads::hybrid
