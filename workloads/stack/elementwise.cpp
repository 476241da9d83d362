// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Norms and activations. They are bound by memory: each op reads and writes its operands
// once, in place where possible. The residual is added by the GEMM before a norm, and its gradient
// by the norm's gradient.
#include "workloads/stack/layer.hpp"

namespace isoscale::workloads::stack {

namespace {

program::ActivationKind kind_of(const Geometry& g) {
  return g.up_parts > 1 ? program::ActivationKind::swiglu : program::ActivationKind::gelu;
}

}  // namespace

BufferId LayerWriter::norm(BufferId x, BufferId& inverse, int microbatch, const Saved& saved) {
  if (!g_.elementwise) return x;
  const BufferId y = new_buffer(g_.activation(), role_of(saved.linear_inputs), microbatch);
  inverse = builder_.allocate({.dtype = types_.compute == DType::f64 ? DType::f64 : DType::f32,
                               .role = role_of(saved.states),
                               .microbatch = saved.states ? microbatch : -1,
                               .count = g_.shard_tokens});
  builder_.emit(0, program::Norm{.rows = extent(g_.shard_tokens),
                                 .columns = extent(g_.hidden),
                                 .x = dense(x, g_.shard_tokens, g_.hidden),
                                 .y = dense(y, g_.shard_tokens, g_.hidden),
                                 .inverse = builder_.whole(inverse)});
  if (!saved.states) builder_.release(inverse);
  return y;
}

void LayerWriter::norm_gradient(BufferId gradient, BufferId x, BufferId inverse, BufferId bypass) {
  if (!g_.elementwise) return;
  const auto rows = [&](BufferId buffer) { return dense(buffer, g_.shard_tokens, g_.hidden); };
  builder_.emit(0, program::NormGradient{.rows = extent(g_.shard_tokens),
                                         .columns = extent(g_.hidden),
                                         .dy = rows(gradient),
                                         .s = rows(x),
                                         .addend = rows(bypass),
                                         .dx = rows(gradient),
                                         .inverse = builder_.whole(inverse)});
  builder_.release(inverse);
}

BufferId LayerWriter::activation(BufferId up, Role role, int microbatch) {
  const BufferId inner = new_buffer(g_.tokens * g_.ffn, role, microbatch);
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
  builder_.release(gated ? gradient : up);
  return gated ? up : gradient;
}

}  // namespace isoscale::workloads::stack
