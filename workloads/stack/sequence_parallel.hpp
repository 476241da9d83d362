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

/// Consecutive rows of tokens: `slice` holds rows `first` ... first + rows - 1 of the activation
/// that the GEMMs of a pair read and write.
struct RowBlock {
  program::Slice slice{};
  std::uint64_t first = 0, rows = 0;
};

/// All rows of the tp group, on each of its ranks, [tokens, hidden].
struct GatheredRows {
  std::vector<RowBlock> blocks;  ///< in the order of arrival
  std::vector<RowBlock> pieces;  ///< the same rows in the fewest contiguous pieces
  program::BufferId received = program::no_buffer;
};

/// A sum over the tp group. If it has an addend, its last addition must still be written.
struct RowSum {
  program::BufferId out = program::no_buffer;
  program::BufferId addend = program::no_buffer;
  enum class Addend : std::uint8_t { borrowed, owned } ownership = Addend::borrowed;
  [[nodiscard]] bool is_open() const { return addend != program::no_buffer; }
};

/// Consecutive positions of a sequence, or of a rank's part of it.
struct Positions {
  std::uint64_t first = 0, count = 0;
};

/// Returns the positions of a rank's part of the sequence, in their order between the two GEMMs of
/// a pair. With sequence_parallel that is the order of arrival: cut into chunks, [chunk][rank]; on
/// a ring, the rank's own first and then those of the ranks before it. No product of the stack
/// depends on the order of positions, so they are not reordered.
[[nodiscard]] std::vector<Positions> inner_positions(const Geometry& geometry);

/// Gathers the rows of sequence parallelism before a pair of GEMMs and scatters them after it
/// (Korthikanti et al., arXiv 2205.05198, section 4.2.2), in parts of which one is sent while
/// another is multiplied: `chunks` collectives, or steps of a ring (Wang et al., ASPLOS 2023,
/// "Overlap communication with dependent computation via decomposition").
class TensorRows {
 public:
  TensorRows(program::Builder& builder, const Geometry& geometry, const Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// Gathers all rows, from each rank's [shard_tokens, hidden]. The caller keeps the shard, and the
  /// result refers to it.
  [[nodiscard]] GatheredRows gather(program::BufferId shard);
  void release(const GatheredRows& rows);

  /// Writes the GEMM of rows first ... first + rows - 1 into `d`, plus the addend.
  using Product = std::function<void(std::uint64_t first, std::uint64_t rows,
                                     const program::Matrix& d, const Addend& addend)>;
  /// Computes the sum over tp of product + residual for the rows that a rank keeps, in `out`, a new
  /// buffer of these rows. `residual` may be no_buffer. Ops on the compute stream that are written
  /// before `close` run under the communication.
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
  /// Sends to the next rank of the ring and receives from the one before.
  void pass_on(const program::Slice& outgoing, const program::Slice& incoming);
  [[nodiscard]] program::BufferId workspace(std::uint64_t rows);
  /// Returns `rows` rows of a [.., hidden] buffer.
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

  /// Writes scores = scale * Q * K^T for all blocks.
  void scores(program::BufferId qkv, program::BufferId scores, double scale);
  /// Writes context = scale * scores * V for all blocks.
  void context(program::BufferId qkv, program::BufferId scores, program::BufferId context,
               double scale);
  /// Writes d_scores = scale * dC * V^T for all blocks. The gradient of each block of values is
  /// sent on as it grows. Returns what the other ranks have added to this rank's own, for
  /// `gradients`.
  [[nodiscard]] program::BufferId score_gradients(program::BufferId qkv, program::BufferId scores,
                                                  program::BufferId d_context,
                                                  program::BufferId d_scores, double scale);
  /// The buffers that backward reads and writes last.
  struct Backward {
    program::BufferId qkv, scores, d_context, d_scores, d_qkv;
    program::BufferId arrived_values;  ///< from score_gradients; released
    double score_scale = 1, context_scale = 1;
  };
  /// Computes d_qkv from the gradient of the scores; the gradient of each block of keys is sent on
  /// as it grows.
  void gradients(const Backward& of);

 private:
  enum class Part : std::uint8_t { key, value };

  [[nodiscard]] std::uint64_t batch() const { return g_.microbatch * g_.kv_heads; }
  [[nodiscard]] program::BufferId new_block();
  /// Packs this rank's keys or values.
  [[nodiscard]] program::BufferId pack(program::BufferId qkv, Part part);
  /// Sends a block to the next rank and returns the one that comes from the rank before.
  [[nodiscard]] program::BufferId pass_on(program::BufferId block);
  /// Returns the block after `block`, if `step` of a ring has one; it is under way while `block` is
  /// used.
  [[nodiscard]] program::BufferId next(program::BufferId block, int step);

  [[nodiscard]] program::Matrix block_of(program::BufferId packed) const;
  [[nodiscard]] program::Matrix query(program::BufferId qkv, std::uint64_t j) const;
  [[nodiscard]] program::Matrix own(program::BufferId qkv, Part part) const;
  [[nodiscard]] program::Matrix column(program::BufferId qkv, std::uint64_t index) const;
  [[nodiscard]] program::Matrix scores_of(program::BufferId scores, int block,
                                          std::uint64_t j) const;
  [[nodiscard]] program::Matrix context_of(program::BufferId context, std::uint64_t j) const;

  /// Writes a product of rows of queries: s x d, d x s or s x s.
  void emit(program::Gemm gemm);
  /// Writes gradient += scale * S^T * G over all query heads, where S is a block of scores and G
  /// has the queries' rows; it starts from `arrived` if there is one. `rows(j)` returns G of a
  /// query head.
  template <class RowsOf>
  void block_gradient(program::BufferId scores, int block, const RowsOf& rows, double scale,
                      program::BufferId arrived, const program::Matrix& gradient);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
};

}  // namespace isoscale::workloads::stack
