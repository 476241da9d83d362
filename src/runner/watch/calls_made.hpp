// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/outline.hpp"
#include "runner/watch/state.hpp"

namespace isoscale::runner {

/// What tells the calls of one rank's program apart.
struct CallMap {
  const program::Outline& outline;  ///< of the section that is played
  const mesh::Shape& mesh;
  int rank = 0;                         ///< of the mesh
  const std::vector<int>& world_ranks;  ///< of the mesh's ranks
};

/// How far each communicator of a rank is, and what its streams are at, from where its session is.
/// A collective's communicator is its group on its stream; messages are counted by partner.
void describe_calls(const CallMap& map, const executor::Whereabouts& at, RankState& state);

/// "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0".
[[nodiscard]] std::string op_text(const program::OutlineOp& op, const mesh::Shape& mesh);

}  // namespace isoscale::runner
