// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

/// The weight matrices of a layer, in the order backward produces their gradients.
enum class Tensor : std::uint8_t { down, up, projection, qkv };
inline constexpr std::array layer_tensors{Tensor::down, Tensor::up, Tensor::projection,
                                          Tensor::qkv};

/// One weight matrix of this rank: rows x columns, contiguous in the flat buffers from `offset` on.
struct Parameter {
  std::string name;  ///< of the global tensor, "layer3.qkv"
  std::uint64_t rows = 0, columns = 0, offset = 0;
  program::Shard shard;
  std::uint64_t fan_in = 0;  ///< of the global tensor
  [[nodiscard]] std::uint64_t count() const { return rows * columns; }
};

/// Consecutive whole parameters that are reduced and updated together.
struct Bucket {
  std::uint64_t offset = 0, count = 0;  ///< elements of the flat buffers
  std::size_t last = 0;                 ///< index of its last parameter
};

/// The parameters of one stage on one rank, in the order backward produces their gradients.
[[nodiscard]] std::vector<Parameter> parameters_of(const Geometry& geometry);
/// A bucket is closed by the parameter that fills it to `bucket` bytes of `element` bytes each.
[[nodiscard]] std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters,
                                             std::uint64_t bucket, std::uint64_t element);

/// Weights, gradients, master copy and optimizer state as flat buffers in one order.
class Parameters {
 public:
  /// Allocates and, in the setup section, fills them from the seed.
  Parameters(program::Builder& builder, const Geometry& geometry, const Request& request);

  [[nodiscard]] program::Slice weight(int layer_of_stage, Tensor tensor) const;
  [[nodiscard]] program::Slice gradient(int layer_of_stage, Tensor tensor) const;
  [[nodiscard]] program::Slice vocabulary_weight() const;
  [[nodiscard]] program::Slice vocabulary_gradient() const;

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The buckets that are complete once this gradient has its last contribution.
  [[nodiscard]] const Bucket* completed_by(const program::Slice& gradient) const;
  [[nodiscard]] program::Slice gradient(const Bucket& bucket) const;

  /// One optimizer op per bucket; gradients are sums over `tokens` tokens.
  void emit_updates(program::Builder& builder, double tokens) const;
  void observe(program::Builder& builder) const;

 private:
  [[nodiscard]] const Parameter& find(int layer_of_stage, Tensor tensor) const;
  [[nodiscard]] program::Slice slice(program::BufferId buffer, std::uint64_t offset,
                                     std::uint64_t count) const;
  void fill(program::Builder& builder, std::uint64_t seed) const;

  bool has_vocabulary_;
  program::Optimizer optimizer_;
  /// Adam divides by sqrt(v) + epsilon. Under verification epsilon is far above any gradient, so
  /// that updates are smooth: else the sign of a gradient near 0 decides, and rounding decides
  /// that.
  double epsilon_;
  double rate_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  program::BufferId weights_, gradients_;
  program::BufferId masters_ = program::no_buffer;
  program::BufferId moment1_ = program::no_buffer, moment2_ = program::no_buffer;
  program::BufferId powers_ = program::no_buffer;
};

/// A key for the values of one tensor, from the run's seed and the tensor's name.
[[nodiscard]] std::uint64_t fill_key(std::uint64_t seed, std::string_view tensor);
/// The power of two that brings Fill's integers (standard deviation 73.3) nearest to `deviation`.
[[nodiscard]] int fill_exponent(double deviation);
/// The standard deviation of what Fill writes with an exponent.
[[nodiscard]] double fill_deviation(int exponent);

}  // namespace isoscale::workloads::stack
