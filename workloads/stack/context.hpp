// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

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

  /// Elements of scores: [sample][key-value head][query head of it][s][whole sequence].
  [[nodiscard]] std::uint64_t score_count() const;

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
  /// What backward reads and writes last.
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
