// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/halo.hpp"

#include <utility>

#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::tiles {
namespace {

using program::BufferId;
using program::Copy;
using program::Direction;
using program::Matrix;
using program::Slice;
using program::Transfer;

constexpr program::StreamId on_compute = 0;

}  // namespace

void Halo::begin(BufferId tile, Columns columns) {
  const bool wraps = g_.boundary == Boundary::periodic;
  if (wraps && g_.tiles_across == 1 && columns == Columns::early) {
    // Before the messages: these read the rows that the columns lie beside.
    wrap_columns(tile, on_compute, g_.halo, g_.tile.rows, 1, 0);
  }
  if (g_.tiles_down > 1) exchange_rows(tile);
  if (wraps && g_.tiles_down == 1) wrap_rows(tile);
  if (g_.tiles_across > 1) exchange_columns(tile);
}

void Halo::end(BufferId tile, Columns columns) {
  if (g_.tiles_across > 1) return unpack(tile);
  if (g_.boundary == Boundary::fixed) return;
  const program::StreamId stream = g_.tiles_down > 1 ? stream_ : on_compute;
  if (columns == Columns::early) {
    wrap_columns(tile, stream, 0, g_.halo, 2, g_.halo + g_.tile.rows);
  } else {
    wrap_columns(tile, stream, 0, g_.tile.rows + 2 * g_.halo, 1, 0);
  }
}

void Halo::exchange_rows(BufferId tile) {
  program::Exchange exchange;
  const auto add = [&](Direction direction, int offset, std::uint64_t first) {
    for (std::uint64_t row = first; row < first + g_.halo; ++row) {
      exchange.transfers.push_back({.direction = direction,
                                    .axis = mesh::Axis::cp,
                                    .offset = offset,
                                    .slice = {.buffer = tile,
                                              .offset = g_.place(row, g_.halo),
                                              .count = g_.tile.columns * g_.pixel()}});
    }
  };
  // Where above and below are one rank, what it sends up first is what comes from below first.
  if (g_.above) add(Direction::send, -1, g_.halo);
  if (g_.below) add(Direction::send, +1, g_.tile.rows);
  if (g_.below) add(Direction::receive, +1, g_.halo + g_.tile.rows);
  if (g_.above) add(Direction::receive, -1, 0);
  builder_.emit(stream_, std::move(exchange));
}

void Halo::exchange_columns(BufferId tile) {
  program::Exchange exchange;
  const auto add = [&](Direction direction, int offset, BufferId columns) {
    exchange.transfers.push_back({.direction = direction,
                                  .axis = mesh::Axis::tp,
                                  .offset = offset,
                                  .slice = builder_.whole(columns)});
  };
  Sides sent;
  if (g_.left) {
    sent.left = packed();
    received_.left = packed();
    copy_columns(columns_of(tile, g_.halo), dense_columns(sent.left));
  }
  if (g_.right) {
    sent.right = packed();
    received_.right = packed();
    copy_columns(columns_of(tile, g_.tile.columns), dense_columns(sent.right));
  }
  if (g_.left) add(Direction::send, -1, sent.left);
  if (g_.right) add(Direction::send, +1, sent.right);
  if (g_.right) add(Direction::receive, +1, received_.right);
  if (g_.left) add(Direction::receive, -1, received_.left);
  builder_.emit(stream_, std::move(exchange));
  if (g_.left) builder_.release(sent.left);
  if (g_.right) builder_.release(sent.right);
}

void Halo::unpack(BufferId tile) {
  if (g_.left) {
    copy_columns(dense_columns(received_.left), columns_of(tile, 0));
    builder_.release(received_.left);
  }
  if (g_.right) {
    copy_columns(dense_columns(received_.right), columns_of(tile, g_.halo + g_.tile.columns));
    builder_.release(received_.right);
  }
}

void Halo::wrap_rows(BufferId tile) {
  const auto rows_at = [&](std::uint64_t row) {
    return stack::matrix(builder_.whole(tile), {.rows = g_.halo,
                                                .columns = g_.tile.columns * g_.pixel(),
                                                .row_stride = g_.line(),
                                                .offset = g_.place(row, g_.halo)});
  };
  const auto copy = [&](std::uint64_t from, std::uint64_t to) {
    builder_.emit(on_compute,
                  Copy{.rows = static_cast<std::uint32_t>(g_.halo),
                       .columns = static_cast<std::uint32_t>(g_.tile.columns * g_.pixel()),
                       .src = rows_at(from),
                       .dst = rows_at(to)});
  };
  copy(g_.tile.rows, 0);
  copy(g_.halo, g_.halo + g_.tile.rows);
}

void Halo::wrap_columns(BufferId tile, program::StreamId stream, std::uint64_t row,
                        std::uint64_t rows, std::uint64_t times, std::uint64_t apart) {
  const auto columns_at = [&](std::uint64_t column) {
    return stack::matrix(builder_.whole(tile), {.rows = rows,
                                                .columns = g_.halo * g_.pixel(),
                                                .row_stride = g_.line(),
                                                .offset = g_.place(row, column),
                                                .batch = times,
                                                .batch_stride = apart * g_.line()});
  };
  const auto copy = [&](std::uint64_t from, std::uint64_t to) {
    builder_.emit(stream, Copy{.rows = static_cast<std::uint32_t>(rows),
                               .columns = static_cast<std::uint32_t>(g_.halo * g_.pixel()),
                               .batch = static_cast<std::uint32_t>(times),
                               .src = columns_at(from),
                               .dst = columns_at(to)});
  };
  copy(g_.tile.columns, 0);
  copy(g_.halo, g_.halo + g_.tile.columns);
}

BufferId Halo::packed() const {
  return builder_.allocate({.dtype = type_,
                            .role = program::Role::workspace,
                            .count = (g_.tile.rows + 2 * g_.halo) * g_.halo * g_.pixel()});
}

Matrix Halo::columns_of(BufferId tile, std::uint64_t column) const {
  return stack::matrix(builder_.whole(tile), {.rows = g_.tile.rows + 2 * g_.halo,
                                              .columns = g_.halo * g_.pixel(),
                                              .row_stride = g_.line(),
                                              .offset = g_.place(0, column)});
}

Matrix Halo::dense_columns(BufferId packed) const {
  // Its size, not the buffer's: what receives it has not been written yet.
  const std::uint64_t columns = g_.halo * g_.pixel();
  const std::uint64_t rows = g_.tile.rows + 2 * g_.halo;
  return stack::dense({.buffer = packed, .count = rows * columns}, rows, columns);
}

void Halo::copy_columns(const Matrix& from, const Matrix& to) {
  builder_.emit(stream_, Copy{.rows = static_cast<std::uint32_t>(g_.tile.rows + 2 * g_.halo),
                              .columns = static_cast<std::uint32_t>(g_.halo * g_.pixel()),
                              .src = from,
                              .dst = to});
}

}  // namespace isoscale::workloads::tiles
