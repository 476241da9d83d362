// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"

/// Convolutions of images that are cut into tiles. Along cp, tiles are below each other; along tp,
/// they are beside each other.
namespace isoscale::workloads::tiles {

/// The size of an image or a tile, in pixels.
struct Extent {
  std::uint64_t rows = 0, columns = 0;
};

enum class Boundary : std::uint8_t {
  periodic,  ///< outside the image are the pixels of its opposite side
  fixed,     ///< outside the image are zeros
};

/// The parsed options of the workload.
struct Values {
  Extent image{};
  std::uint64_t channels = 0, kernel = 0, batch = 0, bucket = 0;
  int layers = 0;
  Boundary boundary{};
  bool overlap = true;
  program::Optimizer optimizer{};
};
[[nodiscard]] Values values_of(const Request& request);

/// A rectangle of pixels of a tile. Rows and columns count from the first pixel of the tile, not of
/// its halo.
struct Region {
  std::uint64_t row = 0, column = 0, rows = 0, columns = 0;
  [[nodiscard]] bool empty() const { return rows == 0 || columns == 0; }
};

/// The sizes of the part of the batch that one rank has: one tile of each of its samples, in a
/// buffer that also has a halo around the tile. Elements are ordered
/// [row][column][sample][channel]. So a row of pixels of all samples is one matrix, and consecutive
/// rows of pixels have a constant stride.
struct Geometry {
  /// `at` only matters along axes where programs differ: cp and tp, if the image has a fixed
  /// boundary.
  Geometry(const Request& request, const mesh::Coordinates& at);

  int tiles_down, tiles_across;  ///< extents of cp and tp
  Extent whole;                  ///< the image
  Extent tile;
  std::uint64_t samples, whole_samples;  ///< samples of this rank, and of all ranks
  std::uint64_t channels;
  std::uint64_t kernel;  ///< width of the convolution's window, in pixels
  std::uint64_t halo;    ///< width in pixels: kernel / 2, rounded down
  int layers;
  Boundary boundary;
  bool above, below, left, right;  ///< true if that neighbour is another rank's tile
  double residual_gain;            ///< g = 0.5 / layers: keeps activations bounded

  [[nodiscard]] std::uint64_t taps() const { return kernel * kernel; }
  /// Returns the number of elements of one pixel in all samples.
  [[nodiscard]] std::uint64_t pixel() const { return samples * channels; }
  /// Returns the number of elements from one row of pixels to the next in a buffer.
  [[nodiscard]] std::uint64_t line() const { return (tile.columns + 2 * halo) * pixel(); }
  /// Returns the number of elements of a buffer, which has the tile and its halo.
  [[nodiscard]] std::uint64_t padded() const { return (tile.rows + 2 * halo) * line(); }
  /// Returns the offset of pixel (row, column) in a buffer. It counts from the first pixel of the
  /// halo, so the first pixel of the tile is (halo, halo).
  [[nodiscard]] std::uint64_t place(std::uint64_t row, std::uint64_t column) const {
    return row * line() + column * pixel();
  }
  /// Returns the number of elements from the tile's first element to its last one in a buffer, with
  /// the halo columns in between.
  [[nodiscard]] std::uint64_t span() const {
    return (tile.rows - 1) * line() + tile.columns * pixel();
  }
  [[nodiscard]] Region all() const { return {0, 0, tile.rows, tile.columns}; }
  /// Returns the pixels whose results need no pixels of another rank; empty if there are none.
  [[nodiscard]] Region interior() const;
  /// True if the halo columns may hold values other than zero.
  [[nodiscard]] bool has_columns() const {
    return tiles_across > 1 || boundary == Boundary::periodic;
  }
  /// Returns where the tile's elements are in the global batch of images,
  /// [row][column][sample][channel].
  [[nodiscard]] program::Shard shard() const;
};

/// Writes convolutions as matrix products with views of a tile and its halo, one product for each
/// tap (pixel) of the kernel. No pixels are copied to make matrices. All ops are on the compute
/// stream. In the formulas, g is Geometry::residual_gain.
class Convolution {
 public:
  Convolution(program::Builder& builder, const Geometry& geometry, const stack::Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// Says whether the kernel is applied or its adjoint, which computes gradients.
  enum class Adjoint : std::uint8_t { no, yes };
  /// Writes out = in + g * (in convolved with the kernel), for the pixels of `region`. With
  /// Adjoint::yes, `in` is the gradient of a layer's output, and `out` the gradient of its input.
  void convolve(const Region& region, program::BufferId in, const program::Slice& kernel,
                program::BufferId out, Adjoint adjoint = Adjoint::no) const;
  /// Writes d_kernel = g * sum over the tile's pixels of (in, shifted by the tap) x d_out. It also
  /// reads the halo columns between the first and the last pixel of d_out's tile, so these must
  /// hold zeros.
  void kernel_gradient(program::BufferId in, program::BufferId d_out,
                       const program::Slice& d_kernel) const;
  /// Returns the pixels of the tile that are not in `inside`, as bands above, below and beside it.
  [[nodiscard]] std::vector<Region> around(const Region& inside) const;
  /// Writes zeros into the halo columns that lie between the first and the last pixel of the tile.
  void clear_columns(program::BufferId tile) const;

 private:
  /// The matrices of a sum of products: the first product is added to `first_addend`, each later
  /// one to `result`.
  struct Sum {
    program::Matrix first_addend, result;
  };
  void add_taps(const Region& region, program::BufferId in, const program::Slice& kernel,
                Adjoint adjoint, const Sum& sum) const;
  /// Returns the pixels of `region`, one matrix for each row of pixels. The region's first pixel is
  /// at (row, column) of the buffer.
  [[nodiscard]] program::Matrix pixels(program::BufferId tile, const Region& region,
                                       std::uint64_t row, std::uint64_t column) const;

  program::Builder& builder_;
  const Geometry& g_;
  stack::Types types_;
};

/// Returns one kernel for each layer, [tap][channel in][channel out], in the order in which
/// backward computes their gradients, which begins with the last layer.
[[nodiscard]] std::vector<stack::Parameter> parameters_of(const Geometry& geometry);

/// The kernels of all layers, with their gradients, master weights and optimizer states, in flat
/// buffers. Every rank has all of them, and gradients are summed over all ranks.
class Kernels {
 public:
  /// Allocates the buffers. The setup section, which is run once before the first step, fills the
  /// weights with random values made from the seed.
  Kernels(program::Builder& builder, const Geometry& geometry, const Request& request);

  [[nodiscard]] program::Slice weight(int layer) const {
    return stack::flat(states_.weights, of(layer).offset, of(layer).count());
  }
  [[nodiscard]] program::Slice gradient(int layer) const {
    return stack::flat(states_.gradients, of(layer).offset, of(layer).count());
  }
  /// Notes that the gradient of a layer has been written. If that completes a bucket and the option
  /// `overlap` is on, the bucket is summed over all ranks while later ops run.
  void done(int layer);
  /// Sums the remaining buckets, and updates the weights. Called after all gradients are written.
  void finish();
  void observe() const;

 private:
  [[nodiscard]] const stack::Parameter& of(int layer) const {
    return parameters_[parameters_.size() - 1 - static_cast<std::size_t>(layer)];
  }
  void reduce(const stack::Bucket& bucket);

  program::Builder& builder_;
  std::vector<stack::Parameter> parameters_;
  std::vector<stack::Bucket> buckets_;
  bool reduces_, overlaps_;
  program::StreamId stream_ = 0;
  program::Update update_;  ///< without slices, which differ by bucket
  stack::States states_;
};

/// Builds the programs of a training step of convolution layers on image tiles. Each layer computes
/// Y = X + g * conv(X), with g = 0.5 / layers. There are no activations between layers. The loss is
/// 1/2 |Y|^2 of the last layer. With a periodic boundary all ranks share one program. With a fixed
/// boundary there is one program for each position of a tile in the image (corner, edge or inside),
/// at most nine.
[[nodiscard]] program::ProgramSet build(const Request& request);

/// Returns the workload of convolutions, which does not depend on a model.
[[nodiscard]] Workload workload();

}  // namespace isoscale::workloads::tiles
