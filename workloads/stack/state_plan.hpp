// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/buffer.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// What waits in host memory until it is used.
enum class Offload : std::uint8_t { none, weights, optimizer };

/// How a rank keeps what belongs to its parameters: options zero, reduce_bucket, gather_bucket,
/// prefetch, offload and offload_memory.
///
/// zero is the stage of ZeRO (Rajbhandari et al., arXiv 1910.02054, section 5) over dp: 1 shards
/// masters and moments, 2 gradients too, 3 weights too. With one replica along dp nothing is to be
/// sharded, and it is 0.
struct StatePlan {
  int zero = 0;
  std::uint64_t shards = 1;        ///< dp where something is sharded, else 1
  std::uint64_t bucket_bytes = 0;  ///< that travel at once, at least
  std::uint64_t element = 0;       ///< bytes of what those are: a gradient, or a weight with zero=3
  std::size_t prefetch = 0;        ///< how many units of weights are fetched ahead
  Offload offload = Offload::none;
  program::Space host = program::Space::pinned;  ///< where offloaded states wait
  bool overlaps = true;  ///< transfers have streams of their own, under GEMMs

  [[nodiscard]] bool shards_gradients() const { return zero >= 2; }
  [[nodiscard]] bool shards_weights() const { return zero == 3; }
  [[nodiscard]] bool is_managed() const { return host == program::Space::managed; }
  /// Where the weights and the optimizer's states live.
  [[nodiscard]] program::Space weight_space() const {
    return offload == Offload::weights ? host : program::Space::device;
  }
  [[nodiscard]] program::Space optimizer_space() const {
    return offload == Offload::optimizer ? host : program::Space::device;
  }
};

[[nodiscard]] StatePlan state_plan_of(const Request& request);
/// Weights, gradients, masters and moments of a rank of a stage that keeps all of them (zero=0).
[[nodiscard]] units::Bytes whole_states(const Request& request, int stage);

}  // namespace isoscale::workloads::stack
