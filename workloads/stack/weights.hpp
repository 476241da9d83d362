// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/buffers.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

/// One pass of a microbatch that reads the weights of a layer.
struct WeightUse {
  int layer = 0;  ///< within the stage; Weights::vocabulary = output projection
  Place place{};
  std::size_t action = 0;  ///< number of its action; an action's passes are consecutive
};

/// Makes the weights of a layer available before each pass that reads them, and releases them
/// afterwards. Weights that stay on the device are always available. Sharded ones (zero=3) are
/// gathered over dp, bucket by bucket. Those in host memory (offload=weights) are copied to the
/// device, layer by layer, or advised to move there if the memory is managed. This is done
/// `prefetch` buckets or layers ahead, on a stream of its own.
class Weights {
 public:
  static constexpr int vocabulary = Parameters::vocabulary;

  Weights(Builder& builder, const Geometry& geometry, const Parameters& parameters);

  /// Fetches the weights that the next use needs and that are not on the device yet, and those of
  /// the following uses. Must be called before each use, with its layer.
  void before(int layer);
  /// Must be called after the ops of each use have been written.
  void after();
  /// Must be called after all uses.
  void finish() { slots_.release(); }
  /// Returns the slice of a tensor's weights; `layer` must be in use. The output projection has one
  /// tensor.
  [[nodiscard]] Slice of(int layer, Tensor tensor) const;

 private:
  /// A time during which a unit is on the device. It covers consecutive uses in one action.
  struct Stay {
    std::size_t unit = 0, first_use = 0, last_use = 0;
    BufferId slot = no_buffer;
  };
  void cut_units(const Geometry& geometry);
  void plan_stays();
  [[nodiscard]] std::vector<std::size_t> units_of(int layer) const;
  void fetch(Stay& stay);
  [[nodiscard]] Slice held(const Slice& weight) const;

  Builder& builder_;
  const Parameters& parameters_;
  bool resident_;
  std::vector<WeightUse> uses_;
  std::vector<Range> units_;       ///< each is fetched as a whole
  std::vector<Stay> stays_;        ///< in the order of their begin
  std::vector<std::size_t> here_;  ///< stays that have begun but not ended
  Slots slots_;
  StreamId stream_ = 0;
  std::size_t use_ = 0;                   ///< index of the current use, or of the next one
  std::size_t needed_ = 0, fetched_ = 0;  ///< stays that must have begun, and those that have
};

/// Updates the weights, bucket by bucket. With zero=1|2 each rank updates its part of a bucket, and
/// all ranks then gather the whole bucket. Offloaded states are copied to the device before the
/// update and back after it, while another bucket is updated.
class Updates {
 public:
  Updates(Builder& builder, const Parameters& parameters);

  /// Writes all updates. Gradients are sums over `tokens` tokens.
  void write(double tokens);

 private:
  /// The slices that an update reads and writes. They are in slots if the states are kept
  /// elsewhere.
  struct Bundle {
    Slice master{}, moment1{}, moment2{};
    Slice weight{};        ///< this rank's part
    Slice whole_weight{};  ///< the whole bucket; the same if nothing is sharded
    std::vector<BufferId> states{}, weights{};  ///< slots that are in use
  };
  [[nodiscard]] Bundle fetch(const Bucket& bucket);
  void fetch_state(const Bucket& bucket, BufferId home, Slice& here, Bundle& bundle);
  void fetch_weight(const Bucket& bucket, Bundle& bundle);
  void give_back(const Bucket& bucket, Bundle& bundle);
  void return_state(const Bucket& bucket, BufferId home, const Slice& here);
  void gather(const Bundle& bundle);
  [[nodiscard]] bool copies(Offload what) const;
  [[nodiscard]] bool advises(Offload what) const;

  Builder& builder_;
  const Parameters& parameters_;
  Slots states_, weights_;
  StreamId dp_ = 0, fetch_ = 0, return_ = 0;
};

}  // namespace isoscale::workloads::stack
