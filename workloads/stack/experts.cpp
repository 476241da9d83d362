// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/experts.hpp"

#include <numeric>

namespace isoscale::workloads::stack {

namespace {

/// The rows that one GEMM multiplies: `rows` rows of each of `batch` experts, from row `first` on.
struct Share {
  std::uint64_t first = 0, rows = 0, batch = 1;
};

/// Returns, for each expert of this rank, the share that begins with the expert's rows. With
/// padding, the share of the first expert covers all experts. Share::rows is 0 for an expert that
/// has no rows or whose rows are in another expert's share.
std::vector<Share> shares_of(const Dispatch& way, ExpertBatch batch) {
  std::vector<Share> shares(way.rows_of_expert.size());
  if (batch == ExpertBatch::padded) {
    shares.front() = {.rows = way.rows_of_expert.front(), .batch = shares.size()};
    return shares;
  }
  std::uint64_t first = 0;
  for (std::size_t e = 0; e < shares.size(); ++e) {
    shares[e] = {.first = first, .rows = way.rows_of_expert[e]};
    first += shares[e].rows;
  }
  return shares;
}

/// Replaces each row index by its entry in `table`; dropped tokens and padding stay no_row.
void look_up(std::vector<std::uint32_t>& rows, const std::vector<std::uint32_t>& table) {
  for (std::uint32_t& row : rows) {
    if (row != program::Rows::no_row) row = table[row];
  }
}

/// Returns the rows of a share in a buffer with `columns` columns.
Matrix share_in(const Slice& buffer, const Share& share, std::uint64_t columns) {
  return matrix(buffer, {.rows = share.rows,
                         .columns = columns,
                         .row_stride = columns,
                         .offset = share.first * columns,
                         .batch = share.batch,
                         .batch_stride = share.rows * columns});
}

}  // namespace

ExpertWriter::ExpertWriter(Builder& builder, const Geometry& geometry, const Types& types,
                           const Parameters& parameters, const Request& request,
                           GradientDone gradient_done)
    : OpWriter(builder, geometry, types),
      parameters_(parameters),
      gradient_done_(std::move(gradient_done)),
      routing_(routing_of(request)) {}

ExpertWriter::Weights ExpertWriter::weights(int layer, Tensor tensor, Of which) const {
  Weights result{.of_expert = {},
                 .rows = tensor == Tensor::up ? g_.hidden : g_.ffn,
                 .columns = tensor == Tensor::up ? up_columns() : g_.hidden};
  for (int e = 0; e < g_.local_experts; ++e) {
    result.of_expert.push_back(which == Of::weights ? parameters_.weight(layer, tensor, e)
                                                    : parameters_.gradient(layer, tensor, e));
  }
  return result;
}

BufferId ExpertWriter::forward(int layer, int microbatch, BufferId input, KeptFor output_for) {
  State state{.dispatch = dispatch(routing_, g_, g_.global_layer(layer), microbatch)};
  const Dispatch& way = state.dispatch;
  BufferId out = no_buffer;
  state.input = bring(way, input, 1, microbatch);
  if (state.input != no_buffer) {
    const std::uint64_t rows = way.expert_rows();
    const bool gated = g_.up_parts > 1;
    const BufferId up = new_buffer(rows * up_columns(), gated ? KeptFor{} : microbatch);
    multiply(way, weights(layer, Tensor::up), Transpose::no, 1, state.input, up);
    state.inner = up;
    if (gated) {
      state.inner = new_buffer(rows * g_.ffn, microbatch);
      add_gate(rows, up, state.inner);
    }
    out = new_buffer(rows * g_.hidden);
    multiply(way, weights(layer, Tensor::down), Transpose::no, g_.residual_gain, state.inner, out);
  }
  const BufferId output = take_back(way, out, 1.0 / routing_.topk, output_for);
  add_residual(output, input);
  kept_[{layer, microbatch}] = std::move(state);
  return output;
}

BufferId ExpertWriter::backward(int layer, int microbatch, BufferId gradient, const Later& later) {
  const State& state = kept_.at({layer, microbatch});
  const Dispatch& way = state.dispatch;
  const BufferId d_out = bring(way, gradient, 1.0 / routing_.topk);
  BufferId d_up = no_buffer, d_in = no_buffer;
  if (d_out != no_buffer) {
    const std::uint64_t rows = way.expert_rows();
    const BufferId d_inner = new_buffer(rows * g_.ffn);
    multiply(way, weights(layer, Tensor::down), Transpose::yes, g_.residual_gain, d_out, d_inner);
    d_up = d_inner;
    if (g_.up_parts > 1) {
      d_up = new_buffer(rows * up_columns());
      copy_to_gate(rows, d_inner, d_up);
    }
    d_in = new_buffer(rows * g_.hidden);
    multiply(way, weights(layer, Tensor::up), Transpose::yes, 1, d_up, d_in);
  }
  const BufferId d_input = take_back(way, d_in, 1);
  add_residual(d_input, gradient);
  later([=, this] {
    const auto kept = kept_.extract({layer, microbatch});
    const State& old = kept.mapped();
    accumulate(old.dispatch, layer, Tensor::down, microbatch, g_.residual_gain, old.inner, d_out);
    accumulate(old.dispatch, layer, Tensor::up, microbatch, 1, old.input, d_up);
  });
  return d_input;
}

void ExpertWriter::add_residual(BufferId dst, BufferId residual) {
  const Matrix all = dense(dst, g_.tokens, g_.hidden);
  builder_.emit(0, Add{.rows = extent(g_.tokens),
                       .columns = extent(g_.hidden),
                       .a = all,
                       .b = dense(residual, g_.tokens, g_.hidden),
                       .dst = all,
                       .scale = 1.0 / g_.tp});
  if (g_.tp == 1) return;
  communicate(builder_, 0, CollectiveKind::all_reduce, mesh::Axis::tp, builder_.whole(dst),
              builder_.whole(dst));
}

// The functions below send rows to the ranks of their experts, multiply them there, and send them
// back.

BufferId ExpertWriter::bring(const Dispatch& way, BufferId tokens, double scale, KeptFor kept) {
  const bool is_alone = g_.ep == 1, is_arranged = !way.arranged_from.empty();
  if (is_alone && is_arranged) {  // one op does both permutations
    std::vector<std::uint32_t> from = way.arranged_from;
    look_up(from, way.sent_from);
    return moved(from, 1, scale, tokens, kept);
  }
  // No row is sent if all experts were full before this rank's part of the sequence.
  const BufferId sent = way.sent_from.empty()
                            ? no_buffer
                            : moved(way.sent_from, 1, scale, tokens, is_alone ? kept : KeptFor{});
  if (is_alone) return sent;
  const BufferId received = exchanged(way.sent, way.received, sent, is_arranged ? KeptFor{} : kept);
  if (received == no_buffer && way.expert_rows() == 0) return no_buffer;
  if (!is_arranged) return received;
  if (received == no_buffer) {  // only padding is multiplied
    return zeros(way.expert_rows(), kept);
  }
  return moved(way.arranged_from, 1, 1, received, kept);
}

BufferId ExpertWriter::take_back(const Dispatch& way, BufferId rows, double scale, KeptFor kept) {
  const bool is_alone = g_.ep == 1, is_arranged = !way.arranged_from.empty();
  std::vector<std::uint32_t> from = way.place_of;
  BufferId here = rows;
  if (is_alone && is_arranged) {
    look_up(from, way.restored_from);
  } else if (!is_alone) {
    if (is_arranged) {  // without received rows, there is only padding
      here = way.received_rows() > 0 ? moved(way.restored_from, 1, 1, rows) : no_buffer;
    }
    here = exchanged(way.received, way.sent, here);
  }
  if (here == no_buffer) return zeros(g_.tokens, kept);
  return moved(from, routing_.topk, scale, here, kept);
}

BufferId ExpertWriter::zeros(std::uint64_t rows, KeptFor kept) {
  const BufferId buffer = new_buffer(rows * g_.hidden, kept);
  fill_flat(builder_, builder_.whole(buffer), 0);
  return buffer;
}

BufferId ExpertWriter::moved(const std::vector<std::uint32_t>& from, std::uint32_t each,
                             double scale, BufferId src, KeptFor kept) {
  const std::uint64_t rows = from.size() / each;
  const BufferId dst = new_buffer(rows * g_.hidden, kept);
  builder_.emit(0, program::Rows{.rows = extent(rows),
                                 .columns = extent(g_.hidden),
                                 .each = each,
                                 .scale = scale,
                                 .src = {.slice = builder_.whole(src), .row_stride = g_.hidden},
                                 .dst = {.slice = builder_.whole(dst), .row_stride = g_.hidden},
                                 .from = from});
  return dst;
}

BufferId ExpertWriter::exchanged(const std::vector<std::uint64_t>& sent,
                                 const std::vector<std::uint64_t>& received, BufferId src,
                                 KeptFor kept) {
  Collective op{.kind = CollectiveKind::all_to_all, .axes = mesh::Axis::ep};
  for (const std::uint64_t rows : sent) op.send_counts.push_back(rows * g_.hidden);
  for (const std::uint64_t rows : received) op.receive_counts.push_back(rows * g_.hidden);
  const std::uint64_t count =
      std::accumulate(op.receive_counts.begin(), op.receive_counts.end(), std::uint64_t{0});
  const BufferId dst = count == 0 ? no_buffer : new_buffer(count, kept);
  // A rank without rows takes part in the collective with zero elements of an arbitrary buffer.
  op.send = parameters_.weight(0, Tensor::up, 0);
  op.send.count = 0;
  if (src != no_buffer) op.send = builder_.whole(src);
  if (dst != no_buffer) op.receive = builder_.whole(dst);
  builder_.emit(0, op);
  return dst;
}

void ExpertWriter::multiply(const Dispatch& way, const Weights& weights, Transpose transpose,
                            double alpha, BufferId x, BufferId y) {
  const bool flips = transpose == Transpose::yes;
  const std::uint64_t k = flips ? weights.columns : weights.rows;
  const std::uint64_t n = flips ? weights.rows : weights.columns;
  Gemm gemm{.n = extent(n),
            .k = extent(k),
            .transpose_b = transpose,
            .mode = types_.mode,
            .alpha = alpha};
  const std::vector<Share> shares = shares_of(way, g_.options.expert_batch);
  for (std::size_t e = 0; e < shares.size(); ++e) {
    if (shares[e].rows == 0) continue;
    gemm.m = extent(shares[e].rows);
    gemm.batch = extent(shares[e].batch);
    gemm.a = share_in(builder_.whole(x), shares[e], k);
    gemm.b = weights.matrices(e, shares[e].batch);
    gemm.d = share_in(builder_.whole(y), shares[e], n);
    builder_.emit(0, gemm);
  }
}

void ExpertWriter::accumulate(const Dispatch& way, int layer, Tensor tensor, int microbatch,
                              double alpha, BufferId x, BufferId dy) {
  const Weights into = weights(layer, tensor, Of::gradients);
  const bool is_last = microbatch + 1 == g_.microbatches;
  Gemm gemm{.m = extent(into.rows),
            .n = extent(into.columns),
            .transpose_a = Transpose::yes,
            .mode = types_.mode,
            .alpha = alpha};
  const std::vector<Share> shares = shares_of(way, g_.options.expert_batch);
  for (std::size_t e = 0; e < shares.size(); ++e) {
    const Slice& gradient = into.of_expert[e];
    if (shares[e].rows > 0) {
      gemm.k = extent(shares[e].rows);
      gemm.batch = extent(shares[e].batch);
      gemm.beta = begun_[gradient.offset] ? 1.0 : 0.0;
      gemm.a = share_in(builder_.whole(x), shares[e], into.rows);
      gemm.b = share_in(builder_.whole(dy), shares[e], into.columns);
      gemm.c = gemm.d = into.matrices(e, shares[e].batch);
      builder_.emit(0, gemm);
      for (std::size_t i = e; i < e + shares[e].batch; ++i) begun_[into.of_expert[i].offset] = true;
    }
    if (!is_last) continue;
    // The gradient of an expert that received no token must be zero.
    if (!begun_[gradient.offset]) fill_flat(builder_, gradient, 0);
    gradient_done_(gradient);
  }
}

}  // namespace isoscale::workloads::stack
