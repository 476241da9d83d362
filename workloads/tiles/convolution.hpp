// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/builder.hpp"
#include "workloads/tiles/geometry.hpp"

namespace isoscale::workloads::tiles {

/// Convolutions as products with views of a tile and its halo, one product per tap of the kernel:
/// nothing is copied into columns. All on the compute stream.
class Convolution {
 public:
  Convolution(program::Builder& builder, const Geometry& geometry, const stack::Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// out = in + g * (in convolved with the kernel), over the pixels of `region`.
  void forward(const Region& region, program::BufferId in, const program::Slice& kernel,
               program::BufferId out) const;
  /// d_in = d_out + g * (d_out convolved with the kernel's adjoint), over the whole tile.
  void backward(program::BufferId d_out, const program::Slice& kernel,
                program::BufferId d_in) const;
  /// d_kernel = g * sum over the tile's pixels of (in, shifted by the tap) x d_out. Reads the halo
  /// columns of d_out between its first pixel and its last: they must hold zeros.
  void kernel_gradient(program::BufferId in, program::BufferId d_out,
                       const program::Slice& d_kernel) const;
  /// The pixels of the tile that `inside` leaves: bands above and below, and beside it.
  [[nodiscard]] std::vector<Region> around(const Region& inside) const;
  /// Zeros in the halo columns between the tile's first pixel and its last.
  void clear_columns(program::BufferId tile) const;

 private:
  enum class Adjoint : std::uint8_t { no, yes };
  void convolve(const Region& region, program::BufferId in, const program::Slice& kernel,
                program::BufferId out, Adjoint adjoint) const;
  /// Where products add up: to `first_addend`, then to what is there.
  struct Sum {
    program::Matrix first_addend, result;
  };
  void add_taps(const Region& region, program::BufferId in, const program::Slice& kernel,
                Adjoint adjoint, const Sum& sum) const;
  /// One matrix of `region`'s pixels per row of it; `row`, `column`: the region's first pixel in
  /// the buffer.
  [[nodiscard]] program::Matrix pixels(program::BufferId tile, const Region& region,
                                       std::uint64_t row, std::uint64_t column) const;

  program::Builder& builder_;
  const Geometry& g_;
  stack::Types types_;
};

}  // namespace isoscale::workloads::tiles
