// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/sequence_parallel.hpp"

#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::stack {

namespace {

using program::BufferId;
using program::Collective;
using program::CollectiveKind;
using program::Direction;
using program::Matrix;
using program::Slice;
using program::Transpose;

}  // namespace

std::vector<Positions> inner_positions(const Geometry& g) {
  if (!g.sequence_parallel) return {{.first = 0, .count = g.sequence}};
  const auto tp = static_cast<std::uint64_t>(g.tp);
  const std::uint64_t part = g.sequence / tp;  // of the sequence of one rank
  std::vector<Positions> result;
  if (g.ring) {
    const auto mine = static_cast<std::uint64_t>(g.at.tp);
    for (std::uint64_t i = 0; i < tp; ++i) {
      result.push_back({.first = (mine + tp - i) % tp * part, .count = part});
    }
    return result;
  }
  const std::uint64_t each = part / g.chunks;
  for (std::uint64_t chunk = 0; chunk < g.chunks; ++chunk) {
    for (std::uint64_t rank = 0; rank < tp; ++rank) {
      result.push_back({.first = rank * part + chunk * each, .count = each});
    }
  }
  return result;
}

BufferId TensorRows::workspace(std::uint64_t rows) {
  return builder_.allocate({.dtype = types_.compute,
                            .role = program::Role::workspace,
                            .microbatch = -1,
                            .count = rows * g_.hidden});
}

Slice TensorRows::rows_in(BufferId buffer, std::uint64_t first, std::uint64_t rows) const {
  return {.buffer = buffer, .offset = first * g_.hidden, .count = rows * g_.hidden};
}

Matrix TensorRows::matrix_of(BufferId buffer) const {
  return dense(builder_.whole(buffer), builder_.buffer(buffer).count / g_.hidden, g_.hidden);
}

void TensorRows::pass_on(const Slice& outgoing, const Slice& incoming) {
  const auto transfer = [](program::Direction direction, std::int32_t offset, const Slice& slice) {
    return program::Transfer{
        .direction = direction, .axis = mesh::Axis::tp, .offset = offset, .slice = slice};
  };
  builder_.emit(builder_.stream("tp"),
                program::Exchange{.transfers = {
                                      transfer(program::Direction::send, +1, outgoing),
                                      transfer(program::Direction::receive, -1, incoming),
                                  }});
}

GatheredRows TensorRows::gather(BufferId shard) {
  if (g_.ring) return gather_ring(shard);
  const std::uint64_t sent = g_.shard_tokens / g_.chunks, rows = g_.tokens / g_.chunks;
  GatheredRows result;
  result.received = workspace(g_.tokens);
  for (std::uint64_t chunk = 0; chunk < g_.chunks; ++chunk) {
    const RowBlock block{
        .slice = rows_in(result.received, chunk * rows, rows), .first = chunk * rows, .rows = rows};
    builder_.emit(builder_.stream("tp"), Collective{.kind = CollectiveKind::all_gather,
                                                    .axes = mesh::Axis::tp,
                                                    .send = rows_in(shard, chunk * sent, sent),
                                                    .receive = block.slice});
    result.blocks.push_back(block);
  }
  result.pieces = {{.slice = builder_.whole(result.received), .first = 0, .rows = g_.tokens}};
  return result;
}

GatheredRows TensorRows::gather_ring(BufferId shard) {
  const std::uint64_t rows = g_.shard_tokens;
  GatheredRows result;
  result.received = workspace(g_.tokens - rows);
  result.blocks = {{.slice = builder_.whole(shard), .first = 0, .rows = rows}};
  for (std::uint64_t first = rows; first < g_.tokens; first += rows) {
    const RowBlock block{
        .slice = rows_in(result.received, first - rows, rows), .first = first, .rows = rows};
    pass_on(result.blocks.back().slice, block.slice);
    result.blocks.push_back(block);
  }
  result.pieces = {
      result.blocks.front(),
      {.slice = builder_.whole(result.received), .first = rows, .rows = g_.tokens - rows}};
  return result;
}

void TensorRows::release(const GatheredRows& rows) { builder_.release(rows.received); }

RowSum TensorRows::reduce(const Product& product, BufferId out, BufferId residual) {
  if (!g_.sequence_parallel) return all_reduce(product, out, residual);
  return g_.ring ? reduce_ring(product, out, residual) : reduce_scatter(product, out, residual);
}

RowSum TensorRows::all_reduce(const Product& product, BufferId out, BufferId residual) {
  const std::uint64_t rows = g_.tokens / g_.chunks;
  const program::StreamId stream = g_.streams_tp() ? builder_.stream("tp") : program::StreamId{0};
  for (std::uint64_t first = 0; first < g_.tokens; first += rows) {
    Addend addend;
    if (residual != program::no_buffer) {  // each rank adds the rows that it keeps
      addend = {.beta = 1.0 / g_.tp, .c = rows_of(matrix_of(residual), first, rows, g_.hidden)};
    }
    product(first, rows, rows_of(matrix_of(out), first, rows, g_.hidden), addend);
    if (g_.tp == 1) continue;
    builder_.emit(stream, Collective{.kind = CollectiveKind::all_reduce,
                                     .axes = mesh::Axis::tp,
                                     .send = rows_in(out, first, rows),
                                     .receive = rows_in(out, first, rows)});
  }
  return {.out = out};
}

RowSum TensorRows::reduce_scatter(const Product& product, BufferId out, BufferId residual) {
  const std::uint64_t rows = g_.tokens / g_.chunks, kept = g_.shard_tokens / g_.chunks;
  const BufferId partial = workspace(g_.tokens);
  for (std::uint64_t chunk = 0; chunk < g_.chunks; ++chunk) {
    product(chunk * rows, rows, rows_of(matrix_of(partial), chunk * rows, rows, g_.hidden), {});
    builder_.emit(builder_.stream("tp"), Collective{.kind = CollectiveKind::reduce_scatter,
                                                    .axes = mesh::Axis::tp,
                                                    .send = rows_in(partial, chunk * rows, rows),
                                                    .receive = rows_in(out, chunk * kept, kept)});
  }
  builder_.release(partial);
  return {.out = out, .addend = residual};
}

RowSum TensorRows::reduce_ring(const Product& product, BufferId out, BufferId residual) {
  // The sum of a rank's rows begins on the next rank, goes around the ring, and ends on the rank
  // itself. So blocks are multiplied in the order in which gather_ring() received them, except that
  // the rank's own block, which was first there, comes last.
  const std::uint64_t rows = g_.shard_tokens;
  BufferId arrived = program::no_buffer;
  for (std::uint64_t first = rows; first < g_.tokens; first += rows) {
    const BufferId mine = workspace(rows);
    product(first, rows, matrix_of(mine), {});
    if (arrived != program::no_buffer) {
      add(mine, arrived);
      builder_.release(arrived);
    }
    arrived = workspace(rows);
    pass_on(builder_.whole(mine), builder_.whole(arrived));
    builder_.release(mine);
  }
  Addend addend;
  if (residual != program::no_buffer) addend = {.beta = 1, .c = matrix_of(residual)};
  product(0, rows, matrix_of(out), addend);
  return {.out = out, .addend = arrived, .ownership = RowSum::Addend::owned};
}

void TensorRows::close(const RowSum& sum) {
  if (!sum.is_open()) return;
  add(sum.out, sum.addend);
  if (sum.ownership == RowSum::Addend::owned) builder_.release(sum.addend);
}

void TensorRows::add(BufferId into, BufferId addend) {
  builder_.emit(0, program::Add{.rows = static_cast<std::uint32_t>(g_.shard_tokens),
                                .columns = static_cast<std::uint32_t>(g_.hidden),
                                .a = matrix_of(into),
                                .b = matrix_of(addend),
                                .dst = matrix_of(into)});
}

BufferId ContextRing::new_block() {
  return builder_.allocate({.dtype = types_.compute,
                            .role = program::Role::workspace,
                            .microbatch = -1,
                            .count = g_.sequence * batch() * g_.head_size});
}

BufferId ContextRing::pack(BufferId qkv, Part part) {
  const BufferId block = new_block();
  // In QKV the rows of all (position, sample, head) have one stride; each row has d columns.
  const std::uint64_t rows = g_.sequence * batch();
  const std::uint64_t index = g_.grouped + (part == Part::key ? 0 : 1);
  builder_.emit(builder_.stream("cp"),
                program::Copy{.rows = extent(rows),
                              .columns = extent(g_.head_size),
                              .src = matrix(builder_.whole(qkv),
                                            {.rows = rows,
                                             .columns = g_.head_size,
                                             .row_stride = (g_.grouped + 2) * g_.head_size,
                                             .offset = index * g_.head_size}),
                              .dst = dense(builder_.whole(block), rows, g_.head_size)});
  return block;
}

BufferId ContextRing::pass_on(BufferId block) {
  const BufferId arriving = new_block();
  const auto transfer = [&](Direction direction, std::int32_t offset, BufferId buffer) {
    return program::Transfer{.direction = direction,
                             .axis = mesh::Axis::cp,
                             .offset = offset,
                             .slice = builder_.whole(buffer)};
  };
  builder_.emit(builder_.stream("cp"),
                program::Exchange{.transfers = {transfer(Direction::send, +1, block),
                                                transfer(Direction::receive, -1, arriving)}});
  return arriving;
}

BufferId ContextRing::next(BufferId block, int step) {
  return step + 1 < g_.cp ? pass_on(block) : program::no_buffer;
}

Matrix ContextRing::block_of(BufferId packed) const {
  return matrix(builder_.whole(packed), {.rows = g_.sequence,
                                         .columns = g_.head_size,
                                         .row_stride = batch() * g_.head_size,
                                         .batch = batch(),
                                         .batch_stride = g_.head_size});
}

Matrix ContextRing::column(BufferId qkv, std::uint64_t index) const {
  return matrix(builder_.whole(qkv), {.rows = g_.sequence,
                                      .columns = g_.head_size,
                                      .row_stride = g_.microbatch * g_.qkv,
                                      .offset = index * g_.head_size,
                                      .batch = batch(),
                                      .batch_stride = (g_.grouped + 2) * g_.head_size});
}

Matrix ContextRing::query(BufferId qkv, std::uint64_t j) const { return column(qkv, j); }

Matrix ContextRing::own(BufferId qkv, Part part) const {
  return column(qkv, g_.grouped + (part == Part::key ? 0 : 1));
}

Matrix ContextRing::scores_of(BufferId scores, int block, std::uint64_t j) const {
  const std::uint64_t head = g_.sequence * g_.whole_sequence;
  return matrix(builder_.whole(scores),
                {.rows = g_.sequence,
                 .columns = g_.sequence,
                 .row_stride = g_.whole_sequence,
                 .offset = j * head + static_cast<std::uint64_t>(block) * g_.sequence,
                 .batch = batch(),
                 .batch_stride = g_.grouped * head});
}

Matrix ContextRing::context_of(BufferId context, std::uint64_t j) const {
  return matrix(builder_.whole(context), {.rows = g_.sequence,
                                          .columns = g_.head_size,
                                          .row_stride = g_.microbatch * g_.context,
                                          .offset = j * g_.head_size,
                                          .batch = batch(),
                                          .batch_stride = g_.grouped * g_.head_size});
}

void ContextRing::emit(program::Gemm gemm) {
  gemm.batch = extent(batch());
  gemm.mode = types_.mode;
  builder_.emit(0, gemm);
}

template <class RowsOf>
void ContextRing::block_gradient(BufferId scores, int block, const RowsOf& rows, double scale,
                                 BufferId arrived, const Matrix& gradient) {
  for (std::uint64_t j = 0; j < g_.grouped; ++j) {  // query heads of a group share keys and values
    const bool starts = j == 0 && arrived == program::no_buffer;
    emit({.m = extent(g_.sequence),
          .n = extent(g_.head_size),
          .k = extent(g_.sequence),
          .transpose_a = Transpose::yes,
          .alpha = scale,
          .beta = starts ? 0.0 : 1.0,
          .a = scores_of(scores, block, j),
          .b = rows(j),
          .c = j == 0 && !starts ? block_of(arrived) : gradient,
          .d = gradient});
  }
}

void ContextRing::scores(BufferId qkv, BufferId scores, double scale) {
  BufferId block = pack(qkv, Part::key);
  for (int i = 0; i < g_.cp; ++i) {
    const BufferId following = next(block, i);
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      emit({.m = extent(g_.sequence),
            .n = extent(g_.sequence),
            .k = extent(g_.head_size),
            .transpose_b = Transpose::yes,
            .alpha = scale,
            .a = query(qkv, j),
            .b = i == 0 ? own(qkv, Part::key) : block_of(block),
            .d = scores_of(scores, i, j)});
    }
    builder_.release(block);
    block = following;
  }
}

void ContextRing::context(BufferId qkv, BufferId scores, BufferId context, double scale) {
  BufferId block = pack(qkv, Part::value);
  for (int i = 0; i < g_.cp; ++i) {
    const BufferId following = next(block, i);
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      emit({.m = extent(g_.sequence),
            .n = extent(g_.head_size),
            .k = extent(g_.sequence),
            .alpha = scale,
            .beta = i == 0 ? 0.0 : 1.0,
            .a = scores_of(scores, i, j),
            .b = i == 0 ? own(qkv, Part::value) : block_of(block),
            .c = context_of(context, j),
            .d = context_of(context, j)});
    }
    builder_.release(block);
    block = following;
  }
}

BufferId ContextRing::score_gradients(BufferId qkv, BufferId scores, BufferId d_context,
                                      BufferId d_scores, double scale) {
  BufferId block = pack(qkv, Part::value), arrived = program::no_buffer;
  for (int i = 0; i < g_.cp; ++i) {
    const BufferId following = next(block, i);
    if (i > 0) {  // the rank's own block comes last, since its sum ends here
      const BufferId sum = new_block();
      block_gradient(
          scores, i, [&](std::uint64_t j) { return context_of(d_context, j); }, scale, arrived,
          block_of(sum));
      if (arrived != program::no_buffer) builder_.release(arrived);
      arrived = pass_on(sum);
      builder_.release(sum);
    }
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {  // hides sending the sum
      emit({.m = extent(g_.sequence),
            .n = extent(g_.sequence),
            .k = extent(g_.head_size),
            .transpose_b = Transpose::yes,
            .alpha = scale,
            .a = context_of(d_context, j),
            .b = i == 0 ? own(qkv, Part::value) : block_of(block),
            .d = scores_of(d_scores, i, j)});
    }
    builder_.release(block);
    block = following;
  }
  return arrived;
}

void ContextRing::gradients(const Backward& of) {
  BufferId block = pack(of.qkv, Part::key), arrived = program::no_buffer;
  const auto queries = [&](std::uint64_t j) { return query(of.qkv, j); };
  for (int i = 0; i < g_.cp; ++i) {
    const BufferId following = next(block, i);
    if (i > 0) {
      const BufferId sum = new_block();
      block_gradient(of.d_scores, i, queries, of.score_scale, arrived, block_of(sum));
      if (arrived != program::no_buffer) builder_.release(arrived);
      arrived = pass_on(sum);
      builder_.release(sum);
    }
    for (std::uint64_t j = 0; j < g_.grouped; ++j) {
      emit({.m = extent(g_.sequence),
            .n = extent(g_.head_size),
            .k = extent(g_.sequence),
            .alpha = of.score_scale,
            .beta = i == 0 ? 0.0 : 1.0,
            .a = scores_of(of.d_scores, i, j),
            .b = i == 0 ? own(of.qkv, Part::key) : block_of(block),
            .c = query(of.d_qkv, j),
            .d = query(of.d_qkv, j)});
    }
    if (i == 0) {  // the sum for values has arrived during the products above
      block_gradient(
          of.scores, 0, [&](std::uint64_t j) { return context_of(of.d_context, j); },
          of.context_scale, of.arrived_values, own(of.d_qkv, Part::value));
      builder_.release(of.arrived_values);
    }
    builder_.release(block);
    block = following;
  }
  block_gradient(of.d_scores, 0, queries, of.score_scale, arrived, own(of.d_qkv, Part::key));
  builder_.release(arrived);
}

}  // namespace isoscale::workloads::stack
