// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The pair of GEMMs that tensor parallelism splits: the first column-parallel, the second
// row-parallel with an all-reduce (Shoeybi et al., arXiv 1909.08053, section 3), or column-parallel
// with all-gathers of its input and output.
#include "workloads/stack/layer.hpp"
#include "workloads/stack/matrix.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Collective;
using program::CollectiveKind;
using program::Copy;
using program::Gemm;
using program::Role;
using program::Slice;
using program::Transpose;

BufferId LayerWriter::second_forward(const Slice& weight, BufferId in, std::uint64_t columns,
                                     BufferId residual, Role role, int microbatch) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const auto m = static_cast<std::uint32_t>(g_.tokens);
  if (!g_.gathers()) {
    const BufferId out = new_buffer(g_.activation(), role, microbatch);
    builder_.emit(0, Gemm{.m = m,
                          .n = static_cast<std::uint32_t>(g_.hidden),
                          .k = static_cast<std::uint32_t>(columns),
                          .mode = types_.mode,
                          .alpha = g_.residual_gain,
                          .beta = 1.0 / g_.tp,
                          .a = dense(builder_.whole(in), g_.tokens, columns),
                          .b = dense(weight, columns, g_.hidden),
                          .c = dense(builder_.whole(residual), g_.tokens, g_.hidden),
                          .d = dense(builder_.whole(out), g_.tokens, g_.hidden)});
    reduce_over_tp(out);
    return out;
  }
  const std::uint64_t mine = g_.hidden / tp;
  const BufferId part = new_buffer(g_.tokens * mine, Role::workspace, microbatch);
  builder_.emit(
      0, Gemm{.m = m,
              .n = static_cast<std::uint32_t>(mine),
              .k = static_cast<std::uint32_t>(columns * tp),
              .mode = types_.mode,
              .alpha = g_.residual_gain,
              .beta = 1,
              .a = dense(builder_.whole(in), g_.tokens, columns * tp),
              .b = dense(weight, columns * tp, mine),
              .c = matrix(
                  builder_.whole(residual),
                  {.rows = g_.tokens, .columns = mine, .row_stride = g_.hidden, .tp_step = mine}),
              .d = dense(builder_.whole(part), g_.tokens, mine)});
  const BufferId out = gather_columns(part, mine, role, microbatch);
  builder_.release(part);
  return out;
}

BufferId LayerWriter::second_input_gradient(const Slice& weight, BufferId d_out,
                                            std::uint64_t columns) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t k = g_.gathers() ? g_.hidden / tp : g_.hidden;
  const std::uint64_t n = g_.gathers() ? columns * tp : columns;
  const BufferId d_in = new_buffer(g_.tokens * n, Role::workspace, -1);
  builder_.emit(0, Gemm{.m = static_cast<std::uint32_t>(g_.tokens),
                        .n = static_cast<std::uint32_t>(n),
                        .k = static_cast<std::uint32_t>(k),
                        .transpose_b = Transpose::yes,
                        .mode = types_.mode,
                        .alpha = g_.residual_gain,
                        .a = matrix(builder_.whole(d_out), {.rows = g_.tokens,
                                                            .columns = k,
                                                            .row_stride = g_.hidden,
                                                            .tp_step = g_.gathers() ? k : 0}),
                        .b = dense(weight, n, k),
                        .d = dense(builder_.whole(d_in), g_.tokens, n)});
  if (!g_.gathers()) return d_in;
  const BufferId mine = scatter_columns(d_in, columns);
  builder_.release(d_in);
  return mine;
}

void LayerWriter::second_weight_gradient(const Slice& gradient, BufferId in, std::uint64_t columns,
                                         BufferId d_out, int microbatch) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t n = g_.gathers() ? g_.hidden / tp : g_.hidden;
  const std::uint64_t m = g_.gathers() ? columns * tp : columns;
  builder_.emit(0, Gemm{.m = static_cast<std::uint32_t>(m),
                        .n = static_cast<std::uint32_t>(n),
                        .k = static_cast<std::uint32_t>(g_.tokens),
                        .transpose_a = Transpose::yes,
                        .mode = types_.mode,
                        .alpha = g_.residual_gain,
                        .beta = microbatch == 0 ? 0.0 : 1.0,
                        .a = dense(builder_.whole(in), g_.tokens, m),
                        .b = matrix(builder_.whole(d_out), {.rows = g_.tokens,
                                                            .columns = n,
                                                            .row_stride = g_.hidden,
                                                            .tp_step = g_.gathers() ? n : 0}),
                        .c = dense(gradient, m, n),
                        .d = dense(gradient, m, n)});
  done(gradient, microbatch);
}

BufferId LayerWriter::first_input_gradient(const Slice& weight, BufferId d_out,
                                           std::uint64_t columns, BufferId residual) {
  const BufferId d_in = new_buffer(g_.activation(), Role::workspace, -1);
  Gemm gemm{.m = static_cast<std::uint32_t>(g_.tokens),
            .n = static_cast<std::uint32_t>(g_.hidden),
            .k = static_cast<std::uint32_t>(columns),
            .transpose_b = Transpose::yes,
            .mode = types_.mode,
            .a = dense(builder_.whole(d_out), g_.tokens, columns),
            .b = dense(weight, g_.hidden, columns),
            .d = dense(builder_.whole(d_in), g_.tokens, g_.hidden)};
  if (residual != program::no_buffer) {
    gemm.beta = 1.0 / g_.tp;
    gemm.c = dense(builder_.whole(residual), g_.tokens, g_.hidden);
  }
  builder_.emit(0, gemm);
  reduce_over_tp(d_in);
  return d_in;
}

void LayerWriter::first_weight_gradient(const Slice& gradient, BufferId in, BufferId d_out,
                                        std::uint64_t columns, int microbatch) {
  builder_.emit(0, Gemm{.m = static_cast<std::uint32_t>(g_.hidden),
                        .n = static_cast<std::uint32_t>(columns),
                        .k = static_cast<std::uint32_t>(g_.tokens),
                        .transpose_a = Transpose::yes,
                        .mode = types_.mode,
                        .beta = microbatch == 0 ? 0.0 : 1.0,
                        .a = dense(builder_.whole(in), g_.tokens, g_.hidden),
                        .b = dense(builder_.whole(d_out), g_.tokens, columns),
                        .c = dense(gradient, g_.hidden, columns),
                        .d = dense(gradient, g_.hidden, columns)});
  done(gradient, microbatch);
}

BufferId LayerWriter::gather_columns(BufferId part, std::uint64_t columns, Role role,
                                     int microbatch) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t block = g_.tokens * columns;
  const BufferId blocks = new_buffer(block * tp, Role::workspace, -1);
  builder_.emit(0, Collective{.kind = CollectiveKind::all_gather,
                              .axes = mesh::Axis::tp,
                              .send = builder_.whole(part),
                              .receive = builder_.whole(blocks)});
  const BufferId out = new_buffer(block * tp, role, microbatch);
  builder_.emit(0, Copy{.rows = static_cast<std::uint32_t>(g_.tokens),
                        .columns = static_cast<std::uint32_t>(columns),
                        .batch = static_cast<std::uint32_t>(tp),
                        .src = matrix(builder_.whole(blocks), {.rows = g_.tokens,
                                                               .columns = columns,
                                                               .row_stride = columns,
                                                               .batch = tp,
                                                               .batch_stride = block}),
                        .dst = matrix(builder_.whole(out), {.rows = g_.tokens,
                                                            .columns = columns,
                                                            .row_stride = columns * tp,
                                                            .batch = tp,
                                                            .batch_stride = columns})});
  builder_.release(blocks);
  return out;
}

BufferId LayerWriter::scatter_columns(BufferId partial, std::uint64_t columns) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t block = g_.tokens * columns;
  const BufferId blocks = new_buffer(block * tp, Role::workspace, -1);
  builder_.emit(0, Copy{.rows = static_cast<std::uint32_t>(g_.tokens),
                        .columns = static_cast<std::uint32_t>(columns),
                        .batch = static_cast<std::uint32_t>(tp),
                        .src = matrix(builder_.whole(partial), {.rows = g_.tokens,
                                                                .columns = columns,
                                                                .row_stride = columns * tp,
                                                                .batch = tp,
                                                                .batch_stride = columns}),
                        .dst = matrix(builder_.whole(blocks), {.rows = g_.tokens,
                                                               .columns = columns,
                                                               .row_stride = columns,
                                                               .batch = tp,
                                                               .batch_stride = block})});
  const BufferId mine = new_buffer(block, Role::workspace, -1);
  builder_.emit(0, Collective{.kind = CollectiveKind::reduce_scatter,
                              .axes = mesh::Axis::tp,
                              .send = builder_.whole(blocks),
                              .receive = builder_.whole(mine)});
  builder_.release(blocks);
  return mine;
}

void LayerWriter::reduce_over_tp(BufferId buffer) {
  if (g_.tp == 1) return;
  builder_.emit(0, Collective{.kind = CollectiveKind::all_reduce,
                              .axes = mesh::Axis::tp,
                              .send = builder_.whole(buffer),
                              .receive = builder_.whole(buffer)});
}

}  // namespace isoscale::workloads::stack
