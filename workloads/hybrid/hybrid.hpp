// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "mesh/request.hpp"
#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::hybrid {

/// Builds training of the GEMM stack on a mesh of dp, tp and pp, with one program for each pipeline
/// stage.
[[nodiscard]] program::ProgramSet build(const Request& request);

// The functions below fit a training request to the mesh. See Workload for their meaning.

[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);
/// Returns the request of one rank in f64. It has all microbatches of the twin's replicas, and no
/// options about how ranks share the work.
[[nodiscard]] Request reference(const Request& twin);
/// Returns the tokens of all ranks per step, multiplied by the request's growth.
[[nodiscard]] double work_per_step(const Request& request);

/// Returns a mesh whose factors of two go to dp, tp and pp in turn, and whose other factors go to
/// dp.
[[nodiscard]] mesh::Request balanced_mesh(int ranks);

/// Returns, for each rank of the mesh, its place among the ranks of a point, which are ordered by
/// node. By default it is the rank's own number, so that ep groups are as close together as the
/// axes before ep allow. With expert_placement=spread the axes are ordered tp, cp, dp, ep, pp
/// instead, so that ep groups are farther apart.
[[nodiscard]] std::vector<int> expert_places(const Request& request);

/// Returns a line about the effects of routing on a step (route_stats); "" without experts.
[[nodiscard]] std::string expert_note(const Request& request);

}  // namespace isoscale::workloads::hybrid
