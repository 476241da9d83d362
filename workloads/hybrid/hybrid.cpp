// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/hybrid/hybrid.hpp"

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/hybrid/scale.hpp"
#include "workloads/stack/stage.hpp"

namespace isoscale::workloads::hybrid {
namespace {

/// `at` along `axes`, 0 along the others.
mesh::Coordinates along(mesh::Coordinates at, mesh::AxisSet axes) {
  const auto keep = [&](int& coordinate, mesh::Axis axis) {
    if (!axes.contains(axis)) coordinate = 0;
  };
  keep(at.tp, mesh::Axis::tp);
  keep(at.cp, mesh::Axis::cp);
  keep(at.ep, mesh::Axis::ep);
  keep(at.dp, mesh::Axis::dp);
  keep(at.pp, mesh::Axis::pp);
  return at;
}

}  // namespace

program::ProgramSet build(const Request& request) {
  program::ProgramSet set{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  const mesh::AxisSet axes = stack::program_axes(request);
  const std::vector<int> replicas = stack::replica_programs(request);
  std::map<int, std::uint32_t> program_at;  // by the first rank of those that share it
  set.program_of_rank.reserve(static_cast<std::size_t>(request.mesh.size()));
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    mesh::Coordinates at = along(mesh::coordinates(request.mesh, rank), axes);
    at.dp = replicas[static_cast<std::size_t>(at.dp)];
    const auto [entry, is_new] = program_at.try_emplace(
        mesh::rank_at(request.mesh, at), static_cast<std::uint32_t>(set.programs.size()));
    if (is_new) set.programs.push_back(stack::build_stage(request, at));
    set.program_of_rank.push_back(entry->second);
  }
  return set;
}

}  // namespace isoscale::workloads::hybrid
