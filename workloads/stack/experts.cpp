// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/experts.hpp"

#include <numeric>

#include "workloads/api/options.hpp"
#include "workloads/stack/buffers.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {

namespace {

using program::BufferId;
using program::Gemm;
using program::no_buffer;
using program::Role;
using program::Slice;
using program::Transpose;

/// Returns slices that follow one another in memory as one batch of matrices.
program::Matrix batched(const std::vector<Slice>& slices, std::uint64_t columns) {
  Slice all = slices.front();
  all.count = slices.back().offset + slices.back().count - all.offset;
  return {.slice = all, .row_stride = columns, .batch_stride = slices.front().count};
}

}  // namespace

ExpertWriter::ExpertWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
                           const Parameters& parameters, const Request& request,
                           GradientDone gradient_done)
    : builder_(builder),
      g_(geometry),
      types_(types),
      parameters_(parameters),
      gradient_done_(std::move(gradient_done)),
      routing_(routing_of(request)) {
  const OptionReader options{option_table(), request.options};
  if (options.is("expert_batch", "padded")) batch_ = ExpertBatch::padded;
}

BufferId ExpertWriter::allocate(std::uint64_t count, Role role, int microbatch) {
  return builder_.allocate({.dtype = types_.compute,
                            .role = role,
                            .microbatch = role == Role::activation ? microbatch : -1,
                            .count = count});
}

ExpertWriter::Weights ExpertWriter::weights(int layer, Tensor tensor) const {
  Weights result{.of_expert = {},
                 .rows = tensor == Tensor::up ? g_.hidden : g_.ffn,
                 .columns = tensor == Tensor::up ? up_columns() : g_.hidden};
  for (int e = 0; e < g_.local_experts; ++e) {
    result.of_expert.push_back(parameters_.expert_weight(layer, tensor, e));
  }
  return result;
}

ExpertWriter::Weights ExpertWriter::gradients(int layer, Tensor tensor) const {
  Weights result = weights(layer, tensor);
  for (int e = 0; e < g_.local_experts; ++e) {
    result.of_expert[static_cast<std::size_t>(e)] = parameters_.expert_gradient(layer, tensor, e);
  }
  return result;
}

BufferId ExpertWriter::forward(int layer, int microbatch, BufferId input, Role output_role) {
  State state{.dispatch = dispatch(routing_, g_, batch_, g_.global_layer(layer), microbatch)};
  const Dispatch& way = state.dispatch;
  BufferId out = no_buffer;
  state.input = bring(way, input, 1, Role::activation, microbatch);
  if (state.input != no_buffer) {
    const std::uint64_t rows = way.expert_rows();
    const bool gated = g_.up_parts > 1;
    const BufferId up =
        allocate(rows * up_columns(), gated ? Role::workspace : Role::activation, microbatch);
    multiply(way, weights(layer, Tensor::up), Transpose::no, 1, state.input, up);
    state.inner = inner_forward(way, up, microbatch);
    out = allocate(rows * g_.hidden, Role::workspace, -1);
    multiply(way, weights(layer, Tensor::down), Transpose::no, g_.residual_gain, state.inner, out);
  }
  const BufferId output = take_back(way, out, 1.0 / routing_.topk, output_role, microbatch);
  add_residual(output, input);
  kept_[{layer, microbatch}] = std::move(state);
  return output;
}

BufferId ExpertWriter::backward(int layer, int microbatch, BufferId gradient, const Later& later) {
  const State& state = kept_.at({layer, microbatch});
  const Dispatch& way = state.dispatch;
  const BufferId d_out = bring(way, gradient, 1.0 / routing_.topk, Role::workspace, -1);
  BufferId d_up = no_buffer, d_in = no_buffer;
  if (d_out != no_buffer) {
    const std::uint64_t rows = way.expert_rows();
    const BufferId d_inner = allocate(rows * g_.ffn, Role::workspace, -1);
    multiply(way, weights(layer, Tensor::down), Transpose::yes, g_.residual_gain, d_out, d_inner);
    d_up = inner_backward(way, d_inner);
    d_in = allocate(rows * g_.hidden, Role::workspace, -1);
    multiply(way, weights(layer, Tensor::up), Transpose::yes, 1, d_up, d_in);
  }
  const BufferId d_input = take_back(way, d_in, 1, Role::workspace, -1);
  add_residual(d_input, gradient);
  later([=, this] {
    const auto kept = kept_.extract({layer, microbatch});
    const State& old = kept.mapped();
    accumulate(old.dispatch, layer, Tensor::down, microbatch, g_.residual_gain, old.inner, d_out);
    accumulate(old.dispatch, layer, Tensor::up, microbatch, 1, old.input, d_up);
    for (const BufferId buffer : {old.inner, d_out, old.input, d_up}) {
      if (buffer != no_buffer) builder_.release(buffer);
    }
  });
  return d_input;
}

void ExpertWriter::add_residual(BufferId dst, BufferId residual) {
  const program::Matrix all = dense(builder_.whole(dst), g_.tokens, g_.hidden);
  builder_.emit(0, program::Add{.rows = extent(g_.tokens),
                                .columns = extent(g_.hidden),
                                .a = all,
                                .b = dense(builder_.whole(residual), g_.tokens, g_.hidden),
                                .dst = all,
                                .scale = 1.0 / g_.tp});
  if (g_.tp == 1) return;
  builder_.emit(0, program::Collective{.kind = program::CollectiveKind::all_reduce,
                                       .axes = mesh::Axis::tp,
                                       .send = builder_.whole(dst),
                                       .receive = builder_.whole(dst)});
}

BufferId ExpertWriter::inner_forward(const Dispatch& way, BufferId up, int microbatch) {
  if (g_.up_parts == 1) return up;
  // As in the dense MLP, inner = gate + up replaces the gated product.
  const std::uint64_t rows = way.expert_rows();
  const BufferId inner = allocate(rows * g_.ffn, Role::activation, microbatch);
  const auto part = [&](std::uint64_t p) {
    return matrix(
        builder_.whole(up),
        {.rows = rows, .columns = g_.ffn, .row_stride = up_columns(), .offset = p * g_.ffn});
  };
  builder_.emit(0, program::Add{.rows = extent(rows),
                                .columns = extent(g_.ffn),
                                .a = part(0),
                                .b = part(1),
                                .dst = dense(builder_.whole(inner), rows, g_.ffn)});
  builder_.release(up);
  return inner;
}

BufferId ExpertWriter::inner_backward(const Dispatch& way, BufferId d_inner) {
  if (g_.up_parts == 1) return d_inner;
  const std::uint64_t rows = way.expert_rows();
  const BufferId d_up = allocate(rows * up_columns(), Role::workspace, -1);
  builder_.emit(0, program::Copy{.rows = extent(rows),
                                 .columns = extent(g_.ffn),
                                 .batch = extent(g_.up_parts),
                                 .src = dense(builder_.whole(d_inner), rows, g_.ffn),
                                 .dst = matrix(builder_.whole(d_up), {.rows = rows,
                                                                      .columns = g_.ffn,
                                                                      .row_stride = up_columns(),
                                                                      .batch = g_.up_parts,
                                                                      .batch_stride = g_.ffn})});
  builder_.release(d_inner);
  return d_up;
}

void ExpertWriter::clear(const Slice& gradient) {
  builder_.emit(0, program::Fill{.dst = gradient,
                                 .shard = {.extents = {1, 1, gradient.count}, .local = {0, 0, 1}},
                                 .source = program::FillSource::constant,
                                 .value = 0});
}

// Rows are sent to the ranks of their experts, multiplied there, and sent back.

BufferId ExpertWriter::bring(const Dispatch& way, BufferId tokens, double scale, Role role,
                             int microbatch) {
  const bool is_alone = g_.ep == 1, is_arranged = !way.arranged_from.empty();
  if (is_alone && is_arranged) {  // one move does both permutations
    std::vector<std::uint32_t> from = way.arranged_from;
    for (std::uint32_t& row : from) {
      if (row != program::Rows::no_row) row = way.sent_from[row];
    }
    return moved(from, 1, scale, tokens, role, microbatch);
  }
  const Role on_the_way = Role::workspace;
  // Nothing is sent if all experts were full before this rank's part of the sequence.
  const BufferId sent = way.sent_from.empty() ? no_buffer
                                              : moved(way.sent_from, 1, scale, tokens,
                                                      is_alone ? role : on_the_way, microbatch);
  if (is_alone) return sent;
  const BufferId received =
      exchanged(way.sent, way.received, sent, is_arranged ? on_the_way : role, microbatch);
  if (sent != no_buffer) builder_.release(sent);
  if (received == no_buffer && way.expert_rows() == 0) return no_buffer;
  if (!is_arranged) return received;
  if (received == no_buffer) {  // only padding is multiplied
    return zeros(way.expert_rows(), role, microbatch);
  }
  const BufferId arranged = moved(way.arranged_from, 1, 1, received, role, microbatch);
  builder_.release(received);
  return arranged;
}

BufferId ExpertWriter::take_back(const Dispatch& way, BufferId rows, double scale, Role role,
                                 int microbatch) {
  const bool is_alone = g_.ep == 1, is_arranged = !way.arranged_from.empty();
  std::vector<std::uint32_t> from = way.place_of;
  BufferId here = rows;
  if (is_alone && is_arranged) {
    for (std::uint32_t& row : from) {
      if (row != program::Rows::no_row) row = way.restored_from[row];
    }
  } else if (!is_alone) {
    if (is_arranged && way.received_rows() > 0) {
      here = moved(way.restored_from, 1, 1, rows, Role::workspace, -1);
      builder_.release(rows);
    } else if (is_arranged && rows != no_buffer) {
      builder_.release(rows);  // the rows are only padding
      here = no_buffer;
    }
    const BufferId back = exchanged(way.received, way.sent, here, Role::workspace, -1);
    if (here != no_buffer) builder_.release(here);
    here = back;
  }
  if (here == no_buffer) return zeros(g_.tokens, role, microbatch);
  const BufferId tokens = moved(from, routing_.topk, scale, here, role, microbatch);
  builder_.release(here);
  return tokens;
}

BufferId ExpertWriter::zeros(std::uint64_t rows, Role role, int microbatch) {
  const BufferId buffer = allocate(rows * g_.hidden, role, microbatch);
  clear(builder_.whole(buffer));
  return buffer;
}

BufferId ExpertWriter::moved(const std::vector<std::uint32_t>& from, std::uint32_t each,
                             double scale, BufferId src, Role role, int microbatch) {
  const std::uint64_t rows = from.size() / each;
  const BufferId dst = allocate(rows * g_.hidden, role, microbatch);
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
                                 Role role, int microbatch) {
  program::Collective op{.kind = program::CollectiveKind::all_to_all, .axes = mesh::Axis::ep};
  for (const std::uint64_t rows : sent) op.send_counts.push_back(rows * g_.hidden);
  for (const std::uint64_t rows : received) op.receive_counts.push_back(rows * g_.hidden);
  const std::uint64_t count =
      std::accumulate(op.receive_counts.begin(), op.receive_counts.end(), std::uint64_t{0});
  const BufferId dst = count == 0 ? no_buffer : allocate(count, role, microbatch);
  // A member without rows takes part with zero elements, for which any buffer will do.
  op.send = parameters_.expert_weight(0, Tensor::up, 0);
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
  if (batch_ == ExpertBatch::padded) {
    const std::uint64_t rows = way.rows_of_expert.front();
    gemm.m = extent(rows);
    gemm.batch = extent(way.rows_of_expert.size());
    gemm.a = {.slice = builder_.whole(x), .row_stride = k, .batch_stride = rows * k};
    gemm.b = batched(weights.of_expert, weights.columns);
    gemm.d = {.slice = builder_.whole(y), .row_stride = n, .batch_stride = rows * n};
    builder_.emit(0, gemm);
    return;
  }
  std::uint64_t first = 0;
  for (std::size_t e = 0; e < way.rows_of_expert.size(); ++e) {
    const std::uint64_t rows = way.rows_of_expert[e];
    if (rows == 0) continue;
    gemm.m = extent(rows);
    gemm.a = matrix(builder_.whole(x),
                    {.rows = rows, .columns = k, .row_stride = k, .offset = first * k});
    gemm.b = dense(weights.of_expert[e], weights.rows, weights.columns);
    gemm.d = matrix(builder_.whole(y),
                    {.rows = rows, .columns = n, .row_stride = n, .offset = first * n});
    builder_.emit(0, gemm);
    first += rows;
  }
}

void ExpertWriter::accumulate(const Dispatch& way, int layer, Tensor tensor, int microbatch,
                              double alpha, BufferId x, BufferId dy) {
  const Weights into = gradients(layer, tensor);
  const bool is_last = microbatch + 1 == g_.microbatches;
  Gemm gemm{.m = extent(into.rows),
            .n = extent(into.columns),
            .transpose_a = Transpose::yes,
            .mode = types_.mode,
            .alpha = alpha};
  if (batch_ == ExpertBatch::padded) {
    const std::uint64_t rows = way.rows_of_expert.front();
    gemm.k = extent(rows);
    gemm.batch = extent(into.of_expert.size());
    gemm.beta = microbatch == 0 ? 0.0 : 1.0;
    gemm.a = {
        .slice = builder_.whole(x), .row_stride = into.rows, .batch_stride = rows * into.rows};
    gemm.b = {.slice = builder_.whole(dy),
              .row_stride = into.columns,
              .batch_stride = rows * into.columns};
    gemm.c = gemm.d = batched(into.of_expert, into.columns);
    builder_.emit(0, gemm);
  }
  std::uint64_t first = 0;
  for (std::size_t e = 0; e < into.of_expert.size(); ++e) {
    const Slice& gradient = into.of_expert[e];
    const std::uint64_t rows = way.rows_of_expert[e];
    if (batch_ == ExpertBatch::exact && rows > 0) {
      bool& has_begun = begun_[gradient.offset];
      gemm.k = extent(rows);
      gemm.beta = has_begun ? 1.0 : 0.0;
      gemm.a = matrix(builder_.whole(x), {.rows = rows,
                                          .columns = into.rows,
                                          .row_stride = into.rows,
                                          .offset = first * into.rows});
      gemm.b = matrix(builder_.whole(dy), {.rows = rows,
                                           .columns = into.columns,
                                           .row_stride = into.columns,
                                           .offset = first * into.columns});
      gemm.c = gemm.d = dense(gradient, into.rows, into.columns);
      builder_.emit(0, gemm);
      has_begun = true;
      first += rows;
    }
    if (!is_last) continue;
    // The gradient of an expert that received no token must be zero.
    if (batch_ == ExpertBatch::exact && !begun_[gradient.offset]) clear(gradient);
    gradient_done_(gradient);
  }
}

}  // namespace isoscale::workloads::stack
