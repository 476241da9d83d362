// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "mesh/request.hpp"
#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::hybrid {

/// dp x tp x pp training of the GEMM stack: one program per pipeline stage.
[[nodiscard]] program::ProgramSet build(const Request& request);

// A training request follows the mesh: batch, model, limits and twin.

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

/// The place of each rank of the mesh among the ranks of a point, which are grouped by node: its
/// own number, so that an ep group lies as close as the axes before it leave it. With
/// expert_placement=spread ep comes after dp instead: order tp, cp, dp, ep, pp.
[[nodiscard]] std::vector<int> expert_places(const Request& request);

/// A line on what routing does to a step, as route_stats has it; empty without experts.
[[nodiscard]] std::string expert_note(const Request& request);

}  // namespace isoscale::workloads::hybrid
