// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/layer.hpp"

#include <utility>

#include "workloads/stack/matrix.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Phase;
using program::Role;

LayerWriter::LayerWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
                         const Parameters& parameters, GradientDone gradient_done)
    : builder_(builder),
      g_(geometry),
      types_(types),
      parameters_(parameters),
      linear_(builder, geometry, types),
      gradient_done_(std::move(gradient_done)) {}

BufferId LayerWriter::new_buffer(std::uint64_t count, Role role, int microbatch) {
  return builder_.allocate({.dtype = types_.compute,
                            .role = role,
                            .microbatch = role == Role::activation ? microbatch : -1,
                            .count = count});
}

Linear LayerWriter::linear(int layer, Tensor tensor) const {
  const bool is_second = tensor == Tensor::projection || tensor == Tensor::down;
  Linear result{.weight = parameters_.weight(layer, tensor),
                .gradient = parameters_.gradient(layer, tensor),
                .operands = types_.casts_operands() ? Operands::cast : Operands::stored};
  if (!is_second) {
    result.inputs = g_.hidden;
    result.outputs = tensor == Tensor::qkv ? g_.qkv : g_.up_parts * g_.ffn;
    return result;
  }
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t columns = tensor == Tensor::projection ? g_.context : g_.ffn;
  result.inputs = g_.gathers() ? columns * tp : columns;
  result.outputs = g_.gathers() ? g_.hidden / tp : g_.hidden;
  result.gain = g_.residual_gain;
  return result;
}

Linear LayerWriter::vocabulary() const {
  return {.weight = parameters_.vocabulary_weight(),
          .gradient = parameters_.vocabulary_gradient(),
          .inputs = g_.hidden,
          .outputs = g_.vocabulary};
}

Role LayerWriter::input_role() const { return keeps_inputs() ? Role::activation : Role::workspace; }

void LayerWriter::release_after_forward(BufferId input) {
  if (!keeps_inputs()) builder_.release(input);
}

void LayerWriter::release_after_backward(BufferId input) {
  if (keeps_inputs()) builder_.release(input);
}

BufferId LayerWriter::forward(int layer, int microbatch, BufferId input, Role output_role) {
  builder_.at({.phase = Phase::forward, .layer = g_.first_layer + layer, .microbatch = microbatch});
  LayerState state{};
  state.input = input;
  attention_forward(state, layer, microbatch);
  if (g_.gathers()) {
    const BufferId part = state.context;
    state.context = gather_columns(part, g_.context, input_role(), microbatch);
    builder_.release(part);
  }
  state.middle = second_forward(linear(layer, Tensor::projection), state.context, input,
                                input_role(), microbatch);
  release_after_forward(state.context);
  state.inner = inner_forward(layer, microbatch, state.middle);
  if (g_.gathers()) {
    const BufferId part = state.inner;
    state.inner = gather_columns(part, g_.ffn, input_role(), microbatch);
    builder_.release(part);
  }
  const BufferId output = second_forward(linear(layer, Tensor::down), state.inner, state.middle,
                                         output_role, microbatch);
  release_after_forward(state.inner);
  release_after_forward(state.middle);
  kept_[{layer, microbatch}] = state;
  return output;
}

BufferId LayerWriter::backward(int layer, int microbatch, BufferId gradient,
                               Ownership gradient_ownership, InputGradient order) {
  builder_.at(
      {.phase = Phase::backward, .layer = g_.first_layer + layer, .microbatch = microbatch});
  const LayerState state = kept_.at({layer, microbatch});
  const Linear down = linear(layer, Tensor::down), up = linear(layer, Tensor::up);
  const Linear projection = linear(layer, Tensor::projection), qkv = linear(layer, Tensor::qkv);
  const auto whole = [&](BufferId buffer, const Linear& of) {
    return dense(builder_.whole(buffer), g_.tokens, of.outputs);
  };

  // MLP: dZ -> d inner -> dY
  const LinearWriter::Operand d_output = second_gradient(down, gradient);
  const BufferId d_inner = second_input_gradient(down, d_output);
  weight_gradient(down, state.inner, d_output, microbatch);
  linear_.release(d_output);
  release_after_backward(state.inner);
  const BufferId d_up = inner_gradient(d_inner);
  const LinearWriter::Operand d_up_operand = linear_.gradient(up, whole(d_up, up));
  const BufferId d_middle = first_input_gradient(up, d_up_operand, gradient);
  if (gradient_ownership == Ownership::released) builder_.release(gradient);
  weight_gradient(up, state.middle, d_up_operand, microbatch);
  linear_.release(d_up_operand);
  builder_.release(d_up);
  release_after_backward(state.middle);

  // Attention: dY -> d context -> d QKV -> dX
  const LinearWriter::Operand d_projection = second_gradient(projection, d_middle);
  const BufferId d_context = second_input_gradient(projection, d_projection);
  weight_gradient(projection, state.context, d_projection, microbatch);
  linear_.release(d_projection);
  release_after_backward(state.context);
  const BufferId d_qkv = attention_backward(state, d_context);
  const LinearWriter::Operand d_qkv_operand = linear_.gradient(qkv, whole(d_qkv, qkv));
  if (order == InputGradient::last) {
    weight_gradient(qkv, state.input, d_qkv_operand, microbatch);
  }
  const BufferId d_input = first_input_gradient(qkv, d_qkv_operand, d_middle);
  builder_.release(d_middle);
  if (order == InputGradient::first) {
    weight_gradient(qkv, state.input, d_qkv_operand, microbatch);
  }
  linear_.release(d_qkv_operand);
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
      new_buffer(g_.tokens * columns, gated ? Role::workspace : input_role(), microbatch);
  linear_.forward(linear(layer, Tensor::up), microbatch,
                  dense(builder_.whole(middle), g_.tokens, g_.hidden),
                  dense(builder_.whole(up), g_.tokens, columns), {});
  if (!gated) return up;
  // inner = gate + up: the sum stands in for the gated product and moves the same bytes.
  const BufferId inner = new_buffer(g_.tokens * g_.ffn, input_role(), microbatch);
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
  linear_.forward(vocabulary(), microbatch, dense(builder_.whole(input), g_.tokens, g_.hidden),
                  dense(builder_.whole(logits), g_.tokens, g_.vocabulary), {});
  return logits;
}

BufferId LayerWriter::vocabulary_backward(int microbatch, BufferId input, BufferId logits) {
  builder_.at({.phase = Phase::backward, .layer = -1, .microbatch = microbatch});
  const Linear projection = vocabulary();
  const LinearWriter::Operand d_logits =
      linear_.gradient(projection, dense(builder_.whole(logits), g_.tokens, g_.vocabulary));
  const BufferId d_input = first_input_gradient(projection, d_logits, program::no_buffer);
  weight_gradient(projection, input, d_logits, microbatch);
  return d_input;
}

void LayerWriter::weight_gradient(const Linear& linear, BufferId in,
                                  const LinearWriter::Operand& d_out, int microbatch) {
  linear_.weight_gradient(linear, microbatch, dense(builder_.whole(in), g_.tokens, linear.inputs),
                          d_out);
  if (microbatch + 1 == g_.microbatches) gradient_done_(linear.gradient);
}

}  // namespace isoscale::workloads::stack
