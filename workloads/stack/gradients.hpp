// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/buffers.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

/// Returns the type in which gradients are sent between replicas: option grad_dtype.
[[nodiscard]] program::DType travel_type(const Request& request);

/// The gradients that compression=topk keeps: `keep` of each `block` elements.
struct TopK {
  std::uint32_t block = 0, keep = 0;
  /// Returns how many of `count` elements a replica sends: `keep` for each block, also for the last
  /// and shorter one.
  [[nodiscard]] std::uint64_t kept(std::uint64_t count) const {
    return (count + block - 1) / block * keep;
  }
};

/// Turns the gradients of one bucket, each replica's own, into their sum on all replicas. It sums
/// in the type in which gradients accumulate, or in a narrow type, or only the largest with error
/// feedback.
class BucketReduction {
 public:
  /// `gradients` is the flat buffer that all buckets are slices of. Compression allocates as much
  /// again for gradients that have not been sent yet, and clears it in the setup section.
  BucketReduction(program::Builder& builder, const Geometry& geometry, const Request& request,
                  program::BufferId gradients);

  /// Emits the reduction of `bucket` over the group along `axes`; communication is on `stream`.
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
  double scale_ = 1;  ///< of data sent in a narrow type, a power of two
  TopK top_k_{};
  program::BufferId unsent_ = program::no_buffer;  ///< only with compression
};

/// The slice that the weight gradient of a microbatch is written to: gradient = product + beta *
/// gradient.
struct GradientTarget {
  program::Slice slice{};
  double beta = 0;
};

/// Reduces the gradients of a stage's replicas: one sum per bucket, under the backward passes that
/// follow, or after them all. With zero=1 each rank gets the sum of its part only. With zero=2|3 a
/// bucket of a microbatch's gradients is whole until it is complete, and a rank adds its part of
/// the sum to that of the microbatches before. It does nothing with strategy=funnel.
class Gradients {
 public:
  Gradients(program::Builder& builder, const Geometry& geometry, const Parameters& parameters,
            const Request& request);

  /// Returns the target for Parameters::gradient's slice of a weight.
  [[nodiscard]] GradientTarget target(const program::Slice& gradient, int microbatch);
  /// Notes that this gradient has its contribution of the microbatch.
  void done(const program::Slice& gradient, int microbatch);
  /// Called after all backward passes have been written: reduces the remaining buckets.
  void finish();

 private:
  void reduce(const Bucket& bucket);
  void reduce_scatter(const program::Slice& whole, const program::Slice& part);
  /// Sums over replicas that differ in other axes than dp.
  void reduce_part(const program::Slice& part);
  /// Adds this rank's part of the sum over dp of one microbatch's bucket.
  void accumulate(const Bucket& bucket, program::BufferId whole, int microbatch);
  [[nodiscard]] std::size_t number(const Bucket& bucket) const;

  program::Builder& builder_;
  const Geometry& g_;
  const Parameters& parameters_;
  BucketReduction reduction_;
  bool reduces_, reduces_experts_, overlaps_;
  program::StreamId stream_ = 0;
  Slots whole_, parts_;  ///< zero=2|3: buckets of one microbatch, and what is received of them
  std::map<std::pair<std::size_t, int>, program::BufferId> open_;  ///< by bucket and microbatch
};

}  // namespace isoscale::workloads::stack
