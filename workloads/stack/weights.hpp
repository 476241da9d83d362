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

/// One pass of a microbatch through a layer that reads its weights.
struct WeightUse {
  int layer = 0;  ///< of the stage; Weights::vocabulary = the output projection
  program::Place place{};
  std::size_t action = 0;  ///< of the schedule: passes of one follow each other at once
};

/// Makes the weights of a layer ready before each of its passes, and releases them after it.
/// Resident weights always are ready. Sharded ones (zero=3) are gathered over dp, bucket by bucket.
/// Those in host memory (offload=weights) are copied to the device, or if the memory is managed
/// advised to move there, layer by layer. This happens `prefetch` buckets or layers ahead, on a
/// stream of its own.
class Weights {
 public:
  static constexpr int vocabulary = -1;

  Weights(program::Builder& builder, const Geometry& geometry, const Parameters& parameters);

  /// Called before the next use, which is this layer's: fetches what is missing, and what comes
  /// after it.
  void before(int layer);
  /// Called after the use has been written.
  void after();
  /// Called after all uses have been written.
  void finish() { slots_.release(); }
  /// Returns the place of the weights of the layer in use.
  [[nodiscard]] program::Slice of(int layer, Tensor tensor) const;
  [[nodiscard]] program::Slice of_vocabulary() const;

 private:
  /// A stay of a unit on the device, over consecutive uses of one action.
  struct Stay {
    std::size_t unit = 0, first_use = 0, last_use = 0;
    program::BufferId slot = program::no_buffer;
  };
  void cut_units(const Geometry& geometry);
  void plan_stays();
  [[nodiscard]] std::vector<std::size_t> units_of(int layer) const;
  void fetch(Stay& stay);
  [[nodiscard]] program::Slice held(const program::Slice& weight) const;

  program::Builder& builder_;
  const Parameters& parameters_;
  bool resident_;
  std::vector<WeightUse> uses_;
  std::vector<Range> units_;       ///< each is fetched at once
  std::vector<Stay> stays_;        ///< in the order in which they begin
  std::vector<std::size_t> here_;  ///< stays that have begun and not ended
  Slots slots_;
  program::StreamId stream_ = 0;
  std::size_t use_ = 0;                   ///< the current use, or the next
  std::size_t needed_ = 0, fetched_ = 0;  ///< stays that must have begun, and that have begun
};

/// Updates the weights, bucket by bucket. With zero=1|2 each rank updates its part, and all ranks
/// gather the whole. Offloaded states come to the device before and return after, one bucket while
/// another is updated.
class Updates {
 public:
  Updates(program::Builder& builder, const Parameters& parameters);

  /// Writes the updates. Gradients are sums over `tokens` tokens.
  void write(double tokens);

 private:
  /// The slices that an update reads and writes; they are in slots if their home is elsewhere.
  struct Bundle {
    program::Slice master{}, moment1{}, moment2{};
    program::Slice weight{};                             ///< this rank's part
    program::Slice whole_weight{};                       ///< of the bucket; the same unless sharded
    std::vector<program::BufferId> states{}, weights{};  ///< slots
  };
  [[nodiscard]] Bundle fetch(const Bucket& bucket);
  void fetch_state(const Bucket& bucket, program::BufferId home, program::Slice& here,
                   Bundle& bundle);
  void fetch_weight(const Bucket& bucket, Bundle& bundle);
  void give_back(const Bucket& bucket, Bundle& bundle);
  void return_state(const Bucket& bucket, program::BufferId home, const program::Slice& here);
  void gather(const Bundle& bundle);
  [[nodiscard]] bool copies(Offload what) const;
  [[nodiscard]] bool advises(Offload what) const;

  program::Builder& builder_;
  const Parameters& parameters_;
  Slots states_, weights_;
  program::StreamId dp_ = 0, fetch_ = 0, return_ = 0;
};

}  // namespace isoscale::workloads::stack
