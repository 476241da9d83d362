// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// How rows reach the experts of a rank, are multiplied there, and come back.
#include <numeric>

#include "workloads/stack/experts.hpp"
#include "workloads/stack/extent.hpp"
#include "workloads/stack/matrix.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Gemm;
using program::no_buffer;
using program::Role;
using program::Slice;
using program::Transpose;

namespace {

/// Slices that follow each other, as one batch of matrices.
program::Matrix batched(const std::vector<Slice>& slices, std::uint64_t columns) {
  Slice all = slices.front();
  all.count = slices.back().offset + slices.back().count - all.offset;
  return {.slice = all, .row_stride = columns, .batch_stride = slices.front().count};
}

}  // namespace

BufferId ExpertWriter::bring(const Dispatch& way, BufferId tokens, double scale, Role role,
                             int microbatch) {
  const bool is_alone = g_.ep == 1, is_arranged = !way.arranged_from.empty();
  if (is_alone && is_arranged) {  // both moves at once
    std::vector<std::uint32_t> from = way.arranged_from;
    for (std::uint32_t& row : from) {
      if (row != program::Rows::no_row) row = way.sent_from[row];
    }
    return moved(from, 1, scale, tokens, role, microbatch);
  }
  const Role on_the_way = Role::workspace;
  // None where a part of the sequence comes after all experts are full.
  const BufferId sent = way.sent_from.empty() ? no_buffer
                                              : moved(way.sent_from, 1, scale, tokens,
                                                      is_alone ? role : on_the_way, microbatch);
  if (is_alone) return sent;
  const BufferId received =
      exchanged(way.sent, way.received, sent, is_arranged ? on_the_way : role, microbatch);
  if (sent != no_buffer) builder_.release(sent);
  if (received == no_buffer && way.expert_rows() == 0) return no_buffer;
  if (!is_arranged) return received;
  if (received == no_buffer) {  // padding alone
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
      builder_.release(rows);  // padding
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
  // A member without any row takes part all the same, with no element of some buffer.
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
    // An expert that no token came to has a gradient too.
    if (batch_ == ExpertBatch::exact && !begun_[gradient.offset]) clear(gradient);
    gradient_done_(gradient);
  }
}

}  // namespace isoscale::workloads::stack
