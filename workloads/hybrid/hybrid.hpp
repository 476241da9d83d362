// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "mesh/request.hpp"
#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::hybrid {

/// Builds dp x tp x pp training of the GEMM stack, with one program per pipeline stage.
[[nodiscard]] program::ProgramSet build(const Request& request);

// These functions fit a training request to the mesh: batch, model, limits and twin.

[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);
/// Returns the request of one rank in f64, with all microbatches of the twin's replicas and without
/// the options that only say how ranks share the work.
[[nodiscard]] Request reference(const Request& twin);
/// Returns the tokens per step over all ranks, times the request's growth.
[[nodiscard]] double work_per_step(const Request& request);

/// Returns a mesh with powers of two given to dp, tp, pp in turn; the other factors go to dp.
[[nodiscard]] mesh::Request balanced_mesh(int ranks);

/// Returns the place of each rank of the mesh among the ranks of a point, which are grouped by
/// node. It is the rank's own number, so that an ep group is as close together as the axes before
/// it allow. With expert_placement=spread, ep comes after dp instead: order tp, cp, dp, ep, pp.
[[nodiscard]] std::vector<int> expert_places(const Request& request);

/// Returns a line on the effects of routing on a step, from route_stats; empty without experts.
[[nodiscard]] std::string expert_note(const Request& request);

}  // namespace isoscale::workloads::hybrid
