// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/layer.hpp"

#include <utility>

#include "workloads/stack/matrix.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Phase;
using program::Role;
using program::Slice;
using program::Transpose;

LayerWriter::LayerWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
                         const Parameters& parameters, GradientDone gradient_done)
    : builder_(builder),
      g_(geometry),
      types_(types),
      parameters_(parameters),
      gradient_done_(std::move(gradient_done)) {}

BufferId LayerWriter::new_buffer(std::uint64_t count, Role role, int microbatch) {
  return builder_.allocate({.dtype = types_.compute,
                            .role = role,
                            .microbatch = role == Role::activation ? microbatch : -1,
                            .count = count});
}

BufferId LayerWriter::forward(int layer, int microbatch, BufferId input, Role output_role) {
  builder_.at({.phase = Phase::forward, .layer = g_.first_layer + layer, .microbatch = microbatch});
  LayerState state{};
  state.input = input;
  attention_forward(state, layer, microbatch);
  if (g_.gathers()) {
    const BufferId part = state.context;
    state.context = gather_columns(part, g_.context, Role::activation, microbatch);
    builder_.release(part);
  }
  state.middle = second_forward(parameters_.weight(layer, Tensor::projection), state.context,
                                g_.context, input, Role::activation, microbatch);
  state.inner = inner_forward(layer, microbatch, state.middle);
  if (g_.gathers()) {
    const BufferId part = state.inner;
    state.inner = gather_columns(part, g_.ffn, Role::activation, microbatch);
    builder_.release(part);
  }
  const BufferId output = second_forward(parameters_.weight(layer, Tensor::down), state.inner,
                                         g_.ffn, state.middle, output_role, microbatch);
  kept_[{layer, microbatch}] = state;
  return output;
}

BufferId LayerWriter::backward(int layer, int microbatch, BufferId gradient,
                               Ownership gradient_ownership, InputGradient order) {
  builder_.at(
      {.phase = Phase::backward, .layer = g_.first_layer + layer, .microbatch = microbatch});
  const LayerState state = kept_.at({layer, microbatch});
  const auto weight = [&](Tensor tensor) { return parameters_.weight(layer, tensor); };
  const auto gradient_of = [&](Tensor tensor) { return parameters_.gradient(layer, tensor); };

  // MLP: dZ -> d inner -> dY
  const BufferId d_inner = second_input_gradient(weight(Tensor::down), gradient, g_.ffn);
  second_weight_gradient(gradient_of(Tensor::down), state.inner, g_.ffn, gradient, microbatch);
  builder_.release(state.inner);
  const std::uint64_t up = g_.up_parts * g_.ffn;
  const BufferId d_up = inner_gradient(d_inner);
  const BufferId d_middle = first_input_gradient(weight(Tensor::up), d_up, up, gradient);
  if (gradient_ownership == Ownership::released) builder_.release(gradient);
  first_weight_gradient(gradient_of(Tensor::up), state.middle, d_up, up, microbatch);
  builder_.release(d_up);
  builder_.release(state.middle);

  // Attention: dY -> d context -> d QKV -> dX
  const BufferId d_context =
      second_input_gradient(weight(Tensor::projection), d_middle, g_.context);
  second_weight_gradient(gradient_of(Tensor::projection), state.context, g_.context, d_middle,
                         microbatch);
  builder_.release(state.context);
  const BufferId d_qkv = attention_backward(state, d_context);
  if (order == InputGradient::last) {
    first_weight_gradient(gradient_of(Tensor::qkv), state.input, d_qkv, g_.qkv, microbatch);
  }
  const BufferId d_input = first_input_gradient(weight(Tensor::qkv), d_qkv, g_.qkv, d_middle);
  builder_.release(d_middle);
  if (order == InputGradient::first) {
    first_weight_gradient(gradient_of(Tensor::qkv), state.input, d_qkv, g_.qkv, microbatch);
  }
  builder_.release(d_qkv);
  return d_input;
}

BufferId LayerWriter::input_of(int layer, int microbatch) const {
  return kept_.at({layer, microbatch}).input;
}

void LayerWriter::forget(int layer, int microbatch) { kept_.erase({layer, microbatch}); }

BufferId LayerWriter::inner_forward(int layer, int microbatch, BufferId middle) {
  const std::uint64_t columns = g_.up_parts * g_.ffn;
  const bool gated = g_.up_parts > 1;
  const BufferId up =
      new_buffer(g_.tokens * columns, gated ? Role::workspace : Role::activation, microbatch);
  builder_.emit(0,
                program::Gemm{.m = static_cast<std::uint32_t>(g_.tokens),
                              .n = static_cast<std::uint32_t>(columns),
                              .k = static_cast<std::uint32_t>(g_.hidden),
                              .mode = types_.mode,
                              .a = dense(builder_.whole(middle), g_.tokens, g_.hidden),
                              .b = dense(parameters_.weight(layer, Tensor::up), g_.hidden, columns),
                              .d = dense(builder_.whole(up), g_.tokens, columns)});
  if (!gated) return up;
  // inner = gate + up: the sum stands in for the gated product and moves the same bytes.
  const BufferId inner = new_buffer(g_.tokens * g_.ffn, Role::activation, microbatch);
  const auto part = [&](std::uint64_t p) {
    return matrix(
        builder_.whole(up),
        {.rows = g_.tokens, .columns = g_.ffn, .row_stride = columns, .offset = p * g_.ffn});
  };
  builder_.emit(0, program::Add{.rows = static_cast<std::uint32_t>(g_.tokens),
                                .columns = static_cast<std::uint32_t>(g_.ffn),
                                .a = part(0),
                                .b = part(1),
                                .dst = dense(builder_.whole(inner), g_.tokens, g_.ffn)});
  builder_.release(up);
  return inner;
}

BufferId LayerWriter::inner_gradient(BufferId d_inner) {
  if (g_.up_parts == 1) return d_inner;
  const std::uint64_t columns = g_.up_parts * g_.ffn;
  const BufferId d_up = new_buffer(g_.tokens * columns, Role::workspace, -1);
  builder_.emit(0, program::Copy{.rows = static_cast<std::uint32_t>(g_.tokens),
                                 .columns = static_cast<std::uint32_t>(g_.ffn),
                                 .batch = static_cast<std::uint32_t>(g_.up_parts),
                                 .src = dense(builder_.whole(d_inner), g_.tokens, g_.ffn),
                                 .dst = matrix(builder_.whole(d_up), {.rows = g_.tokens,
                                                                      .columns = g_.ffn,
                                                                      .row_stride = columns,
                                                                      .batch = g_.up_parts,
                                                                      .batch_stride = g_.ffn})});
  builder_.release(d_inner);
  return d_up;
}

BufferId LayerWriter::vocabulary_forward(int microbatch, BufferId input) {
  builder_.at({.phase = Phase::forward, .layer = -1, .microbatch = microbatch});
  const BufferId logits = new_buffer(g_.tokens * g_.vocabulary, Role::activation, microbatch);
  builder_.emit(0,
                program::Gemm{.m = static_cast<std::uint32_t>(g_.tokens),
                              .n = static_cast<std::uint32_t>(g_.vocabulary),
                              .k = static_cast<std::uint32_t>(g_.hidden),
                              .mode = types_.mode,
                              .a = dense(builder_.whole(input), g_.tokens, g_.hidden),
                              .b = dense(parameters_.vocabulary_weight(), g_.hidden, g_.vocabulary),
                              .d = dense(builder_.whole(logits), g_.tokens, g_.vocabulary)});
  return logits;
}

BufferId LayerWriter::vocabulary_backward(int microbatch, BufferId input, BufferId logits) {
  builder_.at({.phase = Phase::backward, .layer = -1, .microbatch = microbatch});
  const BufferId d_input = first_input_gradient(parameters_.vocabulary_weight(), logits,
                                                g_.vocabulary, program::no_buffer);
  first_weight_gradient(parameters_.vocabulary_gradient(), input, logits, g_.vocabulary,
                        microbatch);
  return d_input;
}

void LayerWriter::done(const Slice& gradient, int microbatch) {
  if (microbatch + 1 == g_.microbatches) gradient_done_(gradient);
}

}  // namespace isoscale::workloads::stack
