// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"

/// The table of all workloads, and functions that fit a workload to a number of ranks. They return
/// its mesh and its batch, or throw an error that says what would fit.
namespace isoscale::workloads {

/// Returns the workloads in the order of `isoscale list workloads`.
[[nodiscard]] std::span<const Workload> registry();
/// Returns the workload of this name. If there is none, throws base::UsageError with all names and,
/// if one is similar, that name as a suggestion.
[[nodiscard]] const Workload& find_workload(std::string_view name);

/// Returns the extents of tp and pp for a curve for which the user names no mesh. The points of the
/// curve have the rank counts `counts`, in ascending order. All points share the extents, so that
/// only dp grows. The extents come from the workload's default mesh (natural_mesh) for one of the
/// counts: the mesh with the most axes above 1 and, among equals, the fewest ranks. Then tp is
/// halved until it is at most `node_ranks`, the fewest ranks on any node; 0 means unknown, and tp
/// stays. The result is empty for workloads that do not combine dp with pp: each point then has the
/// default mesh of its rank count.
[[nodiscard]] mesh::Request curve_mesh(const Workload& workload, std::span<const int> counts,
                                       int node_ranks);

/// Returns the nearest rank count below `ranks` and the nearest one above that fit() accepts with
/// the same mesh and options. Counts above twice `ranks`, and counts more than 4096 away, are not
/// tried. Returns an empty list if none is accepted.
[[nodiscard]] std::vector<int> nearest_ranks(const Workload& workload, const Request& base,
                                             const mesh::Request& wanted, int ranks,
                                             Scaling scaling);

/// Returns the request for a run on `ranks` ranks. Its mesh is `wanted` or, if that is empty, the
/// workload's natural mesh. Throws NumberError, mesh::MeshError or another base::UsageError. If the
/// error suggests a mesh, rank count or workload, it fits the same options.
[[nodiscard]] Request fit(const Workload& workload, const Request& base,
                          const mesh::Request& wanted, int ranks, Scaling scaling);

}  // namespace isoscale::workloads
