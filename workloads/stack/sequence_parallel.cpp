// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/sequence_parallel.hpp"

namespace isoscale::workloads::stack {

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

Slice TensorRows::rows_in(BufferId buffer, std::uint64_t first, std::uint64_t rows) const {
  return {.buffer = buffer, .offset = first * g_.hidden, .count = rows * g_.hidden};
}

Matrix TensorRows::matrix_of(BufferId buffer) const {
  return dense(buffer, builder_.buffer(buffer).count / g_.hidden, g_.hidden);
}

GatheredRows TensorRows::gather(BufferId shard) {
  if (g_.ring) return gather_ring(shard);
  const std::uint64_t sent = g_.shard_tokens / g_.chunks, rows = g_.tokens / g_.chunks;
  GatheredRows result;
  result.received = new_rows(g_.tokens);
  for (std::uint64_t chunk = 0; chunk < g_.chunks; ++chunk) {
    const RowBlock block{
        .slice = rows_in(result.received, chunk * rows, rows), .first = chunk * rows, .rows = rows};
    communicate(builder_, builder_.stream("tp"), CollectiveKind::all_gather, mesh::Axis::tp,
                rows_in(shard, chunk * sent, sent), block.slice);
    result.blocks.push_back(block);
  }
  result.pieces = {{.slice = builder_.whole(result.received), .first = 0, .rows = g_.tokens}};
  return result;
}

GatheredRows TensorRows::gather_ring(BufferId shard) {
  const std::uint64_t rows = g_.shard_tokens;
  GatheredRows result;
  result.received = new_rows(g_.tokens - rows);
  result.blocks = {{.slice = builder_.whole(shard), .first = 0, .rows = rows}};
  for (std::uint64_t first = rows; first < g_.tokens; first += rows) {
    const RowBlock block{
        .slice = rows_in(result.received, first - rows, rows), .first = first, .rows = rows};
    pass_on(builder_, builder_.stream("tp"), mesh::Axis::tp, result.blocks.back().slice,
            block.slice);
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
  const StreamId stream = g_.streams_tp() ? builder_.stream("tp") : StreamId{0};
  for (std::uint64_t first = 0; first < g_.tokens; first += rows) {
    Addend addend;
    if (residual != no_buffer) {  // each rank adds the rows that it keeps
      addend = {.beta = 1.0 / g_.tp, .c = rows_of(matrix_of(residual), first, rows, g_.hidden)};
    }
    product(first, rows, rows_of(matrix_of(out), first, rows, g_.hidden), addend);
    if (g_.tp == 1) continue;
    communicate(builder_, stream, CollectiveKind::all_reduce, mesh::Axis::tp,
                rows_in(out, first, rows), rows_in(out, first, rows));
  }
  return {.out = out};
}

RowSum TensorRows::reduce_scatter(const Product& product, BufferId out, BufferId residual) {
  const std::uint64_t rows = g_.tokens / g_.chunks, kept = g_.shard_tokens / g_.chunks;
  const BufferId partial = new_rows(g_.tokens);
  for (std::uint64_t chunk = 0; chunk < g_.chunks; ++chunk) {
    product(chunk * rows, rows, rows_of(matrix_of(partial), chunk * rows, rows, g_.hidden), {});
    communicate(builder_, builder_.stream("tp"), CollectiveKind::reduce_scatter, mesh::Axis::tp,
                rows_in(partial, chunk * rows, rows), rows_in(out, chunk * kept, kept));
  }
  builder_.release(partial);
  return {.out = out, .addend = residual};
}

RowSum TensorRows::reduce_ring(const Product& product, BufferId out, BufferId residual) {
  // The sum of a rank's rows begins on the next rank, goes around the ring, and ends on the rank
  // itself. So blocks are multiplied in the order in which gather_ring() received them, except that
  // the rank's own block, which was first there, comes last.
  const std::uint64_t rows = g_.shard_tokens;
  BufferId arrived = no_buffer;
  for (std::uint64_t first = rows; first < g_.tokens; first += rows) {
    const BufferId mine = new_rows(rows);
    product(first, rows, matrix_of(mine), {});
    if (arrived != no_buffer) {
      add(mine, arrived);
      builder_.release(arrived);
    }
    arrived = new_rows(rows);
    pass_on(builder_, builder_.stream("tp"), mesh::Axis::tp, builder_.whole(mine),
            builder_.whole(arrived));
    builder_.release(mine);
  }
  Addend addend;
  if (residual != no_buffer) addend = {.beta = 1, .c = matrix_of(residual)};
  product(0, rows, matrix_of(out), addend);
  return {.out = out, .addend = arrived, .ownership = RowSum::Addend::owned};
}

void TensorRows::close(const RowSum& sum) {
  if (!sum.is_open()) return;
  add(sum.out, sum.addend);
  if (sum.ownership == RowSum::Addend::owned) builder_.release(sum.addend);
}

void TensorRows::add(BufferId into, BufferId addend) {
  builder_.emit(0, Add{.rows = extent(g_.shard_tokens),
                       .columns = extent(g_.hidden),
                       .a = matrix_of(into),
                       .b = matrix_of(addend),
                       .dst = matrix_of(into)});
}

}  // namespace isoscale::workloads::stack
