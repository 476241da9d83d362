// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <vector>

#include "program/outline.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

namespace isoscale::program {

/// The traffic of one kind of communication over the same axes.
struct Traffic {
  mesh::AxisSet axes;
  OpKind kind = OpKind::all_reduce;
  std::uint64_t calls = 0;
  units::Bytes bytes;  ///< sum of OutlineOp::bytes
  /// Bytes that this rank puts on links. An exchange: the sum of its sends. A collective over n
  /// ranks of S = OutlineOp::bytes, under ring algorithms: all_reduce 2(n-1)/n S; reduce_scatter,
  /// all_gather and all_to_all (n-1)/n S (nccl-tests, PERFORMANCE.md); broadcast and reduce (n-1)/n
  /// S, gather and scatter (n-1)/n^2 S, each the mean over the group; to the nearest byte.
  units::Bytes sent;
};

/// The work and the needs of a program, derived from its ops and buffers, never declared. Where it
/// has several steps, work and traffic are those of all of them, each played once.
struct Facts {
  units::Flops flop;                                    ///< of the steps on this rank
  std::array<units::Flops, phase_count> flop_of_phase;  ///< indexed by Phase
  std::vector<Traffic> traffic;                         ///< of the steps, by (axes, kind)
  units::Bytes copied;                                  ///< by Copy ops, read + written
  std::array<units::Bytes, space_count> memory;         ///< arena need per Space
  std::array<units::Bytes, space_count> peak_live;      ///< peak of live bytes per Space
  std::array<units::Bytes, role_count> peak_of_role;    ///< peak of live bytes per Role
  int peak_live_microbatches =
      0;  ///< microbatches with a live activation, at most, in program order
};

[[nodiscard]] Facts facts(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
