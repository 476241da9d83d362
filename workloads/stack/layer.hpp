// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/experts.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/gradients.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/sequence_parallel.hpp"
#include "workloads/stack/weights.hpp"

namespace isoscale::workloads::stack {

/// The buffers that a layer keeps from the forward to the backward pass of one microbatch.
struct LayerState {
  program::BufferId input, qkv, scores, context, middle, inner;
  /// The inputs of the QKV and the up GEMM: the norms of input and middle; without norms these two.
  program::BufferId attention_input, mlp_input;
  program::BufferId attention_inverse, mlp_inverse;  ///< of the norms
  program::BufferId up;                              ///< what the activation read
};

/// Says what a forward pass keeps for backward; it releases the rest once it is used.
struct Saved {
  bool states;         ///< QKV, norms' inverses, what norms and activations read; cast operands
  bool linear_inputs;  ///< what linear layers read, as they read it
  bool scores;
  bool inner;       ///< what the down GEMM reads, as it reads it
  bool inner_copy;  ///< the same, cast
};

/// Says whether the QKV weight gradient comes before or after the input gradient. After, so that an
/// all-reduce of the input gradient can hide; before on the first layer of a stage, so that the
/// message to the previous stage leaves when backward ends and not one GEMM early.
enum class InputGradient : std::uint8_t { first, last };

/// Writes the ops of one layer on the compute stream:
///   Y = g * attention(X) * Wo + X,   Z = g * inner(Y * Wup) * Wdown + Y
/// with scores scaled by 1/sqrt(d), context by 1/sqrt(s + s^2/hidden), and no softmax, norm or
/// activation; with elementwise work
///   Y = g * attention(norm(X)) * Wo + X,   Z = g * inner(norm(Y) * Wup) * Wdown + Y
/// where attention takes the softmax of its scores and inner is gelu, or swiglu of gated MLPs.
/// Under tp with partial sums the residual enters as 1/tp on each rank.
class LayerWriter {
 public:
  LayerWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
              const Parameters& parameters, const Weights& weights, Gradients& gradients,
              const Request& request);

  /// X [shard_tokens, h] -> Z, a new buffer of role `output_role`.
  [[nodiscard]] program::BufferId forward(int layer, int microbatch, program::BufferId input,
                                          program::Role output_role);
  /// Says whether backward leaves the weight gradients, and what it keeps for them, to
  /// weight_gradients.
  void put_off_weight_gradients(bool later) { puts_off_ = later; }
  /// Writes what backward put off.
  void weight_gradients(int layer, int microbatch);
  /// Done now, or where weight gradients are put off after those of the layer.
  void after_weight_gradients(int layer, int microbatch, std::function<void()> write);
  static constexpr int vocabulary_layer = Weights::vocabulary;

  /// The treatment of the gradient that backward is given, once it is used.
  enum class Ownership : std::uint8_t { released, kept };
  /// dZ [shard_tokens, h] -> dX, a new buffer; releases what forward kept, but not X.
  [[nodiscard]] program::BufferId backward(int layer, int microbatch, program::BufferId gradient,
                                           Ownership gradient_ownership, InputGradient order);
  [[nodiscard]] program::BufferId input_of(int layer, int microbatch) const;
  void forget(int layer, int microbatch);

  /// logits = X * Wv, kept as their own gradient (loss = 1/2 |logits|^2).
  [[nodiscard]] program::BufferId vocabulary_forward(int microbatch, program::BufferId input);
  /// dX = dlogits * Wv^T, summed over tp.
  [[nodiscard]] program::BufferId vocabulary_backward(int microbatch, program::BufferId input,
                                                      program::BufferId logits);

  /// True if backward reads the inputs that forward was given, so that they are to be kept.
  [[nodiscard]] bool keeps_inputs() const {
    return !types_.casts_operands() || g_.elementwise || g_.recompute == Recompute::full;
  }

  [[nodiscard]] program::BufferId new_buffer(std::uint64_t count, program::Role role,
                                             int microbatch);

 private:
  [[nodiscard]] Linear linear(int layer, Tensor tensor) const;
  [[nodiscard]] Linear vocabulary() const;

  /// X -> Z and the rest of `state`, of which it releases what is not saved.
  [[nodiscard]] program::BufferId layer_forward(LayerState& state, int layer, int microbatch,
                                                program::Role output_role, const Saved& saved);
  void attention_forward(LayerState& state, int layer, int microbatch, const Saved& saved);
  /// Scores of queries and keys, and with elementwise work their softmax.
  [[nodiscard]] program::BufferId scores_of(program::BufferId qkv, program::Role role,
                                            int microbatch);
  void local_scores(program::BufferId qkv, program::BufferId scores);
  void local_context(const LayerState& state);
  [[nodiscard]] program::BufferId attention_backward(const LayerState& state,
                                                     program::BufferId d_context);
  /// The backward pass with all keys and values here, and with those of the ring of cp.
  void local_attention_backward(const LayerState& state, program::BufferId d_context,
                                program::BufferId d_scores, program::BufferId d_qkv);
  void ring_attention_backward(const LayerState& state, program::BufferId d_context,
                               program::BufferId d_scores, program::BufferId d_qkv);
  void inner_forward(LayerState& state, int layer, int microbatch, const Saved& saved);
  [[nodiscard]] program::BufferId inner_gradient(const LayerState& state,
                                                 program::BufferId d_inner);
  /// `part` of [tokens, parts * ffn].
  [[nodiscard]] program::Matrix up_part(program::BufferId up, std::uint64_t part) const;

  // Elementwise work.
  /// The norm of x and, in `inverse`, what its gradient needs beside x; x itself without norms.
  [[nodiscard]] program::BufferId norm(program::BufferId x, program::BufferId& inverse,
                                       int microbatch, const Saved& saved);
  /// Changes in place: the gradient of a norm's result becomes that of x, plus what bypassed the
  /// norm.
  void norm_gradient(program::BufferId gradient, program::BufferId x, program::BufferId inverse,
                     program::BufferId bypass);
  /// Both change their last argument in place.
  void softmax(program::BufferId scores);
  void softmax_gradient(program::BufferId probabilities, program::BufferId gradient);
  /// The activation of [tokens, parts * ffn] as a new buffer [tokens, ffn].
  [[nodiscard]] program::BufferId activation(program::BufferId up, program::Role role,
                                             int microbatch);
  /// Writes in place of either; the other is released.
  [[nodiscard]] program::BufferId activation_gradient(program::BufferId up,
                                                      program::BufferId gradient);

  // Backward computes these again.
  [[nodiscard]] Saved saved_by_forward() const;
  /// The things that backward finds once it has computed the rest again.
  [[nodiscard]] Saved saved_for_backward() const;
  void recompute_layer(LayerState& state, int layer, int microbatch);
  void recompute_inner(LayerState& state, int layer, int microbatch);
  void recompute_scores(LayerState& state, int microbatch);
  /// True if forward drops the activation's result alone.
  [[nodiscard]] bool recomputes_inner() const;

  /// out = in * W for the first GEMM of a pair, of all rows of the tp group.
  void first_forward(const Linear& linear, program::BufferId in, program::BufferId out,
                     int microbatch, InputCopy input_copy = InputCopy::kept);
  /// out = gain * in * W + residual for the second GEMM of a pair; returns out.
  [[nodiscard]] program::BufferId second_forward(const Linear& linear, program::BufferId in,
                                                 program::BufferId residual, program::Role role,
                                                 int microbatch, InputCopy input_copy);
  /// d_in (this rank's columns) and the weight gradient of the second GEMM of a pair.
  [[nodiscard]] program::BufferId second_backward(int layer, const Linear& linear,
                                                  program::BufferId in, program::BufferId d_out,
                                                  int microbatch);
  /// The same, block by block as the rows come.
  [[nodiscard]] program::BufferId second_backward_by_rows(int layer, const Linear& linear,
                                                          program::BufferId in,
                                                          program::BufferId d_out, int microbatch);
  /// d_out of the second GEMM of a pair, for its two products.
  [[nodiscard]] LinearWriter::Operand second_gradient(const Linear& linear,
                                                      program::BufferId d_out);
  /// d_in (this rank's columns) of the second GEMM of a pair.
  [[nodiscard]] program::BufferId second_input_gradient(const Linear& linear,
                                                        const LinearWriter::Operand& d_out);
  /// The first GEMM of a pair and what it read.
  struct First {
    int layer = 0, microbatch = 0;
    Linear linear{};
    program::BufferId in = program::no_buffer;
  };
  struct Residual {
    program::BufferId buffer = program::no_buffer;
    Ownership ownership = Ownership::kept;
  };
  /// d_in = d_out * W^T + residual, summed over tp, and the weight gradient.
  [[nodiscard]] program::BufferId first_backward(const First& first,
                                                 const LinearWriter::Operand& d_out,
                                                 const Residual& residual, InputGradient order);
  /// The input of a norm before a pair, and what it left for its gradient.
  struct Normed {
    program::BufferId x, inverse;
  };
  /// first_backward, and the gradient of the norm before it where there is one: what goes around
  /// the pair is added by the last of the two.
  [[nodiscard]] program::BufferId normed_backward(const First& first,
                                                  const LinearWriter::Operand& d_out,
                                                  const Residual& bypass, InputGradient order,
                                                  const Normed& normed);
  [[nodiscard]] program::BufferId mlp_backward(LayerState& state, int layer, int microbatch,
                                               const Residual& gradient);
  [[nodiscard]] program::BufferId attention_part_backward(LayerState& state, int layer,
                                                          int microbatch,
                                                          program::BufferId d_middle,
                                                          InputGradient order);
  /// d_out * W^T by rows, for TensorRows; reads its arguments when it is called.
  [[nodiscard]] TensorRows::Product input_product(const Linear& linear,
                                                  const LinearWriter::Operand& d_out);
  void first_weight_gradient(const First& first, const GatheredRows& in,
                             const LinearWriter::Operand& d_out);
  void weight_gradient(const Linear& linear, program::BufferId in,
                       const LinearWriter::Operand& d_out, int microbatch);
  /// The layer with the place where a microbatch's weight gradient goes.
  [[nodiscard]] Linear with_gradient(const Linear& linear, int microbatch);
  /// This weight gradient has the contribution of a microbatch.
  void note_weight_gradient(const Linear& linear, int microbatch);
  [[nodiscard]] static program::Role role_of(bool saved) {
    return saved ? program::Role::activation : program::Role::workspace;
  }
  [[nodiscard]] static InputCopy copy_of(bool saved) {
    return saved ? InputCopy::kept : InputCopy::dropped;
  }
  void release_if(bool condition, program::BufferId buffer) {
    if (condition) builder_.release(buffer);
  }

  /// [tokens, columns] on each rank -> [tokens, tp * columns] on all.
  [[nodiscard]] program::BufferId gather_columns(program::BufferId part, std::uint64_t columns,
                                                 program::Role role, int microbatch);
  /// [tokens, tp * columns] partial sums -> [tokens, columns] of the sum.
  [[nodiscard]] program::BufferId scatter_columns(program::BufferId partial, std::uint64_t columns);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
  const Parameters& parameters_;
  const Weights& weights_;
  Gradients& gradients_;
  LinearWriter linear_;
  TensorRows rows_;
  ExpertWriter experts_;
  bool puts_off_ = false;
  std::map<std::pair<int, int>, std::vector<std::function<void()>>> put_off_;
  std::map<std::pair<int, int>, LayerState> kept_;  ///< by (layer, microbatch)
};

}  // namespace isoscale::workloads::stack
