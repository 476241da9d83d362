// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What forward does not keep, backward computes again (Korthikanti et al., arXiv 2205.05198).
#include "workloads/stack/layer.hpp"
#include "workloads/stack/matrix.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Role;

bool LayerWriter::recomputes_inner() const {
  // Where the activation's result is gathered over tp, it would have to be gathered again.
  return g_.recompute == Recompute::selective && g_.elementwise && !g_.gathers();
}

Saved LayerWriter::saved_by_forward() const {
  if (g_.recompute == Recompute::full) return {};
  Saved saved = saved_for_backward();
  saved.scores = g_.recompute == Recompute::none;
  if (recomputes_inner()) saved.inner = saved.inner_copy = false;
  return saved;
}

Saved LayerWriter::saved_for_backward() const {
  const bool as_stored = !types_.casts_operands();  // else casts are kept instead
  return {.states = true,
          .linear_inputs = as_stored,
          .scores = true,
          .inner = as_stored,
          .inner_copy = true};
}

void LayerWriter::recompute_layer(LayerState& state, int layer, int microbatch) {
  if (g_.recompute != Recompute::full) return;
  const BufferId output =
      layer_forward(state, layer, microbatch, Role::workspace, saved_for_backward());
  builder_.release(output);
}

void LayerWriter::recompute_inner(LayerState& state, int layer, int microbatch) {
  if (!recomputes_inner()) return;
  const Saved saved = saved_for_backward();
  state.inner = activation(state.up, role_of(saved.inner), microbatch);
  linear_.keep_input(linear(layer, Tensor::down), microbatch,
                     dense(builder_.whole(state.inner), g_.tokens, g_.ffn));
  release_if(!saved.inner, state.inner);
}

void LayerWriter::recompute_scores(LayerState& state, int microbatch) {
  if (g_.recompute != Recompute::selective) return;
  state.scores = scores_of(state.qkv, Role::activation, microbatch);
}

}  // namespace isoscale::workloads::stack
