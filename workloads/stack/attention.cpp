// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>

#include "workloads/stack/buffers.hpp"
#include "workloads/stack/layer.hpp"
#include "workloads/stack/sequence_parallel.hpp"

namespace isoscale::workloads::stack {
namespace {

using program::BufferId;
using program::Builder;
using program::Gemm;
using program::Matrix;
using program::Role;
using program::Transpose;

/// Returns the operands of attention as views of buffers. A batch covers all pairs of sample and
/// key-value head, with one stride. The `j`-th query heads of all key-value heads form one batched
/// GEMM.
class AttentionViews {
 public:
  AttentionViews(const Builder& builder, const Geometry& g) : builder_(builder), g_(g) {}

  [[nodiscard]] Matrix query(BufferId qkv, std::uint64_t j) const { return column(qkv, j); }
  [[nodiscard]] Matrix key(BufferId qkv) const { return column(qkv, g_.grouped); }
  [[nodiscard]] Matrix value(BufferId qkv) const { return column(qkv, g_.grouped + 1); }

  /// Returns the scores of the `j`-th query heads from a buffer [batch][j][s][s].
  [[nodiscard]] Matrix scores(BufferId buffer, std::uint64_t j) const {
    const std::uint64_t square = g_.sequence * g_.sequence;
    return matrix(builder_.whole(buffer), {.rows = g_.sequence,
                                           .columns = g_.sequence,
                                           .row_stride = g_.sequence,
                                           .offset = j * square,
                                           .batch = batch(),
                                           .batch_stride = g_.grouped * square});
  }
  /// Returns the context of the `j`-th query heads from a buffer [s][batch][j][d].
  [[nodiscard]] Matrix context(BufferId buffer, std::uint64_t j) const {
    return matrix(builder_.whole(buffer), {.rows = g_.sequence,
                                           .columns = g_.head_size,
                                           .row_stride = g_.microbatch * g_.context,
                                           .offset = j * g_.head_size,
                                           .batch = batch(),
                                           .batch_stride = g_.grouped * g_.head_size});
  }
  [[nodiscard]] std::uint64_t batch() const { return g_.microbatch * g_.kv_heads; }

 private:
  /// Returns block `index` of the columns of each key-value head, which are [q.., k, v], from a
  /// buffer [s][batch][..][d].
  [[nodiscard]] Matrix column(BufferId qkv, std::uint64_t index) const {
    return matrix(builder_.whole(qkv), {.rows = g_.sequence,
                                        .columns = g_.head_size,
                                        .row_stride = g_.microbatch * g_.qkv,
                                        .offset = index * g_.head_size,
                                        .batch = batch(),
                                        .batch_stride = (g_.grouped + 2) * g_.head_size});
  }

  const Builder& builder_;
  const Geometry& g_;
};

/// Returns the factor that scales the context. With a softmax it is 1, since rows add up to 1.
/// Without a softmax, a sum of s products of scores and values has variance s, plus s^2 / hidden
/// because all keys and values are products of inputs with the same weights.
double context_scale(const Geometry& g) {
  const auto s = static_cast<double>(g.whole_sequence);
  return g.elementwise ? 1 : 1 / std::sqrt(s + s * s / static_cast<double>(g.hidden));
}

}  // namespace

void LayerWriter::attention_forward(LayerState& state, int layer, int microbatch,
                                    const Saved& saved) {
  state.qkv = new_buffer(g_.tokens * g_.qkv, role_of(saved.states), microbatch);
  first_forward(linear(layer, Tensor::qkv), state.attention_input, state.qkv, microbatch,
                copy_of(saved.states));
  release_if(g_.elementwise && !saved.linear_inputs, state.attention_input);
  state.scores = scores_of(state.qkv, role_of(saved.scores), microbatch);
  state.context =
      new_buffer(g_.tokens * g_.context,
                 g_.gathers() ? Role::workspace : role_of(saved.linear_inputs), microbatch);
  if (g_.cp > 1) {
    ContextRing ring{builder_, g_, types_};
    ring.context(state.qkv, state.scores, state.context, context_scale(g_));
  } else {
    local_context(state);
  }
  release_if(!saved.scores, state.scores);
  release_if(!saved.states, state.qkv);
}

BufferId LayerWriter::scores_of(BufferId qkv, Role role, int microbatch) {
  // The scores of this rank's queries with the keys of the whole sequence.
  const AttentionViews view{builder_, g_};
  const BufferId scores =
      new_buffer(view.batch() * g_.grouped * g_.sequence * g_.whole_sequence, role, microbatch);
  if (g_.cp > 1) {
    ContextRing ring{builder_, g_, types_};
    ring.scores(qkv, scores, 1 / std::sqrt(static_cast<double>(g_.head_size)));
  } else {
    local_scores(qkv, scores);
  }
  if (g_.elementwise) softmax(scores);
  return scores;
}

void LayerWriter::local_scores(BufferId qkv, BufferId scores) {
  const AttentionViews view{builder_, g_};
  const auto s = static_cast<std::uint32_t>(g_.sequence);
  const auto d = static_cast<std::uint32_t>(g_.head_size);
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    builder_.emit(0, Gemm{.m = s,
                          .n = s,
                          .k = d,
                          .batch = static_cast<std::uint32_t>(view.batch()),
                          .transpose_b = Transpose::yes,
                          .mode = types_.mode,
                          .alpha = 1 / std::sqrt(static_cast<double>(d)),
                          .a = view.query(qkv, j),
                          .b = view.key(qkv),
                          .d = view.scores(scores, j)});
  }
}

void LayerWriter::local_context(const LayerState& state) {
  const AttentionViews view{builder_, g_};
  const auto s = static_cast<std::uint32_t>(g_.sequence);
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    builder_.emit(0, Gemm{.m = s,
                          .n = static_cast<std::uint32_t>(g_.head_size),
                          .k = s,
                          .batch = static_cast<std::uint32_t>(view.batch()),
                          .mode = types_.mode,
                          .alpha = context_scale(g_),
                          .a = view.scores(state.scores, j),
                          .b = view.value(state.qkv),
                          .d = view.context(state.context, j)});
  }
}

void LayerWriter::ring_attention_backward(const LayerState& state, BufferId d_context,
                                          BufferId d_scores, BufferId d_qkv) {
  ContextRing ring{builder_, g_, types_};
  const BufferId arrived_values =
      ring.score_gradients(state.qkv, state.scores, d_context, d_scores, context_scale(g_));
  if (g_.elementwise) softmax_gradient(state.scores, d_scores);
  ring.gradients({.qkv = state.qkv,
                  .scores = state.scores,
                  .d_context = d_context,
                  .d_scores = d_scores,
                  .d_qkv = d_qkv,
                  .arrived_values = arrived_values,
                  .score_scale = 1 / std::sqrt(static_cast<double>(g_.head_size)),
                  .context_scale = context_scale(g_)});
}

BufferId LayerWriter::attention_backward(const LayerState& state, BufferId d_context) {
  const BufferId d_scores = new_buffer(builder_.buffer(state.scores).count, Role::workspace, -1);
  const BufferId d_qkv = new_buffer(g_.tokens * g_.qkv, Role::workspace, -1);
  if (g_.cp > 1) {
    ring_attention_backward(state, d_context, d_scores, d_qkv);
  } else {
    local_attention_backward(state, d_context, d_scores, d_qkv);
  }
  builder_.release(d_context);
  builder_.release(d_scores);
  builder_.release(state.scores);
  builder_.release(state.qkv);
  return d_qkv;
}

void LayerWriter::local_attention_backward(const LayerState& state, BufferId d_context,
                                           BufferId d_scores, BufferId d_qkv) {
  const AttentionViews view{builder_, g_};
  const auto batch = static_cast<std::uint32_t>(view.batch());
  const auto s = static_cast<std::uint32_t>(g_.sequence);
  const auto d = static_cast<std::uint32_t>(g_.head_size);
  const double score_scale = 1 / std::sqrt(static_cast<double>(d));
  const auto emit = [&](Gemm gemm) {
    gemm.batch = batch;
    gemm.mode = types_.mode;
    builder_.emit(0, gemm);
  };
  // The query heads of a group share their key and value, so their contributions are added up.
  const auto accumulate = [](std::uint64_t j) { return j == 0 ? 0.0 : 1.0; };
  const auto through_context = [&](std::uint64_t j) {
    emit({.m = s,
          .n = s,
          .k = d,
          .transpose_b = Transpose::yes,
          .alpha = context_scale(g_),
          .a = view.context(d_context, j),
          .b = view.value(state.qkv),
          .d = view.scores(d_scores, j)});
    emit({.m = s,
          .n = d,
          .k = s,
          .transpose_a = Transpose::yes,
          .alpha = context_scale(g_),
          .beta = accumulate(j),
          .a = view.scores(state.scores, j),
          .b = view.context(d_context, j),
          .c = view.value(d_qkv),
          .d = view.value(d_qkv)});
  };
  const auto through_scores = [&](std::uint64_t j) {
    emit({.m = s,
          .n = d,
          .k = s,
          .alpha = score_scale,
          .a = view.scores(d_scores, j),
          .b = view.key(state.qkv),
          .d = view.query(d_qkv, j)});
    emit({.m = s,
          .n = d,
          .k = s,
          .transpose_a = Transpose::yes,
          .alpha = score_scale,
          .beta = accumulate(j),
          .a = view.scores(d_scores, j),
          .b = view.query(state.qkv, j),
          .c = view.key(d_qkv),
          .d = view.key(d_qkv)});
  };
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    through_context(j);
    if (!g_.elementwise) through_scores(j);
  }
  if (!g_.elementwise) return;
  softmax_gradient(state.scores, d_scores);
  for (std::uint64_t j = 0; j < g_.grouped; ++j) through_scores(j);
}

}  // namespace isoscale::workloads::stack
