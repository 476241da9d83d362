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
using program::Role;

BufferId LayerWriter::second_forward(const Linear& linear, BufferId in, BufferId residual,
                                     Role role, int microbatch) {
  const auto x = dense(builder_.whole(in), g_.tokens, linear.inputs);
  if (!g_.gathers()) {
    const BufferId out = new_buffer(g_.activation(), role, microbatch);
    linear_.forward(
        linear, microbatch, x, dense(builder_.whole(out), g_.tokens, g_.hidden),
        {.beta = 1.0 / g_.tp, .c = dense(builder_.whole(residual), g_.tokens, g_.hidden)});
    reduce_over_tp(out);
    return out;
  }
  const std::uint64_t mine = linear.outputs;
  const BufferId part = new_buffer(g_.tokens * mine, Role::workspace, microbatch);
  linear_.forward(
      linear, microbatch, x, dense(builder_.whole(part), g_.tokens, mine),
      {.beta = 1,
       .c =
           matrix(builder_.whole(residual),
                  {.rows = g_.tokens, .columns = mine, .row_stride = g_.hidden, .tp_step = mine})});
  const BufferId out = gather_columns(part, mine, role, microbatch);
  builder_.release(part);
  return out;
}

LinearWriter::Operand LayerWriter::second_gradient(const Linear& linear, BufferId d_out) {
  return linear_.gradient(
      linear, matrix(builder_.whole(d_out), {.rows = g_.tokens,
                                             .columns = linear.outputs,
                                             .row_stride = g_.hidden,
                                             .tp_step = g_.gathers() ? linear.outputs : 0}));
}

BufferId LayerWriter::second_input_gradient(const Linear& linear,
                                            const LinearWriter::Operand& d_out) {
  const BufferId d_in = new_buffer(g_.tokens * linear.inputs, Role::workspace, -1);
  linear_.input_gradient(linear, d_out, dense(builder_.whole(d_in), g_.tokens, linear.inputs), {});
  if (!g_.gathers()) return d_in;
  const BufferId mine = scatter_columns(d_in, linear.inputs / static_cast<std::uint64_t>(g_.tp));
  builder_.release(d_in);
  return mine;
}

BufferId LayerWriter::first_input_gradient(const Linear& linear, const LinearWriter::Operand& d_out,
                                           BufferId residual) {
  const BufferId d_in = new_buffer(g_.activation(), Role::workspace, -1);
  Addend addend;
  if (residual != program::no_buffer) {
    addend = {.beta = 1.0 / g_.tp, .c = dense(builder_.whole(residual), g_.tokens, g_.hidden)};
  }
  linear_.input_gradient(linear, d_out, dense(builder_.whole(d_in), g_.tokens, g_.hidden), addend);
  reduce_over_tp(d_in);
  return d_in;
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
