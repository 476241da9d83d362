// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "program/op.hpp"

namespace isoscale::program {

/// A vector clock: how many of the first ops of each stream are known to have finished.
struct Clock {
  std::array<std::uint32_t, max_streams> done{};

  void join(const Clock& other) {
    for (std::size_t s = 0; s < max_streams; ++s) done[s] = std::max(done[s], other.done[s]);
  }
  void join(StreamId stream, std::uint32_t count) { done[stream] = std::max(done[stream], count); }
  /// Forgets what `other` does not know.
  void meet(const Clock& other) {
    for (std::size_t s = 0; s < max_streams; ++s) done[s] = std::min(done[s], other.done[s]);
  }
  /// All that `other` knows is known here.
  [[nodiscard]] bool covers(const Clock& other) const {
    // Without a branch per stream, so that the compiler compares several at once.
    unsigned missing = 0;
    for (std::size_t s = 0; s < max_streams; ++s) missing |= done[s] < other.done[s] ? 1U : 0U;
    return missing == 0;
  }
};

}  // namespace isoscale::program
