// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh_request.hpp"
#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::hybrid {

/// Builds the programs of a training step on a mesh: the GEMMs of a transformer's layers and the
/// communication between ranks. Ranks share a program if they have the same coordinates along the
/// axes that stack::program_axes() returns. Coordinates along dp may differ if
/// stack::replica_programs() gives them the same replica.
[[nodiscard]] program::ProgramSet build(const Request& request);

// The functions below are members of Workload (workloads/api/workload.hpp), where they are
// described.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);
/// Returns the request with which one rank computes in f64 what a twin (a small request for
/// verification) computes: all microbatches of all replicas, without options that split the work.
[[nodiscard]] Request reference(const Request& twin);
[[nodiscard]] double work_per_step(const Request& request);

/// Returns a mesh of `ranks` ranks. The factors of two of `ranks` go to dp, tp and pp in turn, and
/// all other factors go to dp.
[[nodiscard]] mesh::Request balanced_mesh(int ranks);

/// Returns, for each rank of the mesh, its index in the list of the run's ranks, which is ordered
/// by node. By default the index is the rank's own number, which counts along tp first, then along
/// cp, ep, dp and pp. With expert_placement=spread the order is tp, cp, dp, ep, pp instead, so that
/// the ranks of an ep group are farther apart.
[[nodiscard]] std::vector<int> expert_places(const Request& request);

/// Returns a line of text about the effects of expert routing on a step: dropped tokens, padding
/// and imbalance; "" without experts.
[[nodiscard]] std::string expert_note(const Request& request);

}  // namespace isoscale::workloads::hybrid
