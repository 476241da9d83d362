// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"

namespace isoscale::workloads::stack {

/// Consecutive rows of tokens: rows `first` ... first + rows - 1 of what the GEMMs of a pair read
/// and write lie in `slice`.
struct RowBlock {
  program::Slice slice{};
  std::uint64_t first = 0, rows = 0;
};

/// All rows of the tp group on each of its ranks, [tokens, hidden].
struct GatheredRows {
  std::vector<RowBlock> blocks;  ///< in the order in which they come
  std::vector<RowBlock> pieces;  ///< the same rows in as few contiguous pieces as there are
  program::BufferId received = program::no_buffer;
};

/// A sum over the tp group whose last addition is still to be written, if it has an addend.
struct RowSum {
  program::BufferId out = program::no_buffer;
  program::BufferId addend = program::no_buffer;
  enum class Addend : std::uint8_t { borrowed, owned } ownership = Addend::borrowed;
  [[nodiscard]] bool is_open() const { return addend != program::no_buffer; }
};

/// Some consecutive positions of a sequence, or of a rank's part of it.
struct Positions {
  std::uint64_t first = 0, count = 0;
};

/// The positions of a rank's part of the sequence, in the order in which they stand between the two
/// GEMMs of a pair. With sequence_parallel they stand in the order in which they came: cut into
/// chunks, [chunk][rank]; on a ring, one's own first and then those of the ranks before. No product
/// of the stack depends on the order of positions, so none is put straight.
[[nodiscard]] std::vector<Positions> inner_positions(const Geometry& geometry);

/// Brings the rows that sequence parallelism keeps apart together before a pair of GEMMs and takes
/// them apart after it (Korthikanti et al., arXiv 2205.05198, section 4.2.2), in parts of which one
/// travels while another is multiplied: `chunks` collectives, or steps of a ring (Wang et al.,
/// ASPLOS 2023, "Overlap communication with dependent computation via decomposition").
class TensorRows {
 public:
  TensorRows(program::Builder& builder, const Geometry& geometry, const Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// All rows, from each rank's [shard_tokens, hidden]; the shard stays the caller's, and is read
  /// through the result.
  [[nodiscard]] GatheredRows gather(program::BufferId shard);
  void release(const GatheredRows& rows);

  /// Writes the GEMM of rows first ... first + rows - 1 into `d`, plus the addend.
  using Product = std::function<void(std::uint64_t first, std::uint64_t rows,
                                     const program::Matrix& d, const Addend& addend)>;
  /// The sum over tp of product + residual, of the rows that a rank keeps, in `out`, a new buffer
  /// of them. `residual` may be no_buffer. Ops on the compute stream that are written before
  /// `close` run under the communication.
  [[nodiscard]] RowSum reduce(const Product& product, program::BufferId out,
                              program::BufferId residual);
  void close(const RowSum& sum);

 private:
  [[nodiscard]] GatheredRows gather_ring(program::BufferId shard);
  [[nodiscard]] RowSum all_reduce(const Product& product, program::BufferId out,
                                  program::BufferId residual);
  [[nodiscard]] RowSum reduce_scatter(const Product& product, program::BufferId out,
                                      program::BufferId residual);
  [[nodiscard]] RowSum reduce_ring(const Product& product, program::BufferId out,
                                   program::BufferId residual);
  /// To the next rank of the ring and from the one before.
  void pass_on(const program::Slice& outgoing, const program::Slice& incoming);
  [[nodiscard]] program::BufferId workspace(std::uint64_t rows);
  /// `rows` rows of a [.., hidden] buffer.
  [[nodiscard]] program::Slice rows_in(program::BufferId buffer, std::uint64_t first,
                                       std::uint64_t rows) const;
  [[nodiscard]] program::Matrix matrix_of(program::BufferId buffer) const;
  void add(program::BufferId into, program::BufferId addend);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
};

}  // namespace isoscale::workloads::stack
