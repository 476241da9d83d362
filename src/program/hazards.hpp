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

/// The order of ops: which ops are known to have finished before an op, and which must have.
namespace isoscale::program {

/// A vector clock: how many of the first ops of each stream are known to have finished.
struct Clock {
  std::array<std::uint32_t, max_streams> done{};

  void join(const Clock& other) {
    for (std::size_t s = 0; s < max_streams; ++s) done[s] = std::max(done[s], other.done[s]);
  }
  void join(StreamId stream, std::uint32_t count) { done[stream] = std::max(done[stream], count); }
  /// Keeps only what `other` also knows.
  void meet(const Clock& other) {
    for (std::size_t s = 0; s < max_streams; ++s) done[s] = std::min(done[s], other.done[s]);
  }
  /// True if all that `other` knows is known here.
  [[nodiscard]] bool covers(const Clock& other) const {
    // The loop has no branch per stream, so that the compiler compares several at once.
    unsigned missing = 0;
    for (std::size_t s = 0; s < max_streams; ++s) missing |= done[s] < other.done[s] ? 1U : 0U;
    return missing == 0;
  }
};

/// Lists the ops that are known to have finished before each op, from stream order and waits alone.
/// Throws base::Error for an op that waits for one that is issued later.
[[nodiscard]] std::vector<Clock> clocks_before(const Program& program);

/// Holds the last writer, and the readers since then, of each part of one placed buffer.
class BufferHistory {
 public:
  BufferHistory() = default;
  /// `birth` holds the last users of the storage before this buffer had it; the first op that
  /// touches a part comes after them.
  explicit BufferHistory(std::uint64_t count, const Clock& birth);

  /// Joins to `need` the ops that an access must come after.
  void require(const Access& access, Clock& need) const;
  /// Notes that op number `count` of `stream` made the access.
  void note(const Access& access, StreamId stream, std::uint32_t count);
  /// False if some element that the access reads was never written.
  [[nodiscard]] bool written(const Access& access) const;
  /// Returns all ops that have used the buffer, or the storage before it.
  [[nodiscard]] Clock users() const;
  /// Notes that all ops so far have finished: only which parts were written is kept.
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
