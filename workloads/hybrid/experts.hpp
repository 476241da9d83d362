// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "workloads/workload.hpp"

/// What a plan says and does about experts; for requests of other workloads nothing.
namespace isoscale::workloads::hybrid {

/// For each rank of the mesh its place among the ranks of a point, which are grouped by node:
/// itself, so that an ep group lies as close as the axes before it leave it. With
/// expert_placement=spread ep comes after dp instead: order tp, cp, dp, ep, pp.
[[nodiscard]] std::vector<int> expert_places(const Request& request);

/// A line on what routing does to a step, as route_stats has it; empty without experts.
[[nodiscard]] std::string expert_note(const Request& request);

}  // namespace isoscale::workloads::hybrid
