// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/layer.hpp"

namespace isoscale::workloads::stack {

LayerWriter::LayerWriter(Builder& builder, const Geometry& geometry, const Types& types,
                         const Parameters& parameters, const Weights& weights, Gradients& gradients,
                         const Request& request)
    : OpWriter(builder, geometry, types),
      parameters_(parameters),
      weights_(weights),
      gradients_(gradients),
      linear_(builder, geometry, types),
      experts_(builder, geometry, types, parameters, request,
               [this](const Slice& gradient) { gradients_.done(gradient, g_.microbatches - 1); }) {}

Linear LayerWriter::linear(int layer, Tensor tensor) const {
  const bool is_second = tensor == Tensor::projection || tensor == Tensor::down;
  Linear result{.weight = weights_.of(layer, tensor),
                .gradient = parameters_.gradient(layer, tensor),
                .place = parameters_.weight(layer, tensor).offset,
                .weight_stays = weights_.are_resident(),
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
  return {.weight = weights_.of(Parameters::vocabulary, {}),
          .gradient = parameters_.gradient(Parameters::vocabulary, {}),
          .inputs = g_.hidden,
          .outputs = g_.vocabulary};
}

BufferId LayerWriter::forward(int layer, int microbatch, BufferId input, KeptFor output_for) {
  builder_.at({.phase = Phase::forward, .layer = g_.global_layer(layer), .microbatch = microbatch});
  LayerState state{};
  state.input = input;
  const BufferId output = layer_forward(state, layer, microbatch, output_for, saved_by_forward());
  kept_[{layer, microbatch}] = state;
  return output;
}

BufferId LayerWriter::layer_forward(LayerState& state, int layer, int microbatch,
                                    KeptFor output_for, const Saved& saved) {
  const bool keeps_middle = g_.options.elementwise ? saved.states : saved.linear_inputs;
  state.attention_input = norm(state.input, state.attention_inverse, microbatch, saved);
  attention_forward(state, layer, microbatch, saved);
  if (g_.gathers()) {
    state.context =
        gather_columns(state.context, g_.context, kept_if(saved.linear_inputs, microbatch));
  }
  state.middle = second_forward(
      linear(layer, Tensor::projection), state.context, state.input, microbatch,
      kept_if(keeps_middle && !experts_.has_experts(), microbatch), copy_of(saved.states));
  if (experts_.has_experts()) return experts_.forward(layer, microbatch, state.middle, output_for);
  state.mlp_input = norm(state.middle, state.mlp_inverse, microbatch, saved);
  inner_forward(state, layer, microbatch, saved);
  if (g_.gathers()) {
    state.inner = gather_columns(state.inner, g_.ffn, kept_if(saved.inner, microbatch));
  }
  return second_forward(linear(layer, Tensor::down), state.inner, state.middle, microbatch,
                        output_for, copy_of(saved.inner_copy));
}

BufferId LayerWriter::backward(int layer, int microbatch, BufferId gradient, InputGradient order) {
  builder_.at(
      {.phase = Phase::backward, .layer = g_.global_layer(layer), .microbatch = microbatch});
  LayerState state = kept_.extract({layer, microbatch}).mapped();
  if (g_.options.recompute == Recompute::full) {
    static_cast<void>(layer_forward(state, layer, microbatch, std::nullopt, saved_for_backward()));
  }
  const BufferId d_middle = mlp_backward(state, layer, microbatch, gradient);
  return attention_part_backward(state, layer, microbatch, d_middle, order);
}

/// Computes dY, the gradient of the MLP's input, from dZ.
BufferId LayerWriter::mlp_backward(LayerState& state, int layer, int microbatch,
                                   BufferId gradient) {
  if (experts_.has_experts()) {
    const auto later = [=, this](std::function<void()> write) {
      after_weight_gradients(layer, microbatch, std::move(write));
    };
    return experts_.backward(layer, microbatch, gradient, later);
  }
  const Saved saved = saved_for_backward();
  const Linear down = linear(layer, Tensor::down), up = linear(layer, Tensor::up);
  if (recomputes_inner()) {
    state.inner = activation(state.up, kept_if(saved.inner, microbatch));
    linear_.keep_input(down, microbatch, all_rows(state.inner, g_.ffn));
  }
  const BufferId d_inner = second_backward(layer, down, state.inner, gradient, microbatch);
  const BufferId d_up = inner_gradient(state, d_inner);
  return normed_backward(
      {.layer = layer, .microbatch = microbatch, .linear = up, .in = state.mlp_input},
      linear_.gradient(up, all_rows(d_up, up.outputs)), gradient, InputGradient::first,
      {.x = state.middle, .inverse = state.mlp_inverse});
}

/// Computes dX, the gradient of the layer's input, from dY.
BufferId LayerWriter::attention_part_backward(LayerState& state, int layer, int microbatch,
                                              BufferId d_middle, InputGradient order) {
  const Linear projection = linear(layer, Tensor::projection), qkv = linear(layer, Tensor::qkv);
  const BufferId d_context =
      second_backward(layer, projection, state.context, d_middle, microbatch);
  if (g_.options.recompute == Recompute::selective) {
    state.scores = scores_of(state.qkv, microbatch);
  }
  const BufferId d_qkv = attention_backward(state, d_context);
  return normed_backward(
      {.layer = layer, .microbatch = microbatch, .linear = qkv, .in = state.attention_input},
      linear_.gradient(qkv, all_rows(d_qkv, qkv.outputs)), d_middle, order,
      {.x = state.input, .inverse = state.attention_inverse});
}

BufferId LayerWriter::normed_backward(const First& first, const Operand& d_out, BufferId bypass,
                                      InputGradient order, const Normed& normed) {
  if (!g_.options.elementwise) return first_backward(first, d_out, bypass, order);
  const BufferId d_in = first_backward(first, d_out, no_buffer, order);
  norm_gradient(d_in, normed.x, normed.inverse, bypass);
  return d_in;
}

void LayerWriter::weight_gradients(int layer, int microbatch) {
  builder_.at({.phase = Phase::backward,
               .layer = layer == Parameters::vocabulary ? -1 : g_.global_layer(layer),
               .microbatch = microbatch});
  const auto written = put_off_.extract({layer, microbatch});
  for (const auto& write : written.mapped()) write();
}

void LayerWriter::inner_forward(LayerState& state, int layer, int microbatch, const Saved& saved) {
  const bool gated = g_.up_parts > 1;
  // The activation's output is kept here, unless it is gathered over tp. In that case the gathered
  // copy is kept.
  const KeptFor inner_for = kept_if(saved.inner && !g_.gathers(), microbatch);
  const bool keeps_up = g_.options.elementwise ? saved.states : !gated && saved.inner;
  state.up = new_buffer(g_.tokens * g_.up_parts * g_.ffn, kept_if(keeps_up, microbatch));
  first_forward(linear(layer, Tensor::up), state.mlp_input, state.up, microbatch,
                copy_of(saved.states));
  if (g_.options.elementwise) {
    state.inner = activation(state.up, inner_for);
    return;
  }
  if (!gated) {
    state.inner = state.up;
    return;
  }
  state.inner = new_buffer(g_.tokens * g_.ffn, kept_if(saved.inner, microbatch));
  add_gate(g_.tokens, state.up, state.inner);
}

BufferId LayerWriter::inner_gradient(const LayerState& state, BufferId d_inner) {
  if (g_.options.elementwise) return activation_gradient(state.up, d_inner);
  if (g_.up_parts == 1) return d_inner;
  const BufferId d_up = new_buffer(g_.tokens * g_.up_parts * g_.ffn);
  copy_to_gate(g_.tokens, d_inner, d_up);
  return d_up;
}

BufferId LayerWriter::vocabulary_forward(int microbatch, BufferId input) {
  builder_.at({.phase = Phase::forward, .layer = -1, .microbatch = microbatch});
  program::Buffer buffer = buffer_of(g_.tokens * g_.vocabulary, microbatch);
  if (g_.trainer != Trainer::none) {
    // Training software computes the loss in f32, and keeps the logits both in f32 and in the
    // compute type.
    buffer.modelled_bytes = buffer.count * (program::element_size(buffer.dtype) +
                                            program::element_size(types_.accumulate));
  }
  const BufferId logits = builder_.temporary(buffer);
  first_forward(vocabulary(), input, logits, microbatch);
  return logits;
}

BufferId LayerWriter::vocabulary_backward(int microbatch, BufferId input, BufferId logits) {
  builder_.at({.phase = Phase::backward, .layer = -1, .microbatch = microbatch});
  const Linear projection = vocabulary();
  const Operand d_logits = linear_.gradient(projection, all_rows(logits, g_.vocabulary));
  return first_backward({.layer = Parameters::vocabulary,
                         .microbatch = microbatch,
                         .linear = projection,
                         .in = input},
                        d_logits, no_buffer, InputGradient::first);
}

Linear LayerWriter::with_gradient(const Linear& linear, int microbatch) {
  const GradientTarget target = gradients_.target(linear.gradient, microbatch);
  Linear result = linear;
  result.gradient = target.slice;
  result.gradient_beta = target.beta;
  return result;
}

// The functions below decide which activations forward keeps and which ones backward recomputes
// (Korthikanti et al., arXiv 2205.05198).

bool LayerWriter::recomputes_inner() const {
  // With recompute=selective, an activation's output that was gathered over tp is kept, since
  // recomputation would have to gather it again.
  return g_.options.recompute == Recompute::selective && g_.options.elementwise && !g_.gathers();
}

Saved LayerWriter::saved_by_forward() const {
  if (g_.options.recompute == Recompute::full) return {};
  Saved saved = saved_for_backward();
  saved.scores = g_.options.recompute == Recompute::none;
  if (recomputes_inner()) saved.inner = saved.inner_copy = false;
  return saved;
}

Saved LayerWriter::saved_for_backward() const {
  const bool as_stored = !types_.casts_operands();  // otherwise cast copies are kept instead
  return {.states = true,
          .linear_inputs = as_stored,
          .scores = true,
          .inner = as_stored,
          .inner_copy = true};
}

// The functions below write norms and activations. These are bound by memory bandwidth, so each op
// reads and writes its operands once, in place where possible. The GEMM before a norm adds the
// residual, and the norm's gradient adds the gradient of the residual.

namespace {

program::ActivationKind kind_of(const Geometry& g) {
  return g.up_parts > 1 ? program::ActivationKind::swiglu : program::ActivationKind::gelu;
}

}  // namespace

BufferId LayerWriter::norm(BufferId x, BufferId& inverse, int microbatch, const Saved& saved) {
  if (!g_.options.elementwise) return x;
  const BufferId y = new_buffer(g_.activation(), kept_if(saved.linear_inputs, microbatch));
  inverse = builder_.temporary({.dtype = types_.compute == DType::f64 ? DType::f64 : DType::f32,
                                .role = saved.states ? Role::activation : Role::workspace,
                                .microbatch = saved.states ? microbatch : -1,
                                .count = g_.shard_tokens});
  builder_.emit(0, program::Norm{.rows = extent(g_.shard_tokens),
                                 .columns = extent(g_.hidden),
                                 .x = dense(x, g_.shard_tokens, g_.hidden),
                                 .y = dense(y, g_.shard_tokens, g_.hidden),
                                 .inverse = builder_.whole(inverse)});
  return y;
}

void LayerWriter::norm_gradient(BufferId gradient, BufferId x, BufferId inverse, BufferId bypass) {
  const auto rows = [&](BufferId buffer) { return dense(buffer, g_.shard_tokens, g_.hidden); };
  builder_.emit(0, program::NormGradient{.rows = extent(g_.shard_tokens),
                                         .columns = extent(g_.hidden),
                                         .dy = rows(gradient),
                                         .s = rows(x),
                                         .addend = rows(bypass),
                                         .dx = rows(gradient),
                                         .inverse = builder_.whole(inverse)});
}

BufferId LayerWriter::activation(BufferId up, KeptFor kept) {
  const BufferId inner = new_buffer(g_.tokens * g_.ffn, kept);
  program::Activation op{.kind = kind_of(g_),
                         .rows = extent(g_.tokens),
                         .columns = extent(g_.ffn),
                         .x = gate_part(up, g_.tokens, 0),
                         .y = dense(inner, g_.tokens, g_.ffn)};
  if (g_.up_parts > 1) op.up = gate_part(up, g_.tokens, 1);
  builder_.emit(0, op);
  return inner;
}

BufferId LayerWriter::activation_gradient(BufferId up, BufferId gradient) {
  const bool gated = g_.up_parts > 1;
  program::ActivationGradient op{.kind = kind_of(g_),
                                 .rows = extent(g_.tokens),
                                 .columns = extent(g_.ffn),
                                 .dy = dense(gradient, g_.tokens, g_.ffn),
                                 .x = gate_part(up, g_.tokens, 0)};
  op.dx = gated ? op.x : op.dy;
  if (gated) op.up = op.dup = gate_part(up, g_.tokens, 1);
  builder_.emit(0, op);
  return gated ? up : gradient;
}

}  // namespace isoscale::workloads::stack
