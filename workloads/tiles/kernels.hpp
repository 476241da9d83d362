// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/tiles/geometry.hpp"

namespace isoscale::workloads::tiles {

/// One kernel per layer, [tap][channel in][channel out], in the order backward produces their
/// gradients: the last layer's first.
[[nodiscard]] std::vector<stack::Parameter> parameters_of(const Geometry& geometry);

/// The kernels of all layers, their gradients, master copies and optimizer state as flat buffers.
/// Every rank has all of them, and the gradients of all ranks are summed.
class Kernels {
 public:
  /// Allocates and, in the setup section, fills them from the seed.
  Kernels(program::Builder& builder, const Geometry& geometry, const Request& request);

  [[nodiscard]] program::Slice weight(int layer) const;
  [[nodiscard]] program::Slice gradient(int layer) const;
  /// This layer's gradient is complete here: sums the bucket that it fills over all ranks, under
  /// what follows.
  void done(int layer);
  /// All gradients are complete: sums what has not been, and updates the weights.
  void finish();
  void observe() const;

 private:
  [[nodiscard]] program::Slice part(program::BufferId buffer, std::uint64_t offset,
                                    std::uint64_t count) const;
  [[nodiscard]] const stack::Parameter& of(int layer) const;
  void allocate(const stack::Types& types);
  void fill(std::uint64_t seed);
  void fill_constant(program::BufferId buffer, double value);
  void reduce(const stack::Bucket& bucket);

  program::Builder& builder_;
  std::vector<stack::Parameter> parameters_;
  std::vector<stack::Bucket> buckets_;
  bool reduces_, overlaps_;
  program::StreamId stream_ = 0;
  program::Update update_;  ///< its numbers; the slices differ by bucket
  program::BufferId weights_ = program::no_buffer, gradients_ = program::no_buffer;
  program::BufferId masters_ = program::no_buffer;
  program::BufferId moment1_ = program::no_buffer, moment2_ = program::no_buffer;
  program::BufferId powers_ = program::no_buffer;
};

}  // namespace isoscale::workloads::tiles
