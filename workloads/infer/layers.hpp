// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/builder.hpp"
#include "workloads/infer/weights.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::infer {

/// Tokens that go through the layers at once: `positions` consecutive ones of each of `samples`
/// consecutive samples; rows are ordered [position][sample].
struct Pass {
  std::uint64_t samples = 1, positions = 1;
  std::uint64_t first_sample = 0;  ///< in the cache
  std::uint64_t position = 0;      ///< of the first token: so many of its sample are in the cache

  [[nodiscard]] std::uint64_t rows() const { return samples * positions; }
  /// Tokens that each of these attends to: all that came before the pass, and all of the pass.
  [[nodiscard]] std::uint64_t length() const { return position + positions; }
};

/// Keys and values of one stage on one rank, each [layer][sample][kv head][position][d].
class Cache {
 public:
  /// Allocates and, in the setup section, fills it from the seed: a sample's history.
  Cache(program::Builder& builder, const stack::Geometry& geometry, const Request& request,
        std::uint64_t samples, std::uint64_t positions);

  /// positions x d of each (sample, kv head), from `pass`'s first sample + `sample` on.
  [[nodiscard]] program::Matrix keys(const program::Builder& builder, int layer, const Pass& pass,
                                     std::uint64_t sample, std::uint64_t samples) const;
  [[nodiscard]] program::Matrix values(const program::Builder& builder, int layer, const Pass& pass,
                                       std::uint64_t sample, std::uint64_t samples) const;
  /// Where the keys or values of a pass's own tokens go, as batch x rows x columns.
  struct Place {
    program::Matrix keys, values;
  };
  [[nodiscard]] Place place(const program::Builder& builder, int layer, const Pass& pass) const;

  void observe(program::Builder& builder) const;

 private:
  [[nodiscard]] program::Shard shard() const;
  [[nodiscard]] program::Matrix view(const program::Slice& in, int layer, const Pass& pass,
                                     std::uint64_t sample, std::uint64_t samples) const;
  [[nodiscard]] std::uint64_t head() const { return positions_ * g_.head_size; }  ///< elements
  [[nodiscard]] std::uint64_t layer_size() const { return samples_ * g_.kv_heads * head(); }

  const stack::Geometry& g_;
  std::uint64_t samples_, positions_;
  program::BufferId keys_ = program::no_buffer, values_ = program::no_buffer;
};

/// Writes the forward ops of one stage's layers on the compute stream:
///   Y = g * attention(X) * Wo + X,   Z = g * inner(Y * Wup) * Wdown + Y
/// as in training (stack::LayerWriter), but that attention reads keys and values from the cache,
/// where the pass has put its own first. Without softmax or mask: every token of a pass attends to
/// the whole length; scores are scaled by 1/sqrt(d), context by 1/sqrt(length). Under tp partial
/// sums are all-reduced, twice a layer.
class Layers {
 public:
  Layers(program::Builder& builder, const stack::Geometry& geometry, const stack::Types& types,
         const Weights& weights, const Cache& cache)
      : builder_(builder), g_(geometry), types_(types), weights_(weights), cache_(cache) {}

  /// X [rows, h] -> Z [rows, h] of all layers of the stage, a new buffer.
  [[nodiscard]] program::BufferId forward(const Pass& pass, const program::Matrix& input);
  /// The output projection of `rows` rows: [rows, V / tp], a new buffer.
  [[nodiscard]] program::BufferId logits(const program::Matrix& input, std::uint64_t rows);

  [[nodiscard]] program::BufferId new_buffer(std::uint64_t count);

 private:
  [[nodiscard]] program::BufferId attention(int layer, const Pass& pass,
                                            const program::Matrix& input);
  /// Copies keys and values of the pass from the columns of `qkv` into the cache.
  void remember(int layer, const Pass& pass, program::BufferId qkv);
  /// Scores and context of some samples of the pass.
  void attend(int layer, const Pass& pass, std::uint64_t sample, std::uint64_t samples,
              program::BufferId qkv, program::BufferId context);
  [[nodiscard]] program::BufferId inner(int layer, const Pass& pass, program::BufferId middle);
  /// X [rows, inputs] * W -> a new buffer [rows, outputs].
  [[nodiscard]] program::BufferId multiply(const program::Matrix& x, const program::Slice& weight,
                                           std::uint64_t rows, std::uint64_t inputs,
                                           std::uint64_t outputs);
  /// g * X [rows, inputs] * W + residual, summed over tp -> a new buffer [rows, h].
  [[nodiscard]] program::BufferId multiply_into(const program::Matrix& residual,
                                                const program::Matrix& x,
                                                const program::Slice& weight, std::uint64_t rows,
                                                std::uint64_t inputs);
  [[nodiscard]] std::uint64_t samples_at_once(const Pass& pass) const;

  program::Builder& builder_;
  const stack::Geometry& g_;
  const stack::Types& types_;
  const Weights& weights_;
  const Cache& cache_;
};

}  // namespace isoscale::workloads::infer
