// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/experts.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"
#include "workloads/stack/weight_and_gradient_ops.hpp"

namespace isoscale::workloads::stack {

/// The buffers that a layer keeps from forward to backward, for one microbatch.
struct LayerState {
  BufferId input, qkv, scores, context, middle, inner;
  /// The inputs of the QKV GEMM and of the up GEMM. With norms these are the results of the norms;
  /// without norms they equal `input` and `middle`.
  BufferId attention_input, mlp_input;
  BufferId attention_inverse, mlp_inverse;  ///< written by norms for their gradients
  BufferId up;                              ///< the input of the activation
};

/// The data that a forward pass keeps for backward.
struct Saved {
  bool states;         ///< QKV, inputs and inverses of norms, inputs of activations, cast operands
  bool linear_inputs;  ///< inputs of linear layers, as their GEMMs read them
  bool scores;
  bool inner;       ///< input of the down GEMM, not cast
  bool inner_copy;  ///< the cast copy of `inner`
};

/// Says whether the input gradient of the first GEMM of a pair is computed before the weight
/// gradient of this GEMM (first) or after it (last). With `first`, the weight gradient can hide an
/// all-reduce of the input gradient. The QKV GEMM of the first layer of a virtual stage uses `last`
/// unless async_reduce is on: its input gradient is the result of the backward pass and is used
/// only when the pass ends. The first GEMMs of all other pairs use `first`.
enum class InputGradient : std::uint8_t { first, last };

/// Writes the ops of one layer on the compute stream:
///   Y = g * attention(X) * Wo + X,   Z = g * inner(Y * Wup) * Wdown + Y
/// with g = Geometry::residual_gain. Scores are scaled by 1/sqrt(d), context by
/// 1/sqrt(s + s^2/hidden). The function inner() adds the two halves of a gated MLP, and changes
/// nothing in other MLPs. There is no softmax, norm or activation. With elementwise work the layer
/// is
///   Y = g * attention(norm(X)) * Wo + X,   Z = g * inner(norm(Y) * Wup) * Wdown + Y
/// where attention applies a softmax to its scores, and inner is gelu, or swiglu in gated MLPs. If
/// partial sums are all-reduced over tp, each rank adds 1/tp of the residual to its partial sum.
/// With sequence parallelism, a rank adds the whole residual to the rows of the sum that it keeps.
class LayerWriter : public OpWriter {
 public:
  LayerWriter(Builder& builder, const Geometry& geometry, const Types& types,
              const Parameters& parameters, const Weights& weights, Gradients& gradients,
              const Request& request);

  /// Computes the layer's output Z from its input X [shard_tokens, h], in a new buffer.
  /// `output_for` is the microbatch whose backward pass reads the output.
  [[nodiscard]] BufferId forward(int layer, int microbatch, BufferId input, KeptFor output_for);
  /// If `later` is true, backward() computes no weight gradients, and keeps the data from which
  /// weight_gradients() computes them.
  void put_off_weight_gradients(bool later) { puts_off_ = later; }
  /// Writes the weight gradients that backward() has put off.
  void weight_gradients(int layer, int microbatch);
  /// Calls `write` now or, if weight gradients are put off, when weight_gradients() is called for
  /// this layer and microbatch.
  void after_weight_gradients(int layer, int microbatch, std::function<void()> write) {
    if (!puts_off_) return write();
    put_off_[{layer, microbatch}].push_back(std::move(write));
  }

  /// Computes dX, the gradient of the input, from dZ [shard_tokens, h], in a new buffer, and the
  /// weight gradients unless they are put off.
  [[nodiscard]] BufferId backward(int layer, int microbatch, BufferId gradient,
                                  InputGradient order);

  /// Computes logits = X * Wv, the output projection. The logits are also their own gradient, since
  /// loss = 1/2 |logits|^2.
  [[nodiscard]] BufferId vocabulary_forward(int microbatch, BufferId input);
  /// Computes dX = dlogits * Wv^T, summed over tp, and the gradient of Wv, the projection's weight.
  [[nodiscard]] BufferId vocabulary_backward(int microbatch, BufferId input, BufferId logits);

  /// True if backward() reads the inputs of forward(), so that they must be kept.
  [[nodiscard]] bool keeps_inputs() const {
    return !types_.casts_operands() || g_.options.elementwise ||
           g_.options.recompute == Recompute::full;
  }

 private:
  [[nodiscard]] Linear linear(int layer, Tensor tensor) const;
  [[nodiscard]] Linear vocabulary() const;

  /// Computes the output from the input, and fills `state`. `saved` says which buffers backward
  /// reads.
  [[nodiscard]] BufferId layer_forward(LayerState& state, int layer, int microbatch,
                                       KeptFor output_for, const Saved& saved);
  void attention_forward(LayerState& state, int layer, int microbatch, const Saved& saved);
  /// Computes the scores from queries and keys; with elementwise work also their softmax.
  [[nodiscard]] BufferId scores_of(BufferId qkv, KeptFor kept);
  [[nodiscard]] BufferId attention_backward(const LayerState& state, BufferId d_context);
  void inner_forward(LayerState& state, int layer, int microbatch, const Saved& saved);
  [[nodiscard]] BufferId inner_gradient(const LayerState& state, BufferId d_inner);

  // The functions below write elementwise work. norm() returns the norm of x, and stores in
  // `inverse` the data that its gradient needs besides x. Without norms it returns x itself.
  [[nodiscard]] BufferId norm(BufferId x, BufferId& inverse, int microbatch, const Saved& saved);
  /// Turns the gradient of a norm's result into the gradient of x, in place, and adds `bypass`, the
  /// gradient that did not pass the norm.
  void norm_gradient(BufferId gradient, BufferId x, BufferId inverse, BufferId bypass);
  /// Computes the activation of a matrix [tokens, parts * ffn] in a new buffer [tokens, ffn].
  [[nodiscard]] BufferId activation(BufferId up, KeptFor kept);
  /// Computes the gradient of the activation's input from the gradient of its output. The result
  /// overwrites one of the two arguments.
  [[nodiscard]] BufferId activation_gradient(BufferId up, BufferId gradient);

  // The functions below decide which activations forward keeps and which ones backward recomputes.
  [[nodiscard]] Saved saved_by_forward() const;
  /// Returns the data that backward can read after recomputation.
  [[nodiscard]] Saved saved_for_backward() const;
  /// True if forward does not keep the activation's output because of recompute=selective, so that
  /// backward recomputes it. With recompute=full the result is false: backward then repeats the
  /// whole forward pass of the layer.
  [[nodiscard]] bool recomputes_inner() const;

  /// Computes out = in * W for the first GEMM of a pair. `out` has all rows of the tp group. With
  /// sequence parallelism `in` has only this rank's rows, and the rows of other ranks are gathered:
  /// each block of rows is multiplied when it has arrived.
  void first_forward(const Linear& linear, BufferId in, BufferId out, int microbatch,
                     InputCopy input_copy = InputCopy::kept);
  /// Computes out = gain * in * W + residual for the second GEMM of a pair; returns out.
  /// `output_for` is the microbatch whose backward pass reads the output.
  [[nodiscard]] BufferId second_forward(const Linear& linear, BufferId in, BufferId residual,
                                        int microbatch, KeptFor output_for, InputCopy input_copy);
  /// Computes, for the second GEMM of a pair, the weight gradient and the gradient of this rank's
  /// columns of the input, which it returns.
  [[nodiscard]] BufferId second_backward(int layer, const Linear& linear, BufferId in,
                                         BufferId d_out, int microbatch);
  /// The first GEMM of a pair and its input.
  struct First {
    int layer = 0, microbatch = 0;
    Linear linear{};
    BufferId in = no_buffer;
  };
  /// Computes, for the first GEMM of a pair, the weight gradient and d_in. Returns d_in: the sum of
  /// d_out * W^T over tp, plus the residual once.
  [[nodiscard]] BufferId first_backward(const First& first, const Operand& d_out, BufferId residual,
                                        InputGradient order);
  /// The input x of the norm before a pair of GEMMs, and the data that the norm stored for its
  /// gradient.
  struct Normed {
    BufferId x, inverse;
  };
  /// Calls first_backward() for the first GEMM of a pair of GEMMs. If there is a norm before the
  /// pair, also computes the gradient of the norm's input. `bypass` is a gradient that did not
  /// pass the norm. It is added in the gradient of the norm or, without a norm, by
  /// first_backward().
  [[nodiscard]] BufferId normed_backward(const First& first, const Operand& d_out, BufferId bypass,
                                         InputGradient order, const Normed& normed);
  [[nodiscard]] BufferId mlp_backward(LayerState& state, int layer, int microbatch,
                                      BufferId gradient);
  [[nodiscard]] BufferId attention_part_backward(LayerState& state, int layer, int microbatch,
                                                 BufferId d_middle, InputGradient order);
  /// Returns an activation [tokens, columns] as an operand of GEMMs.
  [[nodiscard]] Operand all_rows(BufferId buffer, std::uint64_t columns) const {
    return {.plain = dense(buffer, g_.tokens, columns), .rows = {.count = g_.tokens}};
  }
  /// Returns `linear` with the slice in which a microbatch's weight gradient is written.
  [[nodiscard]] Linear with_gradient(const Linear& linear, int microbatch);
  [[nodiscard]] static KeptFor kept_if(bool saved, int microbatch) {
    return saved ? KeptFor{microbatch} : std::nullopt;
  }
  [[nodiscard]] static InputCopy copy_of(bool saved) {
    return saved ? InputCopy::kept : InputCopy::dropped;
  }

  /// The order of the columns of all ranks of tp in a buffer. by_rank: the matrices of the ranks
  /// follow one another. side_by_side: each row has the columns of all ranks.
  enum class Order : std::uint8_t { by_rank, side_by_side };
  /// Returns a batch of matrices [tokens, columns], one for the columns of each rank of tp, in a
  /// buffer that has the columns of all ranks.
  [[nodiscard]] Matrix columns_of_ranks(BufferId buffer, std::uint64_t columns, Order order) const;
  /// Returns this rank's columns of an activation that has the columns of all ranks of tp.
  [[nodiscard]] Matrix own_columns(BufferId buffer, std::uint64_t columns) const;
  /// Gathers the matrices [tokens, columns] of all ranks of tp into [tokens, tp * columns] on each.
  [[nodiscard]] BufferId gather_columns(BufferId part, std::uint64_t columns, KeptFor kept);
  /// Sums matrices [tokens, tp * columns] over tp, and gives each rank its columns of the sum.
  [[nodiscard]] BufferId scatter_columns(BufferId partial, std::uint64_t columns);

  const Parameters& parameters_;
  const Weights& weights_;
  Gradients& gradients_;
  LinearWriter linear_;
  ExpertWriter experts_;
  bool puts_off_ = false;
  std::map<std::pair<int, int>, std::vector<std::function<void()>>> put_off_;
  std::map<std::pair<int, int>, LayerState> kept_;  ///< by (layer, microbatch)
};

}  // namespace isoscale::workloads::stack
