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

/// Consecutive rows of the activation that the GEMMs of a pair read and write: `slice` has the rows
/// `first` ... first + rows - 1.
struct RowBlock {
  program::Slice slice{};
  std::uint64_t first = 0, rows = 0;
};

/// An activation [tokens, hidden] whose rows have been gathered from all ranks of the tp group.
struct GatheredRows {
  std::vector<RowBlock> blocks;  ///< in the order in which they arrive
  std::vector<RowBlock> pieces;  ///< the same rows, in as few contiguous pieces as possible
  program::BufferId received = program::no_buffer;
};

/// A sum over the tp group. If it has an addend, TensorRows::close() must still add it.
struct RowSum {
  program::BufferId out = program::no_buffer;
  program::BufferId addend = program::no_buffer;
  enum class Addend : std::uint8_t { borrowed, owned } ownership = Addend::borrowed;
  [[nodiscard]] bool is_open() const { return addend != program::no_buffer; }
};

/// Consecutive positions of a sequence, or of a rank's part of a sequence.
struct Positions {
  std::uint64_t first = 0, count = 0;
};

/// Returns the positions of a rank's part of the sequence, in the order that they have between the
/// two GEMMs of a pair. With sequence_parallel they are ordered as they arrive. In chunks that is
/// [chunk][rank]; on a ring, the rank's own positions come first, then those of the ranks before
/// it. They are not put in order, since no product of the stack depends on their order.
[[nodiscard]] std::vector<Positions> inner_positions(const Geometry& geometry);

/// Gathers the rows of sequence parallelism before a pair of GEMMs, and sums and scatters them
/// after it (Korthikanti et al., arXiv 2205.05198, section 4.2.2). Rows are sent in parts, so that
/// one part is sent while another is multiplied. A part is one of `chunks` collectives, or one step
/// of a ring (Wang et al., ASPLOS 2023, "Overlap communication with dependent computation via
/// decomposition").
class TensorRows {
 public:
  TensorRows(program::Builder& builder, const Geometry& geometry, const Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// Gathers all rows from the [shard_tokens, hidden] of each rank. The result refers to `shard`,
  /// which must not be released before it.
  [[nodiscard]] GatheredRows gather(program::BufferId shard);
  void release(const GatheredRows& rows);

  /// Writes the GEMM of the rows `first` ... first + rows - 1, plus the addend, into `d`.
  using Product = std::function<void(std::uint64_t first, std::uint64_t rows,
                                     const program::Matrix& d, const Addend& addend)>;
  /// Computes the sum over tp of product + residual for the rows that this rank keeps, in `out`, a
  /// new buffer for these rows. `residual` may be no_buffer. Ops on the compute stream that are
  /// written before close() hide the communication.
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
  /// Sends a slice to the next rank of the ring, and receives one from the previous rank.
  void pass_on(const program::Slice& outgoing, const program::Slice& incoming);
  [[nodiscard]] program::BufferId workspace(std::uint64_t rows);
  /// Returns `rows` rows, from row `first` on, of a buffer [.., hidden].
  [[nodiscard]] program::Slice rows_in(program::BufferId buffer, std::uint64_t first,
                                       std::uint64_t rows) const;
  [[nodiscard]] program::Matrix matrix_of(program::BufferId buffer) const;
  void add(program::BufferId into, program::BufferId addend);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
};

/// Attention of a rank's queries to the keys and values of the whole sequence, of which every rank
/// of the cp axis has a part. Blocks of keys, and then of values, go around the ring of ranks under
/// the GEMMs of the blocks that have arrived (Liu et al., arXiv 2310.01889). A block is the keys,
/// or the values, of one rank, [s][sample][head][d]. The i-th block on a rank is that of the rank i
/// before it, so that one program serves the ring. A row of scores has all blocks side by side,
/// [block] [s], so that ops on whole rows find them contiguous; no sum depends on their order.
class ContextRing {
 public:
  ContextRing(program::Builder& builder, const Geometry& geometry, const Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// Writes scores = scale * Q * K^T, for all blocks.
  void scores(program::BufferId qkv, program::BufferId scores, double scale);
  /// Writes context = scale * scores * V, for all blocks.
  void context(program::BufferId qkv, program::BufferId scores, program::BufferId context,
               double scale);
  /// Writes d_scores = scale * dC * V^T, for all blocks. The gradient of each block of values goes
  /// around the ring, and each rank adds its contribution. Returns what the other ranks have added
  /// to the gradient of this rank's own block; gradients() needs it.
  [[nodiscard]] program::BufferId score_gradients(program::BufferId qkv, program::BufferId scores,
                                                  program::BufferId d_context,
                                                  program::BufferId d_scores, double scale);
  /// The arguments of gradients().
  struct Backward {
    program::BufferId qkv, scores, d_context, d_scores, d_qkv;
    program::BufferId arrived_values;  ///< from score_gradients(); is released
    double score_scale = 1, context_scale = 1;
  };
  /// Computes d_qkv from the gradient of the scores. The gradient of each block of keys goes around
  /// the ring, and each rank adds its contribution.
  void gradients(const Backward& of);

 private:
  enum class Part : std::uint8_t { key, value };

  [[nodiscard]] std::uint64_t batch() const { return g_.microbatch * g_.kv_heads; }
  [[nodiscard]] program::BufferId new_block();
  /// Returns a new block with this rank's keys or values.
  [[nodiscard]] program::BufferId pack(program::BufferId qkv, Part part);
  /// Sends a block to the next rank, and returns the block that comes from the previous rank.
  [[nodiscard]] program::BufferId pass_on(program::BufferId block);
  /// Returns the block that follows `block` on the ring; no_buffer after the last step. It is on
  /// its way while `block` is used.
  [[nodiscard]] program::BufferId next(program::BufferId block, int step);

  [[nodiscard]] program::Matrix block_of(program::BufferId packed) const;
  [[nodiscard]] program::Matrix query(program::BufferId qkv, std::uint64_t j) const;
  [[nodiscard]] program::Matrix own(program::BufferId qkv, Part part) const;
  [[nodiscard]] program::Matrix column(program::BufferId qkv, std::uint64_t index) const;
  [[nodiscard]] program::Matrix scores_of(program::BufferId scores, int block,
                                          std::uint64_t j) const;
  [[nodiscard]] program::Matrix context_of(program::BufferId context, std::uint64_t j) const;

  /// Writes a product of this rank's query rows: s x d, d x s or s x s.
  void emit(program::Gemm gemm);
  /// Writes gradient += scale * S^T * G, summed over all query heads. S is a block of scores, and
  /// rows(j) returns G of query head j, which has as many rows as there are queries. If there is a
  /// gradient in `arrived`, the sum begins with it.
  template <class RowsOf>
  void block_gradient(program::BufferId scores, int block, const RowsOf& rows, double scale,
                      program::BufferId arrived, const program::Matrix& gradient);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
};

}  // namespace isoscale::workloads::stack
