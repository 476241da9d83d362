// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

/// What a layer keeps from the forward to the backward pass of one microbatch.
struct LayerState {
  program::BufferId input, qkv, scores, context, middle, inner;
};

/// Whether the QKV weight gradient comes before or after the input gradient. After, so that an
/// all-reduce of the input gradient can hide; before on the first layer of a stage, so that the
/// message to the previous stage leaves when backward ends and not one GEMM early.
enum class InputGradient : std::uint8_t { first, last };

/// Writes the ops of one layer on the compute stream:
///   Y = g * attention(X) * Wo + X,   Z = g * inner(Y * Wup) * Wdown + Y
/// with scores scaled by 1/sqrt(d) and context by 1/sqrt(s), and no softmax, norm or activation.
/// Under tp with partial sums the residual enters as 1/tp on each rank.
class LayerWriter {
 public:
  /// Called with each weight gradient once its last microbatch has been added.
  using GradientDone = std::function<void(const program::Slice&)>;

  LayerWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
              const Parameters& parameters, GradientDone gradient_done);

  /// X [tokens, h] -> Z, a new buffer of role `output_role`.
  [[nodiscard]] program::BufferId forward(int layer, int microbatch, program::BufferId input,
                                          program::Role output_role);
  /// What backward does with the gradient it is given once it has used it.
  enum class Ownership : std::uint8_t { released, kept };
  /// dZ [tokens, h] -> dX, a new buffer; releases what forward kept, but not X.
  [[nodiscard]] program::BufferId backward(int layer, int microbatch, program::BufferId gradient,
                                           Ownership gradient_ownership, InputGradient order);
  [[nodiscard]] program::BufferId input_of(int layer, int microbatch) const;
  void forget(int layer, int microbatch);

  /// logits = X * Wv, kept as their own gradient (loss = 1/2 |logits|^2).
  [[nodiscard]] program::BufferId vocabulary_forward(int microbatch, program::BufferId input);
  /// dX = dlogits * Wv^T, summed over tp.
  [[nodiscard]] program::BufferId vocabulary_backward(int microbatch, program::BufferId input,
                                                      program::BufferId logits);

  /// Whether backward reads the inputs that forward was given, so that they are to be kept.
  [[nodiscard]] bool keeps_inputs() const { return !types_.casts_operands(); }

  [[nodiscard]] program::BufferId new_buffer(std::uint64_t count, program::Role role,
                                             int microbatch);

 private:
  [[nodiscard]] Linear linear(int layer, Tensor tensor) const;
  [[nodiscard]] Linear vocabulary() const;

  void attention_forward(LayerState& state, int layer, int microbatch);
  [[nodiscard]] program::BufferId attention_backward(const LayerState& state,
                                                     program::BufferId d_context);
  [[nodiscard]] program::BufferId inner_forward(int layer, int microbatch,
                                                program::BufferId middle);
  [[nodiscard]] program::BufferId inner_gradient(program::BufferId d_inner);

  /// out = gain * in * W + residual for the second GEMM of a pair; returns out.
  [[nodiscard]] program::BufferId second_forward(const Linear& linear, program::BufferId in,
                                                 program::BufferId residual, program::Role role,
                                                 int microbatch);
  /// d_out of the second GEMM of a pair, for its two products.
  [[nodiscard]] LinearWriter::Operand second_gradient(const Linear& linear,
                                                      program::BufferId d_out);
  /// d_in (this rank's columns) of the second GEMM of a pair.
  [[nodiscard]] program::BufferId second_input_gradient(const Linear& linear,
                                                        const LinearWriter::Operand& d_out);
  /// d_in = d_out * W^T + residual, summed over tp, for the first GEMM of a pair.
  [[nodiscard]] program::BufferId first_input_gradient(const Linear& linear,
                                                       const LinearWriter::Operand& d_out,
                                                       program::BufferId residual);
  void weight_gradient(const Linear& linear, program::BufferId in,
                       const LinearWriter::Operand& d_out, int microbatch);
  /// What only the weight gradients read goes after forward where these have copies of their own.
  void release_after_forward(program::BufferId input);
  void release_after_backward(program::BufferId input);
  [[nodiscard]] program::Role input_role() const;

  /// [tokens, columns] on each rank -> [tokens, tp * columns] on all.
  [[nodiscard]] program::BufferId gather_columns(program::BufferId part, std::uint64_t columns,
                                                 program::Role role, int microbatch);
  /// [tokens, tp * columns] partial sums -> [tokens, columns] of the sum.
  [[nodiscard]] program::BufferId scatter_columns(program::BufferId partial, std::uint64_t columns);
  void reduce_over_tp(program::BufferId buffer);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
  const Parameters& parameters_;
  LinearWriter linear_;
  GradientDone gradient_done_;
  std::map<std::pair<int, int>, LayerState> kept_;  ///< by (layer, microbatch)
};

}  // namespace isoscale::workloads::stack
