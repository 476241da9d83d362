// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/bench/bench.hpp"

namespace isoscale::workloads {
namespace {

/// No GPU known so far has a larger L2 (B200: 126 MB).
constexpr units::Bytes largest_cache{std::uint64_t{128} << 20U};

}  // namespace

PlayBounds play_bounds(const Machine& machine) {
  if (machine.device == "host") return {};
  const units::Bytes cache = machine.gpu_cache.value() > 0 ? machine.gpu_cache : largest_cache;
  return {// Events of a GPU have a grain of 0.5 us.
          .least_time = units::Seconds{2e-3},
          .least_calls = 20,
          // A call of NCCL or cuBLASLt takes the host about as long, at most.
          .short_call = units::Seconds{10e-6},
          .most_short_calls = 64,
          .cold = units::Bytes{2 * cache.value()}};
}

}  // namespace isoscale::workloads
