// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "program/builder.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/matrices_and_op_writer.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::workloads::stack {

/// Says how a rank keeps its weights, gradients and optimizer states, and when it gathers weights.
/// The plan follows from the mesh, the element types and the options zero, bucket, reduce_bucket,
/// gather_bucket, gather, offload, offload_memory and experts.
///
/// zero is the stage of ZeRO (Rajbhandari et al., arXiv 1910.02054, section 5): 1 shards masters
/// and moments, 2 gradients too, 3 weights too. They are sharded over the ranks along dp. In a mesh
/// with ep and without experts they are sharded along ep instead, and each group of ep has a copy
/// (hybrid sharding; Zhao et al., arXiv 2304.11277, section 3.2.2). With one rank along that axis
/// nothing can be sharded, so `zero` is 0.
struct StatePlan {
  int zero = 0;
  mesh::Axis axis = mesh::Axis::dp;  ///< the axis along which states are sharded
  std::uint64_t shards = 1;          ///< the extent of this axis if something is sharded, else 1
  std::uint64_t bucket_bytes = 0;    ///< a bucket ends once it has at least this many bytes
  /// Bytes of an element as it is sent: of a gradient or, with zero=3, of a weight.
  std::uint64_t element = 0;
  Offload offload = Offload::none;
  Space host = Space::pinned;      ///< memory in which offloaded states are kept
  bool gathers_next_step = false;  ///< a step first gathers weights that the previous one updated

  [[nodiscard]] bool shards_gradients() const { return zero >= 2; }
  [[nodiscard]] bool shards_weights() const { return zero == 3; }
  [[nodiscard]] bool is_managed() const { return host == Space::managed; }
  /// Returns the kind of memory in which weights or optimizer states are kept.
  [[nodiscard]] Space space_of(Offload what) const {
    return offload == what ? host : Space::device;
  }
  /// Returns this rank's part of `whole`, which is cut into equal parts, one for each shard.
  [[nodiscard]] Slice own_part(Slice whole) const {
    if (shards == 1 || whole.buffer == no_buffer) return whole;
    whole.axis = axis;
    whole.count /= shards;
    whole.step = whole.count;
    return whole;
  }
};

[[nodiscard]] StatePlan state_plan_of(const Request& request);
/// Returns the bytes of weights, gradients, masters and moments on each rank of a stage if nothing
/// is sharded (zero=0).
[[nodiscard]] units::Bytes whole_states(const Request& request, int stage);

/// The weight matrices of a layer, in the order in which backward computes their gradients.
enum class Tensor : std::uint8_t { down, up, projection, qkv };
inline constexpr std::array layer_tensors{Tensor::down, Tensor::up, Tensor::projection,
                                          Tensor::qkv};

/// One weight matrix of this rank. It has rows x columns elements, which are contiguous in the flat
/// buffers (see States) from `offset` on.
struct Parameter {
  std::string name;  ///< name of the global tensor: "layer3.qkv"
  std::uint64_t rows = 0, columns = 0, offset = 0;
  Shard shard;
  std::uint64_t fan_in = 0;  ///< inputs that each output of the matrix sums
  bool of_expert = false;    ///< differs along ep, so its gradient is not summed over ep
  /// Verification compares named tensors (program::Observable) of a run with those that one rank
  /// computes in f64, relative to the largest element. If this parameter is only a part of such a
  /// tensor, `observed_in` names the tensor, and `observed_base` is the parameter's offset in it.
  /// Otherwise `observed_in` is "".
  /// The down matrices of all experts of a layer form one such tensor, and so do the up matrices. A
  /// single expert may get no token: the change of its weights is then zero, and has no relative
  /// difference.
  std::string observed_in{};
  std::uint64_t observed_base = 0;
  [[nodiscard]] std::uint64_t count() const { return rows * columns; }
};

/// Consecutive parameters that are reduced and updated together. A parameter is never split over
/// buckets.
struct Bucket {
  std::uint64_t offset = 0, count = 0;  ///< range in the flat buffers
  std::size_t last = 0;                 ///< index of its last parameter
  std::uint64_t padding = 0;            ///< elements at the end that belong to no parameter
  bool of_expert = false;               ///< true if all its parameters belong to experts
};

/// Returns the parameters of one stage on one rank, in the order in which backward computes their
/// gradients. The parameters of experts come after all others.
[[nodiscard]] std::vector<Parameter> parameters_of(const Geometry& geometry);
/// Returns the buckets of some parameters. A bucket ends with the parameter that fills it to at
/// least `bucket` bytes, where each element counts `element` bytes. A bucket also ends before the
/// first parameter of an expert, and with the last parameter of all.
[[nodiscard]] std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters,
                                             std::uint64_t bucket, std::uint64_t element);

/// Adds padding at the end of each bucket, so that it can be cut into `parts` equal parts.
void pad_buckets(std::vector<Parameter>& parameters, std::vector<Bucket>& buckets,
                 std::uint64_t parts);

/// A range of elements of the flat buffers (see States).
struct Range {
  std::uint64_t offset = 0, count = 0;
  [[nodiscard]] std::uint64_t end() const { return offset + count; }
};

/// The flat buffers, in which all parameters of a stage follow one another. A sharded buffer has
/// only this rank's part of each bucket, which begins at the bucket's offset divided by the number
/// of shards.
struct States {
  BufferId weights = no_buffer;
  BufferId gradients = no_buffer;
  BufferId masters = no_buffer;
  BufferId moment1 = no_buffer, moment2 = no_buffer;
  BufferId powers = no_buffer;  ///< Adam: for each bucket, beta1^t and beta2^t after t steps
};

/// The weights, gradients, master weights and optimizer states of a stage, in flat buffers with the
/// same order of parameters.
class Parameters {
 public:
  /// Allocates the buffers. The setup section, which is run once before the first step, fills the
  /// weights with random values made from the seed.
  Parameters(Builder& builder, const Geometry& geometry, const Request& request);

  /// Stands for the output projection where a layer number is expected.
  static constexpr int vocabulary = -1;
  /// These functions return the slice of a layer's tensor in the flat buffer of weights or of
  /// gradients. If the tensor belongs to experts, `expert` is the expert's number on this rank. If
  /// the buffer is sharded, the slice has no_buffer, and its offset only identifies the parameter.
  [[nodiscard]] Slice weight(int layer_of_stage, Tensor tensor, int expert = 0) const;
  [[nodiscard]] Slice gradient(int layer_of_stage, Tensor tensor, int expert = 0) const;

  [[nodiscard]] const TrainingOptions& options() const { return g_.options; }
  [[nodiscard]] const StatePlan& plan() const { return plan_; }
  [[nodiscard]] const States& states() const { return states_; }
  /// Returns the number of elements of the largest bucket.
  [[nodiscard]] std::uint64_t largest_bucket() const {
    return std::ranges::max_element(buckets_, {}, &Bucket::count)->count;
  }
  /// Returns the range of a layer in the flat buffers.
  [[nodiscard]] Range range(int layer_of_stage) const;
  /// Returns the bucket to which this gradient belongs.
  [[nodiscard]] const Bucket& bucket_of(const Slice& gradient) const {
    return *std::prev(std::ranges::upper_bound(buckets_, gradient.offset, {}, &Bucket::offset));
  }

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Returns the bucket that is complete when this gradient is complete; nullptr if none is.
  [[nodiscard]] const Bucket* completed_by(const Slice& gradient) const {
    const Bucket& bucket = bucket_of(gradient);
    return parameters_[bucket.last].offset == gradient.offset ? &bucket : nullptr;
  }
  [[nodiscard]] Slice gradient(const Bucket& bucket) const {
    return flat(states_.gradients, bucket.offset, bucket.count);
  }
  [[nodiscard]] Slice weight(const Bucket& bucket) const {
    return flat(states_.weights, bucket.offset, bucket.count);
  }

  /// Returns this rank's part of a bucket in `buffer`, one of the flat buffers. If the buffer is
  /// not sharded, the part is the whole bucket.
  [[nodiscard]] Slice part(BufferId buffer, const Bucket& bucket) const {
    return flat(buffer, bucket.offset / plan_.shards, bucket.count / plan_.shards);
  }
  /// Returns the update op of bucket number `bucket`. Only its slice `powers` is set; the caller
  /// adds the slices of weights, gradients, masters and moments. The op divides gradients, which
  /// are sums over all tokens of the batch, by the number of tokens.
  [[nodiscard]] Update update(std::size_t bucket) const;
  /// Marks gradients and weights as data that verification compares (observables). Sharded data is
  /// gathered first. If there are master weights, they are marked instead of the weights. A rank
  /// for which follows() is true marks no gradients, and its weights only if their type needs no
  /// masters.
  void observe(Builder& builder) const;

 private:
  [[nodiscard]] std::size_t index(int layer_of_stage, Tensor tensor, int expert = 0) const;
  [[nodiscard]] std::uint64_t count() const {
    return buckets_.back().offset + buckets_.back().count;
  }
  void allocate(Builder& builder, const Types& types, const Request& request);
  void fill(Builder& builder, std::uint64_t seed) const;
  /// Writes the initial values of the parameters in the range `of` to the buffer `into`, and zeros
  /// to the padding in this range. The first element of `into` stands for element `base` of the
  /// flat buffers.
  void draw(Builder& builder, std::uint64_t seed, BufferId into, std::uint64_t base,
            Range of) const;
  /// Writes the initial values of each bucket to scratch memory, and copies this rank's part of
  /// them to `into`. The scratch memory is the buffer `whole`, which has room for all buckets, or,
  /// if that is no_buffer, a new one with room for the largest bucket.
  void draw_parts(Builder& builder, std::uint64_t seed, BufferId into,
                  BufferId whole = no_buffer) const;
  void gather_observed(Builder& builder, BufferId from, BufferId to) const;

  const Geometry& g_;
  bool has_master_type_;
  Update update_;  ///< without slices, and without powers and scale, which update() adds
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  StatePlan plan_;
  States states_;
  /// The whole gradients and weights, gathered for verification. They are allocated only if states
  /// are sharded and the program is verified. The weights are left out if there are no masters and
  /// States::weights has the whole weights, gathered at the end of each step.
  BufferId observed_gradients_ = no_buffer;
  BufferId observed_weights_ = no_buffer;
};

/// Returns the update op of programs that are verified, without its slices. Its rate changes the
/// largest weights by a few percent. Such a change is far above the rounding of f32 masters, but so
/// small that the second step does not amplify the rounding of the first. The rate grows with the
/// number of layers of the model, up to 100, because gradients scale with the residual gain, 0.5 /
/// layers. Adam divides by sqrt(v) + epsilon, with an epsilon far above any gradient. With a small
/// epsilon the update for a gradient near 0 would depend only on its sign, and thus on rounding.
[[nodiscard]] Update verified_update(program::Optimizer optimizer, int layers);

/// Returns the key from which a tensor's values are drawn. It depends on the run's seed and the
/// tensor's name.
[[nodiscard]] std::uint64_t fill_key(std::uint64_t seed, std::string_view tensor);
/// Returns an op that fills `dst` with random values, all of which are exact in bf16. Their
/// standard deviation is `deviation` or up to 2% less. It is never more, because attention without
/// softmax multiplies three tensors, so that an excess would grow to its third power in each layer.
[[nodiscard]] Fill random_fill(const Slice& dst, const Shard& shard, std::uint64_t key,
                               double deviation);
/// Returns an op that fills `dst` with the initial values of a parameter, whose standard deviation
/// is 1/sqrt(fan_in).
[[nodiscard]] Fill weight_fill(const Slice& dst, const Parameter& parameter, std::uint64_t seed);

}  // namespace isoscale::workloads::stack
