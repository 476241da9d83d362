// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/hybrid/hybrid.hpp"

#include "workloads/hybrid/scale.hpp"
#include "workloads/stack/stage.hpp"

namespace isoscale::workloads::hybrid {

program::ProgramSet build(const Request& request) {
  program::ProgramSet set{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  for (int stage = 0; stage < request.mesh.pp; ++stage) {
    set.programs.push_back(stack::build_stage(request, stage));
  }
  set.program_of_rank.reserve(static_cast<std::size_t>(request.mesh.size()));
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    set.program_of_rank.push_back(
        static_cast<std::uint32_t>(mesh::coordinates(request.mesh, rank).pp));
  }
  return set;
}

}  // namespace isoscale::workloads::hybrid
