// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>

#include "workloads/stack/layer.hpp"

namespace isoscale::workloads::stack {
namespace {

/// Returns the factor that scales the context (scores times values). With a softmax the factor is
/// 1, since each row of its results adds up to 1. Without a softmax, an element of the context is a
/// sum over the s positions of the sequence. Its variance would be s if keys and values were
/// independent. They are not: the key and the value of a position are made from the same input,
/// with the same weights at all positions. This adds s^2 / hidden to the variance. The factor makes
/// the variance 1.
double context_scale(const Geometry& g) {
  const auto s = static_cast<double>(g.whole_sequence);
  return g.options.elementwise ? 1 : 1 / std::sqrt(s + s * s / static_cast<double>(g.hidden));
}

double score_scale(const Geometry& g) { return 1 / std::sqrt(static_cast<double>(g.head_size)); }

}  // namespace

BufferId Attention::pack(BufferId qkv, Part part) {
  const BufferId block = new_block();
  // The keys (or values) of all positions, samples and heads are rows of QKV with d columns each
  // and a single stride, so one copy packs them.
  const std::uint64_t rows = g_.sequence * batch();
  const std::uint64_t index = g_.grouped + (part == Part::key ? 0 : 1);
  copy(builder_, builder_.stream("cp"), rows, g_.head_size,
       matrix(builder_.whole(qkv), {.rows = rows,
                                    .columns = g_.head_size,
                                    .row_stride = (g_.grouped + 2) * g_.head_size,
                                    .offset = index * g_.head_size}),
       dense(block, rows, g_.head_size));
  return block;
}

BufferId Attention::pass_on(BufferId block) {
  const BufferId arriving = new_block();
  stack::pass_on(builder_, builder_.stream("cp"), mesh::Axis::cp, builder_.whole(block),
                 builder_.whole(arriving));
  return arriving;
}

template <class Visit>
void Attention::for_each_block(BufferId qkv, Part part, const Visit& visit) {
  BufferId block = g_.cp > 1 ? pack(qkv, part) : no_buffer;
  for (int i = 0; i < g_.cp; ++i) {
    const BufferId following = i + 1 < g_.cp ? pass_on(block) : no_buffer;
    visit(i, i == 0 ? own(qkv, part) : block_of(block));
    release_if(block != no_buffer, block);
    block = following;
  }
}

Matrix Attention::heads_of(BufferId buffer, std::uint64_t row_stride, std::uint64_t index,
                           std::uint64_t blocks_per_head) const {
  return matrix(builder_.whole(buffer), {.rows = g_.sequence,
                                         .columns = g_.head_size,
                                         .row_stride = row_stride,
                                         .offset = index * g_.head_size,
                                         .batch = batch(),
                                         .batch_stride = blocks_per_head * g_.head_size});
}

Matrix Attention::own(BufferId qkv, Part part) const {
  return column(qkv, g_.grouped + (part == Part::key ? 0 : 1));
}

Matrix Attention::scores_of(BufferId scores, int block, std::uint64_t j) const {
  const std::uint64_t head = g_.sequence * g_.whole_sequence;
  return matrix(builder_.whole(scores),
                {.rows = g_.sequence,
                 .columns = g_.sequence,
                 .row_stride = g_.whole_sequence,
                 .offset = j * head + static_cast<std::uint64_t>(block) * g_.sequence,
                 .batch = batch(),
                 .batch_stride = g_.grouped * head});
}

void Attention::emit(Gemm form, double scale, const Matrix& a, const Matrix& b, const Matrix& d) {
  form.batch = extent(batch());
  form.mode = types_.mode;
  form.alpha = scale;
  form.a = a;
  form.b = b;
  form.d = d;
  builder_.emit(0, form);
}

void Attention::multiply(const Matrix& rows, const Matrix& others, double scale,
                         const Matrix& scores) {
  const std::uint32_t s = extent(g_.sequence), d = extent(g_.head_size);
  emit({.m = s, .n = s, .k = d, .transpose_b = Transpose::yes}, scale, rows, others, scores);
}

void Attention::weigh(const Matrix& scores, const Matrix& rows, double scale, int block,
                      const Matrix& result) {
  const std::uint32_t s = extent(g_.sequence), d = extent(g_.head_size);
  const Matrix sum = g_.cp > 1 ? result : Matrix{};  // a single block needs no addend
  const double beta = block == 0 ? 0.0 : 1.0;
  emit({.m = s, .n = d, .k = s, .beta = beta, .c = sum}, scale, scores, rows, result);
}

void Attention::add_gradient(const Matrix& scores, const Matrix& rows, double scale,
                             std::uint64_t j, BufferId arrived, const Matrix& gradient) {
  // The query heads of a group share their key and value, so their contributions are added up.
  const bool starts = j == 0 && arrived == no_buffer;
  const std::uint32_t s = extent(g_.sequence), d = extent(g_.head_size);
  const Matrix addend = j == 0 && !starts ? block_of(arrived) : gradient;
  Gemm form{.m = s, .n = d, .k = s, .transpose_a = Transpose::yes, .c = addend};
  form.beta = starts ? 0.0 : 1.0;
  emit(form, scale, scores, rows, gradient);
}

void Attention::block_gradient(BufferId scores, int block, const Rows& rows, double scale,
                               BufferId arrived, const Matrix& gradient) {
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    add_gradient(scores_of(scores, block, j), rows(j), scale, j, arrived, gradient);
  }
}

BufferId Attention::pass_gradient(BufferId scores, int block, const Rows& rows, double scale,
                                  BufferId arrived) {
  const BufferId sum = new_block();
  block_gradient(scores, block, rows, scale, arrived, block_of(sum));
  release_if(arrived != no_buffer, arrived);
  const BufferId next = pass_on(sum);
  builder_.release(sum);
  return next;
}

void Attention::scores(BufferId qkv, BufferId scores) {
  for_each_block(qkv, Part::key, [&](int i, const Matrix& keys) {
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      multiply(query(qkv, j), keys, score_scale(g_), scores_of(scores, i, j));
    }
  });
  if (g_.options.elementwise) softmax(scores);
}

void Attention::context(BufferId qkv, BufferId scores, BufferId context) {
  for_each_block(qkv, Part::value, [&](int i, const Matrix& values) {
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      weigh(scores_of(scores, i, j), values, context_scale(g_), i, context_of(context, j));
    }
  });
}

void Attention::backward(const Backward& of) {
  if (g_.cp > 1) return backward_on_ring(of);
  const auto through_context = [&](std::uint64_t j) {
    const Matrix d_context = context_of(of.d_context, j);
    multiply(d_context, own(of.qkv, Part::value), context_scale(g_), scores_of(of.d_scores, 0, j));
    add_gradient(scores_of(of.scores, 0, j), d_context, context_scale(g_), j, no_buffer,
                 own(of.d_qkv, Part::value));
  };
  const auto through_scores = [&](std::uint64_t j) {
    const Matrix d_scores = scores_of(of.d_scores, 0, j);
    weigh(d_scores, own(of.qkv, Part::key), score_scale(g_), 0, query(of.d_qkv, j));
    add_gradient(d_scores, query(of.qkv, j), score_scale(g_), j, no_buffer,
                 own(of.d_qkv, Part::key));
  };
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {
    through_context(j);
    if (!g_.options.elementwise) through_scores(j);
  }
  if (!g_.options.elementwise) return;
  softmax_gradient(of.scores, of.d_scores);
  for (std::uint64_t j = 0; j < g_.grouped; ++j) through_scores(j);
}

/// Writes the backward pass on the ring of cp. A block has the keys or the values of one rank. Its
/// gradient is sent around the ring, and each rank adds its contribution. The gradient of a rank's
/// own block is completed last, since its way around the ring ends on this rank.
void Attention::backward_on_ring(const Backward& of) {
  const Rows contexts = [&](std::uint64_t j) { return context_of(of.d_context, j); };
  const Rows queries = [&](std::uint64_t j) { return query(of.qkv, j); };
  BufferId arrived_values = no_buffer, arrived_keys = no_buffer;
  for_each_block(of.qkv, Part::value, [&](int i, const Matrix& values) {
    if (i > 0) {
      arrived_values = pass_gradient(of.scores, i, contexts, context_scale(g_), arrived_values);
    }
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {  // these GEMMs hide the message
      multiply(contexts(j), values, context_scale(g_), scores_of(of.d_scores, i, j));
    }
  });
  if (g_.options.elementwise) softmax_gradient(of.scores, of.d_scores);
  for_each_block(of.qkv, Part::key, [&](int i, const Matrix& keys) {
    if (i > 0) {
      arrived_keys = pass_gradient(of.d_scores, i, queries, score_scale(g_), arrived_keys);
    }
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      weigh(scores_of(of.d_scores, i, j), keys, score_scale(g_), i, query(of.d_qkv, j));
    }
    if (i > 0) return;
    // The summed gradient of the values has arrived during the products above.
    block_gradient(of.scores, 0, contexts, context_scale(g_), arrived_values,
                   own(of.d_qkv, Part::value));
    builder_.release(arrived_values);
  });
  block_gradient(of.d_scores, 0, queries, score_scale(g_), arrived_keys, own(of.d_qkv, Part::key));
  builder_.release(arrived_keys);
}

void Attention::softmax(BufferId scores) {
  const std::uint64_t rows = builder_.buffer(scores).count / g_.whole_sequence;
  const Matrix all = dense(scores, rows, g_.whole_sequence);
  builder_.emit(
      0, program::Softmax{
             .rows = extent(rows), .columns = extent(g_.whole_sequence), .x = all, .y = all});
}

void Attention::softmax_gradient(BufferId probabilities, BufferId gradient) {
  const std::uint64_t rows = builder_.buffer(gradient).count / g_.whole_sequence;
  const Matrix d_scores = dense(gradient, rows, g_.whole_sequence);
  builder_.emit(0, program::SoftmaxGradient{.rows = extent(rows),
                                            .columns = extent(g_.whole_sequence),
                                            .y = dense(probabilities, rows, g_.whole_sequence),
                                            .dy = d_scores,
                                            .dx = d_scores});
}

void LayerWriter::attention_forward(LayerState& state, int layer, int microbatch,
                                    const Saved& saved) {
  state.qkv = new_buffer(g_.tokens * g_.qkv, kept_if(saved.states, microbatch));
  first_forward(linear(layer, Tensor::qkv), state.attention_input, state.qkv, microbatch,
                copy_of(saved.states));
  release_if(g_.options.elementwise && !saved.linear_inputs, state.attention_input);
  state.scores = scores_of(state.qkv, kept_if(saved.scores, microbatch));
  state.context =
      new_buffer(g_.tokens * g_.context, kept_if(!g_.gathers() && saved.linear_inputs, microbatch));
  attention_.context(state.qkv, state.scores, state.context);
  release_if(!saved.scores, state.scores);
  release_if(!saved.states, state.qkv);
}

BufferId LayerWriter::scores_of(BufferId qkv, KeptFor kept) {
  // `scores` has room for the products of this rank's queries with the keys of the whole sequence.
  const BufferId scores = new_scores(kept);
  attention_.scores(qkv, scores);
  return scores;
}

BufferId LayerWriter::new_scores(KeptFor kept) {
  const std::uint64_t rows = attention_.batch() * g_.grouped * g_.sequence;
  program::Buffer buffer = buffer_of(rows * g_.whole_sequence, kept);
  if (g_.fuses_attention()) {
    // A fused attention kernel stores no scores, but one f32 for each row of them. From forward to
    // backward this is the logarithm of the row's sum of exponentials (Dao, arXiv 2307.08691,
    // section 3.1), and in backward the product of the row's output and its gradient. Backward also
    // reads the kernel's output in the compute type. Layers that cast to fp8 keep only an fp8 copy
    // of this output, so its bytes are added here.
    buffer.modelled_bytes = rows * program::element_size(DType::f32);
    if (kept && types_.casts_operands()) {
      buffer.modelled_bytes += g_.tokens * g_.context * program::element_size(types_.compute);
    }
  }
  return builder_.allocate(buffer);
}

BufferId LayerWriter::attention_backward(const LayerState& state, BufferId d_context) {
  const BufferId d_scores = new_scores(std::nullopt);
  const BufferId d_qkv = new_buffer(g_.tokens * g_.qkv);
  attention_.backward({.qkv = state.qkv,
                       .scores = state.scores,
                       .d_context = d_context,
                       .d_scores = d_scores,
                       .d_qkv = d_qkv});
  for (const BufferId buffer : {d_context, d_scores, state.scores, state.qkv}) {
    builder_.release(buffer);
  }
  return d_qkv;
}

}  // namespace isoscale::workloads::stack
