// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/buffer.hpp"
#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

/// The states that are kept in host memory until they are used.
enum class Offload : std::uint8_t { none, weights, optimizer };

/// The way in which a rank keeps what belongs to its parameters: options zero, reduce_bucket,
/// gather_bucket, prefetch, offload and offload_memory.
///
/// zero is the stage of ZeRO (Rajbhandari et al., arXiv 1910.02054, section 5) over dp: 1 shards
/// masters and moments, 2 gradients too, 3 weights too. With one replica along dp nothing can be
/// sharded, and it is 0.
struct StatePlan {
  int zero = 0;
  std::uint64_t shards = 1;        ///< dp where something is sharded, else 1
  std::uint64_t bucket_bytes = 0;  ///< that are sent at once, at least
  std::uint64_t element = 0;       ///< bytes of a gradient, or with zero=3 of a weight
  std::size_t prefetch = 0;        ///< units of weights that are fetched ahead
  Offload offload = Offload::none;
  program::Space host = program::Space::pinned;  ///< where offloaded states are kept
  bool overlaps = true;  ///< transfers have streams of their own, under GEMMs

  [[nodiscard]] bool shards_gradients() const { return zero >= 2; }
  [[nodiscard]] bool shards_weights() const { return zero == 3; }
  [[nodiscard]] bool is_managed() const { return host == program::Space::managed; }
  /// Return the spaces of the weights and of the optimizer's states.
  [[nodiscard]] program::Space weight_space() const {
    return offload == Offload::weights ? host : program::Space::device;
  }
  [[nodiscard]] program::Space optimizer_space() const {
    return offload == Offload::optimizer ? host : program::Space::device;
  }
};

[[nodiscard]] StatePlan state_plan_of(const Request& request);
/// Returns the bytes of weights, gradients, masters and moments on a rank of a stage that keeps all
/// of them (zero=0).
[[nodiscard]] units::Bytes whole_states(const Request& request, int stage);

/// The weight matrices of a layer, in the order in which backward produces their gradients.
enum class Tensor : std::uint8_t { down, up, projection, qkv };
inline constexpr std::array layer_tensors{Tensor::down, Tensor::up, Tensor::projection,
                                          Tensor::qkv};

/// One weight matrix of this rank: rows x columns, contiguous in the flat buffers from `offset` on.
struct Parameter {
  std::string name;  ///< of the global tensor, "layer3.qkv"
  std::uint64_t rows = 0, columns = 0, offset = 0;
  program::Shard shard;
  std::uint64_t fan_in = 0;  ///< of the global tensor
  bool of_expert = false;    ///< differs along ep, where its gradient is not shared
  /// The tensor that it is observed as a part of, and its place in it; "" = by itself. The same
  /// tensor of all experts of a layer is observed as one, since a single expert may get no token,
  /// and its weights then stay unchanged.
  std::string observed_in{};
  std::uint64_t observed_base = 0;
  [[nodiscard]] std::uint64_t count() const { return rows * columns; }
};

/// Consecutive whole parameters that are reduced and updated together.
struct Bucket {
  std::uint64_t offset = 0, count = 0;  ///< elements of the flat buffers
  std::size_t last = 0;                 ///< index of its last parameter
  std::uint64_t padding = 0;            ///< of the count, elements at its end of no parameter
  bool of_expert = false;               ///< of all its parameters
};

/// Returns the parameters of one stage on one rank, in the order in which backward produces their
/// gradients; those of experts come after all others.
[[nodiscard]] std::vector<Parameter> parameters_of(const Geometry& geometry);
/// Cuts parameters into buckets. A bucket ends with the parameter that fills it to `bucket` bytes,
/// at `element` bytes each.
[[nodiscard]] std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters,
                                             std::uint64_t bucket, std::uint64_t element);

/// Adds padding after each bucket so that it can be cut into `parts` equal parts.
void pad_buckets(std::vector<Parameter>& parameters, std::vector<Bucket>& buckets,
                 std::uint64_t parts);

/// Consecutive elements of the flat buffers.
struct Range {
  std::uint64_t offset = 0, count = 0;
  [[nodiscard]] std::uint64_t end() const { return offset + count; }
};

/// The flat buffers. A sharded one holds only this rank's part of each bucket, at 1/dp of the
/// bucket's offset.
struct States {
  program::BufferId weights = program::no_buffer;
  program::BufferId gradients = program::no_buffer;
  program::BufferId masters = program::no_buffer;
  program::BufferId moment1 = program::no_buffer, moment2 = program::no_buffer;
  program::BufferId powers = program::no_buffer;
};

/// Weights, gradients, master copy and optimizer state as flat buffers in one order.
class Parameters {
 public:
  /// Allocates the buffers and, in the setup section, fills them from the seed.
  Parameters(program::Builder& builder, const Geometry& geometry, const Request& request);

  /// Returns a slice of the buffer that all weights, or gradients, of a stage share. If there is no
  /// such buffer, the slice has no_buffer and says by its offset which of them is meant.
  [[nodiscard]] program::Slice weight(int layer_of_stage, Tensor tensor) const;
  [[nodiscard]] program::Slice gradient(int layer_of_stage, Tensor tensor) const;
  /// Returns the slice of an expert of this rank; tensor is up or down.
  [[nodiscard]] program::Slice expert_weight(int layer_of_stage, Tensor tensor, int expert) const;
  [[nodiscard]] program::Slice expert_gradient(int layer_of_stage, Tensor tensor, int expert) const;
  [[nodiscard]] program::Slice vocabulary_weight() const;
  [[nodiscard]] program::Slice vocabulary_gradient() const;

  [[nodiscard]] const StatePlan& plan() const { return plan_; }
  [[nodiscard]] const States& states() const { return states_; }
  [[nodiscard]] std::uint64_t largest_bucket() const;  ///< elements
  /// Returns the elements of a layer, or of the vocabulary projection.
  [[nodiscard]] Range range(int layer_of_stage) const;
  [[nodiscard]] Range vocabulary_range() const;
  /// Returns the bucket that holds this gradient.
  [[nodiscard]] const Bucket& bucket_of(const program::Slice& gradient) const;

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Returns the bucket that is complete once this gradient has its last contribution; nullptr if
  /// none is.
  [[nodiscard]] const Bucket* completed_by(const program::Slice& gradient) const;
  [[nodiscard]] program::Slice gradient(const Bucket& bucket) const;
  [[nodiscard]] program::Slice weight(const Bucket& bucket) const;

  /// Returns this rank's part of a bucket in a flat buffer of `buffer`'s states: all of it unless
  /// sharded.
  [[nodiscard]] program::Slice part(program::BufferId buffer, const Bucket& bucket) const;
  /// Returns the update of a bucket, without its slices; gradients are sums over `tokens` tokens.
  [[nodiscard]] program::Update update(std::size_t bucket, double tokens) const;
  /// Observes gradients and weights; sharded ones are gathered first.
  void observe(program::Builder& builder) const;

 private:
  [[nodiscard]] std::size_t index(int layer_of_stage, Tensor tensor, int expert = 0) const;
  [[nodiscard]] program::Slice slice(program::BufferId buffer, std::uint64_t offset,
                                     std::uint64_t count) const;
  [[nodiscard]] std::uint64_t count() const {
    return buckets_.back().offset + buckets_.back().count;
  }
  void allocate(program::Builder& builder, const Types& types);
  void fill(program::Builder& builder, std::uint64_t seed) const;
  /// Draws the parameters `first` ... `last` into a buffer that begins at `base` of the flat
  /// buffers.
  void draw(program::Builder& builder, std::uint64_t seed, program::BufferId into,
            std::uint64_t base, Range of) const;
  /// Draws each bucket into `scratch`, which has room for all of them or for the largest, and keeps
  /// this rank's part of it.
  void draw_parts(program::Builder& builder, std::uint64_t seed, program::BufferId into,
                  program::BufferId scratch) const;
  /// Does so with storage of its own.
  void draw_parts(program::Builder& builder, std::uint64_t seed, program::BufferId into) const;
  void gather_observed(program::Builder& builder, program::BufferId from,
                       program::BufferId to) const;

  bool has_vocabulary_;
  bool follows_;  ///< another rank updates the weights and has the states for it
  bool has_master_type_;
  int layers_, experts_;  ///< of this rank
  program::Optimizer optimizer_;
  /// Adam divides by sqrt(v) + epsilon. Under verification epsilon is far above any gradient, so
  /// that updates are smooth. Otherwise the sign of a gradient near 0 would decide an update, and
  /// rounding would decide that sign.
  double epsilon_;
  double rate_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  StatePlan plan_;
  States states_;
  /// The whole gradients and weights on each rank, if states are sharded and the program is
  /// verified.
  program::BufferId observed_gradients_ = program::no_buffer;
  program::BufferId observed_weights_ = program::no_buffer;
};

/// Returns a key for the values of one tensor, from the run's seed and the tensor's name.
[[nodiscard]] std::uint64_t fill_key(std::uint64_t seed, std::string_view tensor);
/// Returns a fill with random values of this standard deviation, or up to 2% less, on Fill's grid,
/// which is exact in bf16. It is never more, because attention without softmax multiplies three
/// tensors, and thus raises an excess to its third power in every layer.
[[nodiscard]] program::Fill random_fill(const program::Slice& dst, const program::Shard& shard,
                                        std::uint64_t key, double deviation);
/// Returns the initial values of a parameter, with standard deviation 1/sqrt(fan in).
[[nodiscard]] program::Fill weight_fill(const program::Slice& dst, const Parameter& parameter,
                                        std::uint64_t seed);

}  // namespace isoscale::workloads::stack
