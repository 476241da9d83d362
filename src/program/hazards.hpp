// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/access.hpp"
#include "program/clock.hpp"

namespace isoscale::program {

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
