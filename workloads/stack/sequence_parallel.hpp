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
  /// Sends to the next rank of the ring and receives from the one before.
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

/// Attention of a rank's queries to the keys and values of the whole sequence, of which every rank
/// of the cp axis has a part: blocks of keys, and then of values, go round the ring of ranks under
/// the GEMMs of the blocks that are there (Liu et al., arXiv 2310.01889). A block is the keys, or
/// the values, of one rank, [s][sample][head][d]; the i-th that a rank sees is that of the rank i
/// before it, so one program serves the ring. A row of scores has all blocks side by side, [block]
/// [s], so that what works on whole rows finds them contiguous; no sum depends on their order.
class ContextRing {
 public:
  ContextRing(program::Builder& builder, const Geometry& geometry, const Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// scores = scale * Q * K^T of all blocks.
  void scores(program::BufferId qkv, program::BufferId scores, double scale);
  /// context = scale * scores * V of all blocks.
  void context(program::BufferId qkv, program::BufferId scores, program::BufferId context,
               double scale);
  /// d_scores = scale * dC * V^T of all blocks. The gradient of each block of values travels on as
  /// it grows; what the other ranks have added to this rank's own is returned, for `gradients`.
  [[nodiscard]] program::BufferId score_gradients(program::BufferId qkv, program::BufferId scores,
                                                  program::BufferId d_context,
                                                  program::BufferId d_scores, double scale);
  /// The buffers that backward reads and writes last.
  struct Backward {
    program::BufferId qkv, scores, d_context, d_scores, d_qkv;
    program::BufferId arrived_values;  ///< from score_gradients; released
    double score_scale = 1, context_scale = 1;
  };
  /// d_qkv from the gradient of the scores; that of each block of keys travels on as it grows.
  void gradients(const Backward& of);

 private:
  enum class Part : std::uint8_t { key, value };

  [[nodiscard]] std::uint64_t batch() const { return g_.microbatch * g_.kv_heads; }
  [[nodiscard]] program::BufferId new_block();
  /// This rank's keys or values, packed.
  [[nodiscard]] program::BufferId pack(program::BufferId qkv, Part part);
  /// Sends a block to the next rank and returns the one that comes from the rank before.
  [[nodiscard]] program::BufferId pass_on(program::BufferId block);
  /// The block after `block`, if there is one in `step` of a ring; on its way while `block` is
  /// used.
  [[nodiscard]] program::BufferId next(program::BufferId block, int step);

  [[nodiscard]] program::Matrix block_of(program::BufferId packed) const;
  [[nodiscard]] program::Matrix query(program::BufferId qkv, std::uint64_t j) const;
  [[nodiscard]] program::Matrix own(program::BufferId qkv, Part part) const;
  [[nodiscard]] program::Matrix column(program::BufferId qkv, std::uint64_t index) const;
  [[nodiscard]] program::Matrix scores_of(program::BufferId scores, int block,
                                          std::uint64_t j) const;
  [[nodiscard]] program::Matrix context_of(program::BufferId context, std::uint64_t j) const;

  /// A product of rows of queries: s x d, d x s or s x s.
  void emit(program::Gemm gemm);
  /// gradient += scale * S^T * G over all query heads, where S is a block of scores and G has the
  /// queries' rows; starts from `arrived` where there is one. `rows(j)` gives G of a query head.
  template <class RowsOf>
  void block_gradient(program::BufferId scores, int block, const RowsOf& rows, double scale,
                      program::BufferId arrived, const program::Matrix& gradient);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
};

}  // namespace isoscale::workloads::stack
