// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>

#include "workloads/stack/layer.hpp"
#include "workloads/stack/matrix.hpp"

namespace isoscale::workloads::stack {
namespace {

using program::BufferId;
using program::Builder;
using program::Gemm;
using program::Matrix;
using program::Role;
using program::Transpose;

/// Views of the attention operands. The batch runs over (sample, key-value head) with one stride;
/// the `j`-th query head of every key-value head is one batched GEMM.
class AttentionViews {
 public:
  AttentionViews(const Builder& builder, const Geometry& g) : builder_(builder), g_(g) {}

  [[nodiscard]] Matrix query(BufferId qkv, std::uint64_t j) const { return column(qkv, j); }
  [[nodiscard]] Matrix key(BufferId qkv) const { return column(qkv, g_.grouped); }
  [[nodiscard]] Matrix value(BufferId qkv) const { return column(qkv, g_.grouped + 1); }

  /// [batch][j][s][s]
  [[nodiscard]] Matrix scores(BufferId buffer, std::uint64_t j) const {
    const std::uint64_t square = g_.sequence * g_.sequence;
    return matrix(builder_.whole(buffer), {.rows = g_.sequence,
                                           .columns = g_.sequence,
                                           .row_stride = g_.sequence,
                                           .offset = j * square,
                                           .batch = batch(),
                                           .batch_stride = g_.grouped * square});
  }
  /// [s][batch][j][d]
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
  /// Column block `index` of each head's [q.., k, v] columns of [s][batch][..][d].
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

}  // namespace

void LayerWriter::attention_forward(LayerState& state, int layer, int microbatch) {
  state.qkv = new_buffer(g_.tokens * g_.qkv, Role::activation, microbatch);
  linear_.forward(linear(layer, Tensor::qkv), microbatch,
                  dense(builder_.whole(state.input), g_.tokens, g_.hidden),
                  dense(builder_.whole(state.qkv), g_.tokens, g_.qkv), {});

  const AttentionViews view{builder_, g_};
  const auto batch = static_cast<std::uint32_t>(view.batch());
  const auto s = static_cast<std::uint32_t>(g_.sequence);
  const auto d = static_cast<std::uint32_t>(g_.head_size);
  const std::uint64_t square = g_.sequence * g_.sequence;
  state.scores = new_buffer(view.batch() * g_.grouped * square, Role::activation, microbatch);
  state.context =
      new_buffer(g_.tokens * g_.context, g_.gathers() ? Role::workspace : input_role(), microbatch);
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    builder_.emit(0, Gemm{.m = s,
                          .n = s,
                          .k = d,
                          .batch = batch,
                          .transpose_b = Transpose::yes,
                          .mode = types_.mode,
                          .alpha = 1 / std::sqrt(static_cast<double>(d)),
                          .a = view.query(state.qkv, j),
                          .b = view.key(state.qkv),
                          .d = view.scores(state.scores, j)});
  }
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    builder_.emit(0, Gemm{.m = s,
                          .n = d,
                          .k = s,
                          .batch = batch,
                          .mode = types_.mode,
                          .alpha = 1 / std::sqrt(static_cast<double>(s)),
                          .a = view.scores(state.scores, j),
                          .b = view.value(state.qkv),
                          .d = view.context(state.context, j)});
  }
}

BufferId LayerWriter::attention_backward(const LayerState& state, BufferId d_context) {
  const AttentionViews view{builder_, g_};
  const auto batch = static_cast<std::uint32_t>(view.batch());
  const auto s = static_cast<std::uint32_t>(g_.sequence);
  const auto d = static_cast<std::uint32_t>(g_.head_size);
  const double score_scale = 1 / std::sqrt(static_cast<double>(d));
  const double context_scale = 1 / std::sqrt(static_cast<double>(s));
  const BufferId d_scores = new_buffer(builder_.buffer(state.scores).count, Role::workspace, -1);
  const BufferId d_qkv = new_buffer(g_.tokens * g_.qkv, Role::workspace, -1);
  const auto emit = [&](Gemm gemm) {
    gemm.batch = batch;
    gemm.mode = types_.mode;
    builder_.emit(0, gemm);
  };
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    const double accumulate = j == 0 ? 0 : 1;  // query heads of a group share key and value
    emit({.m = s,
          .n = s,
          .k = d,
          .transpose_b = Transpose::yes,
          .alpha = context_scale,
          .a = view.context(d_context, j),
          .b = view.value(state.qkv),
          .d = view.scores(d_scores, j)});
    emit({.m = s,
          .n = d,
          .k = s,
          .transpose_a = Transpose::yes,
          .alpha = context_scale,
          .beta = accumulate,
          .a = view.scores(state.scores, j),
          .b = view.context(d_context, j),
          .c = view.value(d_qkv),
          .d = view.value(d_qkv)});
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
          .beta = accumulate,
          .a = view.scores(d_scores, j),
          .b = view.query(state.qkv, j),
          .c = view.key(d_qkv),
          .d = view.key(d_qkv)});
  }
  builder_.release(d_context);
  builder_.release(d_scores);
  builder_.release(state.scores);
  builder_.release(state.qkv);
  return d_qkv;
}

}  // namespace isoscale::workloads::stack
