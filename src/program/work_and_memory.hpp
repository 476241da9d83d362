// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <vector>

#include "program/outline.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

namespace isoscale::program {

/// The total communication of one kind of op along one set of axes.
struct Traffic {
  mesh::AxisSet axes;
  OpKind kind = OpKind::all_reduce;
  std::uint64_t calls = 0;
  units::Bytes bytes;  ///< sum of OutlineOp::bytes
  /// The bytes that this rank puts on links, rounded to the nearest byte. For an exchange it is the
  /// sum of its sends. For a collective it is calculated for ring algorithms (nccl-tests,
  /// PERFORMANCE.md). Let n be the number of its ranks and S its OutlineOp::bytes:
  /// - all_reduce: 2(n-1)/n S
  /// - reduce_scatter, all_gather and all_to_all: (n-1)/n S
  /// - broadcast and reduce: (n-1)/n S, the mean over the ranks, which send different amounts
  /// - gather and scatter: (n-1)/n^2 S, also a mean
  /// - barrier: 0
  units::Bytes sent;
};

/// The work and the resources that a program needs, derived from its ops and buffers. With several
/// steps, work and traffic are the sums over all of them, each run once.
struct Facts {
  /// Floating-point operations of the GEMMs of all steps on this rank; other ops do not count.
  units::Flops flop;
  /// Traffic of all steps, sorted by axes and kind.
  std::vector<Traffic> traffic;
  std::array<units::Bytes, space_count> peak_live;    ///< peak of live bytes per Space
  std::array<units::Bytes, role_count> peak_of_role;  ///< peak of live bytes per Role
  /// The most microbatches that have live activations at one time if ops run in program order.
  int peak_live_microbatches = 0;
};

[[nodiscard]] Facts facts(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
