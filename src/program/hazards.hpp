// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "program/op.hpp"
#include "program/operands.hpp"
#include "program/program.hpp"

/// The order of ops: what is known to have finished before an op, and what must have.
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

/// Lists the ops that are known to have finished before each op, from stream order and waits alone.
/// Throws base::Error for an op that waits for one that is issued later.
[[nodiscard]] std::vector<Clock> clocks_before(const Program& program);

/// Who last wrote and who has since read each part of one placed buffer.
class BufferHistory {
 public:
  BufferHistory() = default;
  /// `birth`: the last users of the storage before this buffer had it; whoever touches any part for
  /// the first time comes after them.
  explicit BufferHistory(std::uint64_t count, const Clock& birth);

  /// Joins to `need` the ops that an access must come after.
  void require(const Access& access, Clock& need) const;
  /// Notes that op number `count` of `stream` made the access.
  void note(const Access& access, StreamId stream, std::uint32_t count);
  /// False when some element that the access reads was never written.
  [[nodiscard]] bool written(const Access& access) const;
  /// All who have used the buffer, and the storage before it.
  [[nodiscard]] Clock users() const;
  /// Everything so far has finished: only what was written is remembered.
  void drain();

 private:
  struct Segment {
    std::uint64_t begin = 0, end = 0;
    bool written = false;
    Clock writers;  ///< one op, or several on streams that were joined at a drain
    Clock readers;
  };
  [[nodiscard]] std::size_t find(std::uint64_t element) const;
  void split_at(std::uint64_t element);

  std::vector<Segment> segments_;  ///< sorted, disjoint, covering the buffer
};

}  // namespace isoscale::program
