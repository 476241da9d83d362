// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// The type in which gradients travel between replicas: option grad_dtype.
[[nodiscard]] program::DType travel_type(const Request& request);

/// What compression=topk keeps of the gradients: of each `block` elements `keep`.
struct TopK {
  std::uint32_t block = 0, keep = 0;
  /// Elements that a replica sends of `count`: `keep` for each block, the last and short one too.
  [[nodiscard]] std::uint64_t kept(std::uint64_t count) const {
    return (count + block - 1) / block * keep;
  }
};
[[nodiscard]] TopK top_k_of(const Request& request);

/// Turns the gradients of one bucket, each replica's own, into their sum on all of them: in the
/// type in which they accumulate, in a narrow one, or the largest alone with error feedback.
class BucketReduction {
 public:
  /// `gradients` is the flat buffer that all buckets are slices of. Compression allocates as much
  /// again for what has not been sent yet, and clears it in the setup section.
  BucketReduction(program::Builder& builder, const Geometry& geometry, const Request& request,
                  program::BufferId gradients);

  /// Emits what brings `bucket` together over the group along `axes`; communication goes on
  /// `stream`.
  void write(program::StreamId stream, const program::Slice& bucket, mesh::AxisSet axes);

 private:
  void all_reduce(program::StreamId stream, const program::Slice& slice, mesh::AxisSet axes);
  void all_reduce_narrow(program::StreamId stream, const program::Slice& bucket,
                         mesh::AxisSet axes);
  void exchange_largest(program::StreamId stream, const program::Slice& bucket, mesh::AxisSet axes);
  [[nodiscard]] program::BufferId workspace(program::DType type, std::uint64_t count);

  program::Builder& builder_;
  program::DType type_, travel_type_;
  mesh::Shape mesh_;
  double scale_ = 1;  ///< of what travels in a narrow type, a power of two
  TopK top_k_{};
  program::BufferId unsent_ = program::no_buffer;  ///< with compression
};

}  // namespace isoscale::workloads::stack
