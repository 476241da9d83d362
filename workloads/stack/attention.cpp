// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>
#include <functional>

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

/// Writes attention of a rank's queries to the keys and values of the whole sequence, of which
/// every rank of the cp axis has a part. Blocks of keys, and then of values, are sent around the
/// ring of ranks while GEMMs use the blocks that have arrived (Liu et al., arXiv 2310.01889). A
/// block has the keys, or the values, of one rank, [s][sample][head][d]. Block i on rank r comes
/// from rank r - i, so that all ranks can share one program. A row of scores has all blocks side by
/// side, [block] [s], so that ops on whole rows find them contiguous. The order of the blocks may
/// differ between ranks, since sums over a row do not depend on it. Without cp there is one block,
/// which is read from QKV without a copy.
///
/// A batched product covers all pairs of sample and key-value head, which are one stride apart. For
/// each j, the `j`-th query heads of all key-value heads form one batch.
class Attention : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Computes the scores Q * K^T / sqrt(d). With elementwise work, replaces them by their softmax.
  [[nodiscard]] BufferId scores(BufferId qkv, KeptFor kept) {
    const BufferId scores = new_scores(kept);
    for_each_block(qkv, Part::key, [&](int i, const Matrix& keys) {
      for (std::uint64_t j = 0; j < g_.grouped; ++j) {
        multiply(query(qkv, j), keys, score_scale(g_), scores_of(scores, i, j));
      }
    });
    if (g_.options.elementwise) softmax(scores);
    return scores;
  }

  /// Writes context = scale * scores * V, with the scale of context_scale().
  void context(BufferId qkv, BufferId scores, BufferId context) {
    for_each_block(qkv, Part::value, [&](int i, const Matrix& values) {
      for (std::uint64_t j = 0; j < g_.grouped; ++j) {
        weigh(scores_of(scores, i, j), values, context_scale(g_), i, context_of(context, j));
      }
    });
  }

  /// Computes the gradient of QKV from the gradient of the context.
  [[nodiscard]] BufferId backward(BufferId qkv, BufferId scores, BufferId d_context) {
    const Backward of{qkv, scores, d_context, new_scores(std::nullopt),
                      new_buffer(g_.tokens * g_.qkv)};
    if (g_.cp > 1) {
      backward_on_ring(of);
    } else {
      backward_alone(of);
    }
    return of.d_qkv;
  }

 private:
  enum class Part : std::uint8_t { key, value };
  /// Returns a matrix for query head j, with one row for each query: the queries themselves, or the
  /// gradients of their contexts.
  using Rows = std::function<Matrix(std::uint64_t j)>;
  /// The buffers that backward reads, and d_scores and d_qkv, which it writes.
  struct Backward {
    BufferId qkv, scores, d_context, d_scores, d_qkv;
  };

  void backward_alone(const Backward& of) {
    const auto through_context = [&](std::uint64_t j) {
      const Matrix d_context = context_of(of.d_context, j);
      multiply(d_context, own(of.qkv, Part::value), context_scale(g_),
               scores_of(of.d_scores, 0, j));
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

  /// Writes the backward pass on the ring of cp. A block has the keys or the values of one rank.
  /// Its gradient is sent around the ring, and each rank adds its contribution. The gradient of a
  /// rank's own block is completed last, since its way around the ring ends on this rank.
  void backward_on_ring(const Backward& of) {
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
    });
    block_gradient(of.d_scores, 0, queries, score_scale(g_), arrived_keys,
                   own(of.d_qkv, Part::key));
  }

  void softmax(BufferId scores) {
    const std::uint64_t rows = builder_.buffer(scores).count / g_.whole_sequence;
    const Matrix all = dense(scores, rows, g_.whole_sequence);
    builder_.emit(
        0, program::Softmax{
               .rows = extent(rows), .columns = extent(g_.whole_sequence), .x = all, .y = all});
  }

  void softmax_gradient(BufferId probabilities, BufferId gradient) {
    const std::uint64_t rows = builder_.buffer(gradient).count / g_.whole_sequence;
    const Matrix d_scores = dense(gradient, rows, g_.whole_sequence);
    builder_.emit(0, program::SoftmaxGradient{.rows = extent(rows),
                                              .columns = extent(g_.whole_sequence),
                                              .y = dense(probabilities, rows, g_.whole_sequence),
                                              .dy = d_scores,
                                              .dx = d_scores});
  }

  /// Allocates the scores of this rank's queries with the keys of the whole sequence, or their
  /// gradients.
  [[nodiscard]] BufferId new_scores(KeptFor kept) {
    const std::uint64_t rows = batch() * g_.grouped * g_.sequence;
    program::Buffer buffer = buffer_of(rows * g_.whole_sequence, kept);
    if (g_.fuses_attention()) {
      // A fused attention kernel stores no scores, but one f32 for each row of them. From forward
      // to backward this is the logarithm of the row's sum of exponentials (Dao, arXiv 2307.08691,
      // section 3.1), and in backward the product of the row's output and its gradient. Backward
      // also reads the kernel's output in the compute type. Layers that cast to fp8 keep only an
      // fp8 copy of this output, so its bytes are added here.
      buffer.modelled_bytes = rows * program::element_size(DType::f32);
      if (kept && types_.casts_operands()) {
        buffer.modelled_bytes += g_.tokens * g_.context * program::element_size(types_.compute);
      }
    }
    return builder_.temporary(buffer);
  }

  /// Returns the number of products in a batch.
  [[nodiscard]] std::uint64_t batch() const { return g_.microbatch * g_.kv_heads; }
  [[nodiscard]] BufferId new_block() { return new_buffer(g_.sequence * batch() * g_.head_size); }
  /// Returns a new block with this rank's keys or values.
  [[nodiscard]] BufferId pack(BufferId qkv, Part part) {
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

  /// Sends a block to the next rank, and returns the block that comes from the previous rank.
  [[nodiscard]] BufferId pass_on(BufferId block) {
    const BufferId arriving = new_block();
    stack::pass_on(builder_, builder_.stream("cp"), mesh::Axis::cp, builder_.whole(block),
                   builder_.whole(arriving));
    return arriving;
  }

  /// Calls visit(i, matrix) with each block. While one block is used, the next is being received.
  template <class Visit>
  void for_each_block(BufferId qkv, Part part, const Visit& visit) {
    BufferId block = g_.cp > 1 ? pack(qkv, part) : no_buffer;
    for (int i = 0; i < g_.cp; ++i) {
      const BufferId following = i + 1 < g_.cp ? pass_on(block) : no_buffer;
      visit(i, i == 0 ? own(qkv, part) : block_of(block));
      block = following;
    }
  }

  // The functions below return views of buffers, with one matrix for each product of a batch.

  /// Returns column block `index` of each key-value head, which has `blocks_per_head` blocks of
  /// head_size columns. Consecutive positions are `row_stride` elements apart.
  [[nodiscard]] Matrix heads_of(BufferId buffer, std::uint64_t row_stride, std::uint64_t index,
                                std::uint64_t blocks_per_head) const {
    return matrix(builder_.whole(buffer), {.rows = g_.sequence,
                                           .columns = g_.head_size,
                                           .row_stride = row_stride,
                                           .offset = index * g_.head_size,
                                           .batch = batch(),
                                           .batch_stride = blocks_per_head * g_.head_size});
  }
  [[nodiscard]] Matrix block_of(BufferId packed) const {
    return heads_of(packed, batch() * g_.head_size, 0, 1);
  }
  /// Returns column block `index` of each key-value head. The blocks of a key-value head are its
  /// query heads, then its key, then its value.
  [[nodiscard]] Matrix column(BufferId qkv, std::uint64_t index) const {
    return heads_of(qkv, g_.microbatch * g_.qkv, index, g_.grouped + 2);
  }
  [[nodiscard]] Matrix query(BufferId qkv, std::uint64_t j) const { return column(qkv, j); }
  [[nodiscard]] Matrix own(BufferId qkv, Part part) const {
    return column(qkv, g_.grouped + (part == Part::key ? 0 : 1));
  }
  [[nodiscard]] Matrix scores_of(BufferId scores, int block, std::uint64_t j) const {
    const std::uint64_t head = g_.sequence * g_.whole_sequence;
    return matrix(builder_.whole(scores),
                  {.rows = g_.sequence,
                   .columns = g_.sequence,
                   .row_stride = g_.whole_sequence,
                   .offset = j * head + static_cast<std::uint64_t>(block) * g_.sequence,
                   .batch = batch(),
                   .batch_stride = g_.grouped * head});
  }
  [[nodiscard]] Matrix context_of(BufferId context, std::uint64_t j) const {
    return heads_of(context, g_.microbatch * g_.context, j, g_.grouped);
  }

  /// Writes d = scale * a * b + beta * c for each product of a batch; `form` has the extents, the
  /// transposes, beta and c.
  void emit(Gemm form, double scale, const Matrix& a, const Matrix& b, const Matrix& d) {
    form.batch = extent(batch());
    form.mode = types_.mode;
    form.alpha = scale;
    form.a = a;
    form.b = b;
    form.d = d;
    builder_.emit(0, form);
  }

  /// Writes scores = scale * rows * others^T for one block and query head.
  void multiply(const Matrix& rows, const Matrix& others, double scale, const Matrix& scores) {
    const std::uint32_t s = extent(g_.sequence), d = extent(g_.head_size);
    emit({.m = s, .n = s, .k = d, .transpose_b = Transpose::yes}, scale, rows, others, scores);
  }

  /// Adds scale * scores * rows for block number `block` to the result. Block 0, which is the first
  /// one, overwrites the result instead.
  void weigh(const Matrix& scores, const Matrix& rows, double scale, int block,
             const Matrix& result) {
    const std::uint32_t s = extent(g_.sequence), d = extent(g_.head_size);
    const Matrix sum = g_.cp > 1 ? result : Matrix{};  // a single block needs no addend
    const double beta = block == 0 ? 0.0 : 1.0;
    emit({.m = s, .n = d, .k = s, .beta = beta, .c = sum}, scale, scores, rows, result);
  }

  /// Adds scale * scores^T * rows for query head j to `gradient`. The sum over query heads begins,
  /// for j = 0, with the gradient in `arrived`, or with 0 if that is no_buffer.
  void add_gradient(const Matrix& scores, const Matrix& rows, double scale, std::uint64_t j,
                    BufferId arrived, const Matrix& gradient) {
    // The query heads of a group share their key and value, so their contributions are added up.
    const bool starts = j == 0 && arrived == no_buffer;
    const std::uint32_t s = extent(g_.sequence), d = extent(g_.head_size);
    const Matrix addend = j == 0 && !starts ? block_of(arrived) : gradient;
    Gemm form{.m = s, .n = d, .k = s, .transpose_a = Transpose::yes, .c = addend};
    form.beta = starts ? 0.0 : 1.0;
    emit(form, scale, scores, rows, gradient);
  }

  /// Calls add_gradient() for every query head of a group, so that `gradient` gets their sum.
  void block_gradient(BufferId scores, int block, const Rows& rows, double scale, BufferId arrived,
                      const Matrix& gradient) {
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      add_gradient(scores_of(scores, block, j), rows(j), scale, j, arrived, gradient);
    }
  }

  /// Adds this rank's contribution to the gradient of a block, which is in `arrived` (or 0, if that
  /// is no_buffer), and sends the sum to the next rank. Returns the sum that arrives from the
  /// previous rank.
  [[nodiscard]] BufferId pass_gradient(BufferId scores, int block, const Rows& rows, double scale,
                                       BufferId arrived) {
    const BufferId sum = new_block();
    block_gradient(scores, block, rows, scale, arrived, block_of(sum));
    return pass_on(sum);
  }
};

}  // namespace

void LayerWriter::attention_forward(LayerState& state, int layer, int microbatch,
                                    const Saved& saved) {
  state.qkv = new_buffer(g_.tokens * g_.qkv, kept_if(saved.states, microbatch));
  first_forward(linear(layer, Tensor::qkv), state.attention_input, state.qkv, microbatch,
                copy_of(saved.states));
  state.scores = scores_of(state.qkv, kept_if(saved.scores, microbatch));
  state.context =
      new_buffer(g_.tokens * g_.context, kept_if(!g_.gathers() && saved.linear_inputs, microbatch));
  Attention{builder_, g_, types_}.context(state.qkv, state.scores, state.context);
}

BufferId LayerWriter::scores_of(BufferId qkv, KeptFor kept) {
  return Attention{builder_, g_, types_}.scores(qkv, kept);
}

BufferId LayerWriter::attention_backward(const LayerState& state, BufferId d_context) {
  return Attention{builder_, g_, types_}.backward(state.qkv, state.scores, d_context);
}

}  // namespace isoscale::workloads::stack
