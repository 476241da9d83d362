// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "program/builder.hpp"
#include "workloads/stack/bucket_reduction.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/slots.hpp"

namespace isoscale::workloads::stack {

/// Where the weight gradient of a microbatch goes: gradient = product + beta * gradient.
struct GradientTarget {
  program::Slice slice{};
  double beta = 0;
};

/// Brings the gradients of a stage's replicas together: one sum per bucket, under the backward
/// passes that follow or after them all. With zero=1 each rank gets the sum of its part only; with
/// zero=2|3 a bucket of a microbatch's gradients is whole until it is complete, and a rank adds its
/// part of the sum to what it has of the microbatches before. Nothing
/// with strategy=funnel.
class Gradients {
 public:
  Gradients(program::Builder& builder, const Geometry& geometry, const Parameters& parameters,
            const Request& request);

  /// For Parameters::gradient's slice of a weight.
  [[nodiscard]] GradientTarget target(const program::Slice& gradient, int microbatch);
  /// This gradient has its contribution of the microbatch.
  void done(const program::Slice& gradient, int microbatch);
  /// All backward passes have been written: reduces what has not been.
  void finish();

 private:
  void reduce(const Bucket& bucket);
  void reduce_scatter(const program::Slice& whole, const program::Slice& part);
  /// Sums over replicas that differ in other axes than dp.
  void reduce_part(const program::Slice& part);
  /// The part of a sum over dp of one microbatch's bucket.
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
