// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/hybrid/hybrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "workloads/stack/experts.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::hybrid {

namespace {

/// Returns `at` with the coordinates along all axes but `axes` set to 0.
mesh::Coordinates along(mesh::Coordinates at, mesh::AxisSet axes) {
  for (const mesh::Axis axis : mesh::all_axes) {
    if (!axes.contains(axis)) at[axis] = 0;
  }
  return at;
}

double percent_of(std::uint64_t part, std::uint64_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

}  // namespace

program::ProgramSet build(const Request& request) {
  const mesh::AxisSet axes = stack::program_axes(request);
  const std::vector<int> replicas = stack::replica_programs(request);
  const auto first_with_program_of = [&](int rank) {
    mesh::Coordinates at = along(mesh::coordinates(request.mesh, rank), axes);
    at.dp = replicas[static_cast<std::size_t>(at.dp)];
    return mesh::rank_at(request.mesh, at);
  };
  return shared_programs(request.mesh, first_with_program_of, [&](int rank) {
    return stack::build_stage(request, mesh::coordinates(request.mesh, rank));
  });
}

std::vector<int> expert_places(const Request& request) {
  const mesh::Shape& mesh = request.mesh;
  std::vector<int> places(static_cast<std::size_t>(mesh.size()));
  std::iota(places.begin(), places.end(), 0);
  const auto placement =
      stack::option_of(request, "expert_placement", &stack::TrainingOptions::expert_placement);
  if (mesh.ep == 1 || placement == stack::ExpertPlacement::packed) return places;
  for (int& rank : places) {
    const mesh::Coordinates at = mesh::coordinates(mesh, rank);
    rank = at.tp + mesh.tp * (at.cp + mesh.cp * (at.dp + mesh.dp * (at.ep + mesh.ep * at.pp)));
  }
  return places;
}

std::string expert_note(const Request& request) {
  const auto experts = stack::option_of(request, "experts", &stack::TrainingOptions::experts);
  if (experts == 0) return {};
  const stack::RouteStats stats = stack::route_stats(request);
  return fmt::format(
      "{} experts over ep={}: {:.1f}% of routed tokens dropped, {:.1f}% more rows by padding, the "
      "busiest rank of a layer has {:.2f} times the mean",
      experts, request.mesh.ep, percent_of(stats.dropped, stats.routed),
      percent_of(stats.padded, stats.routed - stats.dropped), stats.imbalance);
}

}  // namespace isoscale::workloads::hybrid
