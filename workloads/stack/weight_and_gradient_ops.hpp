// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/matrices_and_op_writer.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::stack {

/// Returns the type in which gradients are sent between replicas (option grad_dtype).
[[nodiscard]] DType travel_type(const Request& request);

/// The parameters of compression=topk: of each `block` elements of a gradient, the `keep` largest
/// are sent.
struct TopK {
  std::uint32_t block = 0, keep = 0;
};

/// The slice to which a microbatch's weight gradient is written: slice = product + beta * slice.
struct GradientTarget {
  Slice slice{};
  double beta = 0;
};

/// Sums the gradients of a stage over its replicas, bucket by bucket, while backward still runs or
/// after it. The sum is in the type in which gradients are accumulated, or in a narrow type. With
/// compression, only the largest elements are sent, and the others are added to the gradients of
/// the next step (error feedback). With zero=1 each rank gets only its part of the sum. With
/// zero=2|3 the buckets of each microbatch are summed as soon as backward has filled them, and each
/// rank adds its part of the result to its sum over earlier microbatches. With strategy=funnel this
/// class sums nothing.
class Gradients {
 public:
  /// With compression and several replicas, allocates a buffer for gradients that have not been
  /// sent yet. It is cleared in the setup section, which is run once before the first step.
  Gradients(Builder& builder, const Geometry& geometry, const Parameters& parameters,
            const Request& request);

  /// Returns where a microbatch's gradient of a weight is written. `gradient` is the slice from
  /// Parameters::gradient().
  [[nodiscard]] GradientTarget target(const Slice& gradient, int microbatch);
  /// Notes that the gradient of this weight has been written for a microbatch. If that completes
  /// the bucket, reduces it: with zero=2|3 in every microbatch, otherwise in the last one and only
  /// if the option `overlap` is on.
  void done(const Slice& gradient, int microbatch);
  /// Reduces the remaining buckets. Called after all backward passes have been written.
  void finish();

 private:
  void reduce(const Bucket& bucket);
  // These functions replace the gradients of a bucket on each replica by their sum over replicas;
  // exchange_largest() adds up only the elements that compression sends.
  void all_reduce(const Slice& bucket, mesh::AxisSet axes);
  void exchange_largest(const Slice& bucket, mesh::AxisSet axes);
  void cast(StreamId on, const Slice& from, const Slice& to, double scale);
  /// narrowed() returns a copy of gradients in the type in which they are sent (grad_dtype).
  /// widen() casts such a copy, or the part of it that a reduce-scatter left, back to the type in
  /// which gradients accumulate.
  [[nodiscard]] Slice narrowed(const Slice& wide);
  void widen(const Slice& narrow, const Slice& wide);
  void reduce_scatter(const Slice& whole, const Slice& part);
  /// Sums a part of a bucket over the ranks that have the same part.
  void reduce_part(const Slice& part);
  /// Sums a microbatch's bucket over the ranks among which its states are sharded, and adds this
  /// rank's part of the result to the sum of earlier microbatches.
  void accumulate(const Bucket& bucket, BufferId whole, int microbatch);

  Builder& builder_;
  const Geometry& g_;
  const Parameters& parameters_;
  mesh::Shape mesh_;
  DType type_, travel_type_;
  double scale_;  ///< factor for data in a narrow type, a power of two
  TopK top_k_{};
  BufferId unsent_ = no_buffer;  ///< gradients that were not sent yet; only with compression
  bool reduces_;
  StreamId stream_ = 0;
  /// zero=2|3: `whole_` has buckets of one microbatch, of which backward fills one while others are
  /// summed over ranks. `parts_` has this rank's parts of sums, before they are added to those of
  /// earlier microbatches.
  Slots whole_, parts_;
  /// zero=2|3: the buffers that backward has begun to fill, by bucket and microbatch
  std::map<std::pair<const Bucket*, int>, BufferId> open_;
};

/// One pass of a microbatch that reads the weights of a layer.
struct WeightUse {
  int layer = 0;  ///< within the stage; Parameters::vocabulary = output projection
  Place place{};
  std::size_t action = 0;  ///< index of its action among the stage's actions that read weights
};

/// Makes the whole weights of a layer available on the device during each pass that reads them.
/// Weights that stay on the device are always available. Sharded weights (zero=3) are gathered from
/// the ranks that share them, bucket by bucket. Weights in host memory (offload=weights) are copied
/// to the device, layer by layer, or advised to move there if the memory is managed. This is done
/// `prefetch` buckets or layers ahead and, if the option `overlap` is on, on another stream than
/// the GEMMs.
class Weights {
 public:
  Weights(Builder& builder, const Geometry& geometry, const Parameters& parameters);

  /// Fetches the weights of the next use and, ahead of time, the next `prefetch` buckets or layers
  /// of later uses, unless they are on the device already. Must be called before each use, with its
  /// layer.
  void before(int layer);
  /// Must be called after the ops of each use have been written.
  void after();
  /// Returns the slice of a tensor's weights; `layer` must be in use. For the output projection,
  /// which is a single tensor, `tensor` does not matter.
  [[nodiscard]] Slice of(int layer, Tensor tensor) const;
  /// True if the weights stay on the device for the whole step.
  [[nodiscard]] bool are_resident() const { return resident_; }

 private:
  /// An interval in which a unit (a bucket or a layer) is on the device. It covers consecutive uses
  /// of the unit in one action of the schedule.
  struct Stay {
    std::size_t unit = 0, first_use = 0, last_use = 0;
    BufferId slot = no_buffer;
  };
  void plan_stays();
  [[nodiscard]] std::vector<std::size_t> units_of(int layer) const;
  void fetch(Stay& stay);

  Builder& builder_;
  const Parameters& parameters_;
  bool resident_;
  std::vector<WeightUse> uses_;
  std::vector<Range> units_;       ///< buckets or layers, each fetched as a whole
  std::vector<Stay> stays_;        ///< in the order in which they begin
  std::vector<std::size_t> here_;  ///< stays that have begun but not ended
  Slots slots_;
  StreamId stream_ = 0;
  std::size_t use_ = 0;                   ///< index of the current use, or of the next one
  std::size_t needed_ = 0, fetched_ = 0;  ///< number of stays that must have begun; that have begun
};

/// Updates the weights, bucket by bucket. With zero=1|2 each rank updates its part of a bucket, and
/// all ranks then gather the whole bucket, at once or at the beginning of the next step. With
/// zero=3 each rank only updates its part. Offloaded states are moved to the device before the
/// update and back after it. If the option `overlap` is on, other buckets are updated meanwhile.
class Updates {
 public:
  Updates(Builder& builder, const Parameters& parameters);

  /// Writes the ops with which a step begins. With gather=next_step, they gather the weights that
  /// the previous step has updated, in the order in which forward reads them. The first op that
  /// reads a bucket waits until it has been gathered. Without gather=next_step, nothing is written.
  void begin();
  /// Writes the updates of all buckets.
  void write();

 private:
  /// The slices that an update reads and writes. For the update, offloaded states and weights are
  /// copied to device buffers (slots), unless they are in managed memory.
  struct Bundle {
    Update update{};
    /// The whole bucket, of which the update's weight is this rank's part. With zero=3 both are
    /// this rank's part.
    Slice whole_weight{};
    std::vector<BufferId> states{}, weights{};  ///< slots that are in use
  };
  [[nodiscard]] Bundle fetch(std::size_t number);
  void fetch_weight(const Bucket& bucket, Bundle& bundle);
  void give_back(const Bucket& bucket, Bundle& bundle);
  void gather(const Slice& part, const Slice& whole) {
    communicate(builder_, dp_, CollectiveKind::all_gather, parameters_.plan().axis, part, whole);
  }
  [[nodiscard]] bool copies(Offload what) const {
    return parameters_.plan().offload == what && !parameters_.plan().is_managed();
  }
  [[nodiscard]] bool advises(Offload what) const {
    return parameters_.plan().offload == what && parameters_.plan().is_managed();
  }

  Builder& builder_;
  const Parameters& parameters_;
  Slots states_, weights_;
  StreamId dp_ = 0, fetch_ = 0, return_ = 0;
};

}  // namespace isoscale::workloads::stack
