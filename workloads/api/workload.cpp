// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

/// The L2 size assumed for a GPU whose L2 size is unknown; no GPU so far has a larger one (B200:
/// 126 MB).
constexpr units::Bytes largest_cache{std::uint64_t{128} << 20U};

}  // namespace

std::string_view name(Scaling scaling) { return scaling == Scaling::strong ? "strong" : "weak"; }

PlayBounds play_bounds(const Machine& machine) {
  if (machine.device == "host") return {};
  const units::Bytes cache = machine.gpu_cache.value_or(largest_cache);
  return {// CUDA events have a resolution of 0.5 us, which is 0.025% of this time.
          .least_time = units::Seconds{2e-3},
          .least_calls = 20,
          // The host takes at most about this long to launch one call of NCCL or cuBLASLt.
          .short_call = units::Seconds{10e-6},
          .most_short_calls = 64,
          .cold = units::Bytes{2 * cache.value()}};
}

}  // namespace isoscale::workloads
