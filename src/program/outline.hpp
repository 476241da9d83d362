// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/op.hpp"
#include "program/program.hpp"

/// A program without its data: which ops run, in which order, with which partners, and how much
/// they move. Matching the ranks' messages, simulation, run files and the analysis need no more.
namespace isoscale::program {

struct OutlineTransfer {
  Direction direction = Direction::send;
  mesh::Axis axis = mesh::Axis::pp;
  std::int32_t offset = 1;
  std::uint64_t bytes = 0;
};

/// The extents of a matrix multiplication, m x k times k x n, `batch` times. They are all 0 for
/// other ops, and for ops read from files before schema 1.6, which do not hold them.
struct GemmShape {
  std::uint32_t m = 0, n = 0, k = 0, batch = 0;
  auto operator<=>(const GemmShape&) const = default;
};

/// Returns "64 x 256 x 64" (m x n x k), or "32 x 32 x 16, batch 8".
[[nodiscard]] std::string to_string(const GemmShape& shape);

struct OutlineOp {
  OpKind kind = OpKind::gemm;
  StreamId stream = 0;
  Place place;
  double flop = 0;  ///< 2 m n k batch for a GEMM, else 0 (elementwise work is not counted)
  /// For a collective, the size that nccl-tests divides by the time to get algbw (PERFORMANCE.md of
  /// nccl-tests): for all_gather, gather and scatter, the data of the whole group, and for other
  /// kinds, the larger buffer of one rank. For an exchange, the larger of the bytes sent and the
  /// bytes received. For other ops, bytes read + written.
  std::uint64_t bytes = 0;
  mesh::AxisSet axes;  ///< axes of a collective's group, or along which an exchange communicates
  /// The reduction, element type and root of a collective, encoded as one number that must be the
  /// same for all members. 0 for other ops, and for all ops that were read from a file, which lacks
  /// it.
  std::uint32_t signature = 0;
  bool uneven = false;  ///< true for an all_to_all whose members may send different sizes
  GemmShape gemm{};
  std::uint32_t wait_begin = 0, wait_count = 0;          ///< range in Outline::waits
  std::uint32_t transfer_begin = 0, transfer_count = 0;  ///< range in Outline::transfers
};

/// True if an op exchanges messages between pipeline stages, so that waiting in it is a pipeline
/// bubble. An exchange whose axes are not known (they may be missing in a run file) counts as one
/// between stages.
[[nodiscard]] inline bool between_stages(const OutlineOp& op) {
  return op.kind == OpKind::exchange && (op.axes.empty() || op.axes.contains(mesh::Axis::pp));
}

struct Outline {
  std::vector<std::string> streams;
  std::vector<OutlineOp> ops;
  std::vector<Wait> waits;
  std::vector<OutlineTransfer> transfers;

  [[nodiscard]] std::span<const Wait> waits_of(const OutlineOp& op) const {
    return std::span{waits}.subspan(op.wait_begin, op.wait_count);
  }
  [[nodiscard]] std::span<const OutlineTransfer> transfers_of(const OutlineOp& op) const {
    return std::span{transfers}.subspan(op.transfer_begin, op.transfer_count);
  }
};

struct OutlineSet {
  mesh::Shape mesh;
  std::vector<Outline> outlines;
  std::vector<std::uint32_t> outline_of_rank;

  [[nodiscard]] const Outline& of(int rank) const {
    return outlines[outline_of_rank[static_cast<std::size_t>(rank)]];
  }
};

[[nodiscard]] Outline outline(const RankProgram& program, Section section, const mesh::Shape& mesh);
[[nodiscard]] OutlineSet outline(const ProgramSet& set, Section section);

}  // namespace isoscale::program
