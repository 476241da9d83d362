// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/tiles/image_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace isoscale::workloads::tiles {

namespace {

using program::BufferId;
using program::Phase;
using program::Role;

constexpr program::StreamId on_compute = 0;

/// Says when the halo columns beside a tile's own rows may be written. early: at once. late: only
/// after the ops that read the tile between begin() and end(), because these ops read the columns
/// as zeros.
enum class Columns : std::uint8_t { early, late };

/// Fills the halo of a tile with the pixels around the tile. First, rows are sent directly to their
/// place in the halo. Then columns are sent, with the ends of the halo's rows, so that the pixels
/// of corners arrive in two hops, and no message goes to a diagonal neighbour. Columns are strided,
/// so they are packed and unpacked. If a tile is its own neighbour, its pixels are copied instead.
class Halo {
 public:
  /// The messages that fill the halo are sent on `stream`.
  Halo(program::Builder& builder, const Geometry& geometry, program::DType type,
       program::StreamId stream)
      : builder_(builder), g_(geometry), type_(type), stream_(stream) {
    if (g_.left) sides_.push_back({.offset = -1, .sent_from = g_.halo, .received_at = 0});
    if (g_.right) {
      sides_.push_back(
          {.offset = +1, .sent_from = g_.tile.columns, .received_at = g_.halo + g_.tile.columns});
    }
  }

  /// Begins to fill the halo. Ops that are written between begin() and end() may read the tile.
  /// With Columns::early they may also read the halo, but not its corners, on those sides where no
  /// tile of another rank lies: at a fixed boundary, or where the tile is its own neighbour.
  void begin(program::BufferId tile, Columns columns) {
    const bool wraps = g_.boundary == Boundary::periodic;
    if (wraps && g_.tiles_across == 1 && columns == Columns::early) {
      // This copy must precede the messages. The builder orders ops by ranges of memory, and the
      // range of these columns includes the rows that are sent. Written later, the copy would wait
      // for the messages.
      wrap_columns(tile, on_compute, g_.halo, g_.tile.rows, 1, 0);
    }
    if (g_.tiles_down > 1) exchange_rows(tile);
    if (wraps && g_.tiles_down == 1) wrap_rows(tile);
    if (g_.tiles_across > 1) exchange_columns(tile);
  }
  /// Completes the halo. Ops that are written afterwards may read all of it.
  void end(program::BufferId tile, Columns columns) {
    if (g_.tiles_across > 1) return unpack(tile);
    if (g_.boundary == Boundary::fixed) return;
    const program::StreamId stream = g_.tiles_down > 1 ? stream_ : on_compute;
    if (columns == Columns::early) {
      wrap_columns(tile, stream, 0, g_.halo, 2, g_.halo + g_.tile.rows);
    } else {
      wrap_columns(tile, stream, 0, g_.tile.rows + 2 * g_.halo, 1, 0);
    }
  }

 private:
  /// A side on which another rank's tile lies: the step along tp to it, the columns that are sent
  /// there, and the columns of the halo that come from there.
  struct Side {
    int offset = 0;
    std::uint64_t sent_from = 0, received_at = 0;
    BufferId received = program::no_buffer;
  };

  void exchange_rows(program::BufferId tile) {
    program::Exchange exchange;
    const auto add = [&](const auto& transfer, int offset, std::uint64_t first) {
      for (std::uint64_t row = first; row < first + g_.halo; ++row) {
        exchange.transfers.push_back(transfer(mesh::Axis::cp, offset,
                                              {.buffer = tile,
                                               .offset = g_.place(row, g_.halo),
                                               .count = g_.tile.columns * g_.pixel()}));
      }
    };
    // If the same rank is above and below, messages are matched by their order. That rank sends its
    // upward message first, so this rank receives from below first.
    if (g_.above) add(program::send_to, -1, g_.halo);
    if (g_.below) add(program::send_to, +1, g_.tile.rows);
    if (g_.below) add(program::receive_from, +1, g_.halo + g_.tile.rows);
    if (g_.above) add(program::receive_from, -1, 0);
    builder_.emit(stream_, std::move(exchange));
  }
  void exchange_columns(program::BufferId tile) {
    program::Exchange exchange;
    for (Side& side : sides_) {
      const BufferId sent = packed();
      side.received = packed();
      copy_columns(columns_of(tile, side.sent_from), dense_columns(sent));
      exchange.transfers.push_back(
          program::send_to(mesh::Axis::tp, side.offset, builder_.whole(sent)));
    }
    for (const Side& side : sides_ | std::views::reverse) {  // for the order see exchange_rows()
      exchange.transfers.push_back(
          program::receive_from(mesh::Axis::tp, side.offset, builder_.whole(side.received)));
    }
    builder_.emit(stream_, std::move(exchange));
  }
  void wrap_rows(program::BufferId tile) {
    const auto copy = [&](std::uint64_t from, std::uint64_t to) {
      copy_pixels(tile, on_compute, {.rows = g_.halo, .columns = g_.tile.columns},
                  {.row = from, .column = g_.halo}, {.row = to, .column = g_.halo});
    };
    copy(g_.tile.rows, 0);
    copy(g_.halo, g_.halo + g_.tile.rows);
  }
  /// Copies columns of the tile to the halo on the opposite side, for `times` groups of `rows`
  /// rows. The first group begins at row `row` of the halo, and each next one `apart` rows further
  /// down.
  void wrap_columns(program::BufferId tile, program::StreamId stream, std::uint64_t row,
                    std::uint64_t rows, std::uint64_t times, std::uint64_t apart) {
    const auto copy = [&](std::uint64_t from, std::uint64_t to) {
      copy_pixels(tile, stream, {.rows = rows, .columns = g_.halo}, {.row = row, .column = from},
                  {.row = row, .column = to}, times, apart);
    };
    copy(g_.tile.columns, 0);
    copy(g_.halo, g_.halo + g_.tile.columns);
  }
  /// A pixel of the buffer; rows and columns count from the first pixel of the halo.
  struct Place {
    std::uint64_t row = 0, column = 0;
  };
  /// Copies a rectangle of pixels from one place to another, and does so `times` times, each time
  /// `apart` rows further down.
  void copy_pixels(program::BufferId tile, program::StreamId stream, const Extent& size,
                   const Place& from, const Place& to, std::uint64_t times = 1,
                   std::uint64_t apart = 0) {
    const std::uint64_t columns = size.columns * g_.pixel();
    const auto at = [&](const Place& place) {
      return stack::matrix(builder_.whole(tile), {.rows = size.rows,
                                                  .columns = columns,
                                                  .row_stride = g_.line(),
                                                  .offset = g_.place(place.row, place.column),
                                                  .batch = times,
                                                  .batch_stride = apart * g_.line()});
    };
    stack::copy(builder_, stream, size.rows, columns, at(from), at(to), times);
  }
  void unpack(program::BufferId tile) {
    for (const Side& side : sides_) {
      copy_columns(dense_columns(side.received), columns_of(tile, side.received_at));
    }
  }
  [[nodiscard]] program::BufferId packed() const {
    return builder_.temporary({.dtype = type_,
                               .role = program::Role::workspace,
                               .count = (g_.tile.rows + 2 * g_.halo) * g_.halo * g_.pixel()});
  }
  /// Returns a strip of a tile with all its rows, those of the halo included. It is as wide as the
  /// halo, and begins at column `column` of the halo.
  [[nodiscard]] program::Matrix columns_of(program::BufferId tile, std::uint64_t column) const {
    return stack::matrix(builder_.whole(tile), {.rows = g_.tile.rows + 2 * g_.halo,
                                                .columns = g_.halo * g_.pixel(),
                                                .row_stride = g_.line(),
                                                .offset = g_.place(0, column)});
  }
  [[nodiscard]] program::Matrix dense_columns(program::BufferId packed) const {
    // A packed buffer holds columns as wide as the halo, with all rows of the tile and its halo.
    const std::uint64_t columns = g_.halo * g_.pixel();
    const std::uint64_t rows = g_.tile.rows + 2 * g_.halo;
    return stack::dense({.buffer = packed, .count = rows * columns}, rows, columns);
  }
  void copy_columns(const program::Matrix& from, const program::Matrix& to) {
    stack::copy(builder_, stream_, g_.tile.rows + 2 * g_.halo, g_.halo * g_.pixel(), from, to);
  }

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  program::StreamId stream_;
  std::vector<Side> sides_;
};

/// True if halos are sent on a stream of their own while the interior is computed.
bool overlaps(const Request& request, const Geometry& g) {
  const bool has_messages = g.tiles_down > 1 || g.tiles_across > 1;
  return has_messages && values_of(request).overlap;
}

/// Writes the program of one rank.
class Writer {
 public:
  Writer(const Request& request, const mesh::Coordinates& at)
      : request_(request),
        g_(request, at),
        types_(stack::types_of(request.precision)),
        builder_(request.mesh),
        kernels_(builder_, g_, request),
        overlaps_(overlaps(request, g_)),
        halo_(builder_, g_, types_.compute,
              overlaps_ ? builder_.stream("halo") : program::StreamId{0}),
        convolution_(builder_, g_, types_) {
    fill_images(request.seed);
  }
  [[nodiscard]] program::RankProgram write() {
    builder_.begin(program::Section::step);
    for (int layer = 0; layer < g_.layers; ++layer) forward(layer);
    for (int layer = g_.layers; layer-- > 0;) backward(layer);
    kernels_.finish();
    if (request_.keep == Keep::observables) {
      observe("output", tiles_.back());
      for (int layer = 1; layer < g_.layers; ++layer) {
        observe(fmt::format("layer{}.input.gradient", layer), input_of(layer));
      }
      kernels_.observe();
    }
    return builder_.finish();
  }

 private:
  void fill_images(std::uint64_t seed) {
    builder_.at({.phase = Phase::setup});
    for (int i = 0; i <= g_.layers; ++i) {
      const BufferId tile = builder_.allocate({.dtype = types_.compute,
                                               .role = i == 0 ? Role::input : Role::activation,
                                               .microbatch = i == 0 ? -1 : 0,
                                               .count = g_.padded()});
      stack::fill_flat(builder_, builder_.whole(tile), 0);
      tiles_.push_back(tile);
    }
    builder_.emit(
        0, stack::random_fill(
               {.buffer = tiles_.front(), .offset = g_.place(g_.halo, g_.halo), .count = g_.span()},
               g_.shard(), stack::fill_key(seed, "input"), 1));
  }
  void forward(int layer) {
    builder_.at({.phase = Phase::forward, .layer = layer});
    const BufferId in = input_of(layer), out = output_of(layer);
    const program::Slice kernel = kernels_.weight(layer);
    // The output of the last layer is also its gradient, since loss = 1/2 |Y|^2. The kernel
    // gradient is computed from it, and needs zeros between its rows.
    if (layer + 1 == g_.layers) convolution_.clear_columns(out);
    const Region interior = g_.interior();
    halo_.begin(in, Columns::early);
    if (!overlaps_ || interior.empty()) {
      halo_.end(in, Columns::early);
      return convolution_.convolve(g_.all(), in, kernel, out);
    }
    convolution_.convolve(interior, in, kernel, out);
    halo_.end(in, Columns::early);
    for (const Region& band : convolution_.around(interior)) {
      convolution_.convolve(band, in, kernel, out);
    }
  }
  void backward(int layer) {
    builder_.at({.phase = Phase::backward, .layer = layer});
    const BufferId in = input_of(layer), d_out = output_of(layer);
    // The gradient of the first layer's input, the images, is not needed.
    const bool goes_on = layer > 0;
    // The halo is sent while the kernel's gradient is computed. That computation reads the halo
    // columns as zeros, so they are filled only after it.
    if (goes_on) halo_.begin(d_out, Columns::late);
    convolution_.kernel_gradient(in, d_out, kernels_.gradient(layer));
    kernels_.done(layer);
    if (!goes_on) return;
    halo_.end(d_out, Columns::late);
    convolution_.clear_columns(in);
    convolution_.convolve(g_.all(), d_out, kernels_.weight(layer), in, Convolution::Adjoint::yes);
  }
  void observe(std::string name, BufferId tile) {
    builder_.observe(std::move(name),
                     {.buffer = tile, .offset = g_.place(g_.halo, g_.halo), .count = g_.span()},
                     g_.shard());
  }
  [[nodiscard]] BufferId input_of(int layer) const {
    return tiles_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] BufferId output_of(int layer) const { return input_of(layer + 1); }

  const Request& request_;
  Geometry g_;
  stack::Types types_;
  program::Builder builder_;
  Kernels kernels_;
  bool overlaps_;
  Halo halo_;
  Convolution convolution_;
  /// The input of each layer and the output of the last one, each with its halo. They are kept
  /// from step to step, so that zeros outside a fixed boundary need to be written only once. When
  /// a layer's kernel gradient has been computed, backward overwrites the layer's input with the
  /// gradient of that input. Only the input of the first layer, the images, is never overwritten.
  std::vector<BufferId> tiles_;
};

/// Returns the coordinates of the first rank with the same program as the rank at `at`: 0 along
/// axes where programs do not differ. With a fixed boundary, the coordinate along cp or tp is 0 for
/// the first tile, 1 for all tiles in the middle, and the tile's own coordinate for the last tile.
mesh::Coordinates program_at(const Request& request, const mesh::Coordinates& at) {
  if (values_of(request).boundary == Boundary::periodic) return {};
  const auto kind = [](int coordinate, int extent) {
    return coordinate == extent - 1 ? coordinate : std::min(coordinate, 1);
  };
  return {.tp = kind(at.tp, request.mesh.tp), .cp = kind(at.cp, request.mesh.cp)};
}

}  // namespace

program::ProgramSet build(const Request& request) {
  const auto first_with_program_of = [&](int rank) {
    const mesh::Coordinates at = mesh::coordinates(request.mesh, rank);
    return mesh::rank_at(request.mesh, program_at(request, at));
  };
  return shared_programs(request.mesh, first_with_program_of, [&](int rank) {
    return Writer{request, mesh::coordinates(request.mesh, rank)}.write();
  });
}

}  // namespace isoscale::workloads::tiles
