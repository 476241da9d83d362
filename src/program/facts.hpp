// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <vector>

#include "program/outline.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

namespace isoscale::program {

/// The communication of one kind over the same axes.
struct Traffic {
  mesh::AxisSet axes;
  OpKind kind = OpKind::all_reduce;
  std::uint64_t calls = 0;
  units::Bytes bytes;  ///< sum of OutlineOp::bytes
  /// The bytes that this rank puts on links. For an exchange it is the sum of its sends. For a
  /// collective over n ranks of S = OutlineOp::bytes, under ring algorithms, it is 2(n-1)/n S for
  /// all_reduce; (n-1)/n S for reduce_scatter, all_gather and all_to_all (nccl-tests,
  /// PERFORMANCE.md); (n-1)/n S for broadcast and reduce and (n-1)/n^2 S for gather and scatter,
  /// each as the mean over the group; to the nearest byte.
  units::Bytes sent;
};

/// The work and the resources that a program needs, derived from its ops and buffers. With several
/// steps, work and traffic are the sums over all of them, each played once.
struct Facts {
  units::Flops flop;                                  ///< of the steps on this rank
  std::vector<Traffic> traffic;                       ///< of the steps, by (axes, kind)
  std::array<units::Bytes, space_count> peak_live;    ///< peak of live bytes per Space
  std::array<units::Bytes, role_count> peak_of_role;  ///< peak of live bytes per Role
  int peak_live_microbatches =
      0;  ///< microbatches with a live activation, at most, in program order
};

[[nodiscard]] Facts facts(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
