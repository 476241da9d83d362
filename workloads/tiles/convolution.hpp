// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/tiles/geometry.hpp"

namespace isoscale::workloads::tiles {

/// Writes convolutions as products with views of a tile and its halo, one product for each tap of
/// the kernel. No pixels are copied to make matrices. All ops are on the compute stream.
class Convolution {
 public:
  Convolution(program::Builder& builder, const Geometry& geometry, const stack::Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// Writes out = in + g * (in convolved with the kernel), for the pixels of `region`.
  void forward(const Region& region, program::BufferId in, const program::Slice& kernel,
               program::BufferId out) const;
  /// Writes d_in = d_out + g * (d_out convolved with the kernel's adjoint), for the whole tile.
  void backward(program::BufferId d_out, const program::Slice& kernel,
                program::BufferId d_in) const;
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
  enum class Adjoint : std::uint8_t { no, yes };
  void convolve(const Region& region, program::BufferId in, const program::Slice& kernel,
                program::BufferId out, Adjoint adjoint) const;
  /// The matrices of a sum of products: the first product is added to `first_addend`, each later
  /// one to `result`.
  struct Sum {
    program::Matrix first_addend, result;
  };
  void add_taps(const Region& region, program::BufferId in, const program::Slice& kernel,
                Adjoint adjoint, const Sum& sum) const;
  /// Returns the pixels of `region`, one matrix for each row. Its first pixel is at (row, column)
  /// of the buffer.
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
  /// Allocates the buffers; in the setup section, fills them from the seed.
  Kernels(program::Builder& builder, const Geometry& geometry, const Request& request);

  [[nodiscard]] program::Slice weight(int layer) const;
  [[nodiscard]] program::Slice gradient(int layer) const;
  /// Notes that the gradient of a layer has been written. If that completes a bucket, the bucket is
  /// summed over all ranks while later ops run.
  void done(int layer);
  /// Sums the remaining buckets, and updates the weights. Called when all gradients have been
  /// written.
  void finish();
  void observe() const;

 private:
  [[nodiscard]] const stack::Parameter& of(int layer) const;
  void allocate(const stack::Types& types);
  void fill(std::uint64_t seed);
  void reduce(const stack::Bucket& bucket);

  program::Builder& builder_;
  std::vector<stack::Parameter> parameters_;
  std::vector<stack::Bucket> buckets_;
  bool reduces_, overlaps_;
  program::StreamId stream_ = 0;
  program::Update update_;  ///< without slices, which differ by bucket
  program::BufferId weights_ = program::no_buffer, gradients_ = program::no_buffer;
  program::BufferId masters_ = program::no_buffer;
  program::BufferId moment1_ = program::no_buffer, moment2_ = program::no_buffer;
  program::BufferId powers_ = program::no_buffer;
};

}  // namespace isoscale::workloads::tiles
