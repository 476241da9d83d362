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

/// Returns the type in which gradients are sent between replicas (option grad_dtype).
[[nodiscard]] DType travel_type(const Request& request);

/// The parameters of compression=topk: of each `block` elements of a gradient, `keep` are sent.
struct TopK {
  std::uint32_t block = 0, keep = 0;
  /// Returns how many of `count` elements a replica sends: `keep` for each block. The last block
  /// counts in full, even if it is shorter.
  [[nodiscard]] std::uint64_t kept(std::uint64_t count) const {
    return (count + block - 1) / block * keep;
  }
};

/// Replaces the gradients of one bucket on each replica by their sum over all replicas. They are
/// summed in the type in which gradients are accumulated, or in a narrow type. With compression,
/// only the largest are sent, and the rest is added to later ones (error feedback).
class BucketReduction {
 public:
  /// `gradients` is the flat buffer of which all buckets are slices. With compression a buffer of
  /// the same size is allocated for gradients that have not been sent yet, and cleared in the setup
  /// section.
  BucketReduction(Builder& builder, const Geometry& geometry, const Request& request,
                  BufferId gradients);

  /// Emits the reduction of `bucket` over the groups along `axes`. Communication is on `stream`.
  void write(StreamId stream, const Slice& bucket, mesh::AxisSet axes);

 private:
  void all_reduce_narrow(StreamId stream, const Slice& bucket, mesh::AxisSet axes);
  void exchange_largest(StreamId stream, const Slice& bucket, mesh::AxisSet axes);

  Builder& builder_;
  DType type_, travel_type_;
  mesh::Shape mesh_;
  double scale_ = 1;  ///< factor for data in a narrow type, a power of two
  TopK top_k_{};
  BufferId unsent_ = no_buffer;  ///< only with compression
};

/// The slice to which the weight gradient of a microbatch is written: slice = product + beta *
/// slice.
struct GradientTarget {
  Slice slice{};
  double beta = 0;
};

/// Sums the gradients of a stage over its replicas, bucket by bucket, while later backward passes
/// run or after all of them. With zero=1 each rank gets only its part of the sum. With zero=2|3 a
/// bucket has the whole gradients of one microbatch until it is complete; then each rank adds its
/// part of the sum to that of earlier microbatches. With strategy=funnel nothing is done here.
class Gradients {
 public:
  Gradients(Builder& builder, const Geometry& geometry, const Parameters& parameters,
            const Request& request);

  /// Returns where a microbatch's gradient of a weight is written. `gradient` is the slice from
  /// Parameters::gradient().
  [[nodiscard]] GradientTarget target(const Slice& gradient, int microbatch);
  /// Notes that the gradient of this weight has been written for a microbatch, and reduces its
  /// bucket if that is complete.
  void done(const Slice& gradient, int microbatch);
  /// Reduces the remaining buckets. Called after all backward passes have been written.
  void finish();

 private:
  void reduce(const Bucket& bucket);
  void reduce_scatter(const Slice& whole, const Slice& part);
  /// Sums a part over the replicas that differ in axes other than dp.
  void reduce_part(const Slice& part);
  /// Adds this rank's part of a microbatch's bucket, summed over dp, to that of earlier
  /// microbatches.
  void accumulate(const Bucket& bucket, BufferId whole, int microbatch);
  [[nodiscard]] std::size_t number(const Bucket& bucket) const;

  Builder& builder_;
  const Geometry& g_;
  const Parameters& parameters_;
  BucketReduction reduction_;
  bool reduces_, reduces_experts_, overlaps_;
  StreamId stream_ = 0;
  Slots whole_, parts_;  ///< zero=2|3: whole buckets of a microbatch, and received parts
  std::map<std::pair<std::size_t, int>, BufferId> open_;  ///< by bucket and microbatch
};

}  // namespace isoscale::workloads::stack
