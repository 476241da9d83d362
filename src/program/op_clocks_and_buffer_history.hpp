// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "program/op.hpp"
#include "program/operands.hpp"
#include "program/program.hpp"

/// Determines the order of ops: which ops must finish before an op, and which are known to have
/// finished before it.
namespace isoscale::program {

/// A vector clock: for each stream, the number n such that its first n ops are known to have
/// finished.
struct Clock {
  std::array<std::uint32_t, max_streams> done{};

  void join(const Clock& other) {
    for (std::size_t s = 0; s < max_streams; ++s) done[s] = std::max(done[s], other.done[s]);
  }
  void join(StreamId stream, std::uint32_t count) { done[stream] = std::max(done[stream], count); }
  /// Keeps only the ops that are known to have finished in `other`, too.
  void meet(const Clock& other) {
    for (std::size_t s = 0; s < max_streams; ++s) done[s] = std::min(done[s], other.done[s]);
  }
  /// True if all ops that `other` knows to have finished are also known to this clock.
  [[nodiscard]] bool covers(const Clock& other) const {
    // The loop has no branch per stream, so that the compiler compares several at once.
    unsigned missing = 0;
    for (std::size_t s = 0; s < max_streams; ++s) missing |= done[s] < other.done[s] ? 1U : 0U;
    return missing == 0;
  }
};

/// Returns for each op the ops that are known to have finished before it, derived only from stream
/// order and waits. Throws base::Error if an op waits for an op that is issued later.
[[nodiscard]] std::vector<Clock> clocks_before(const Program& program);

/// The last writer, and the readers since then, of each part of a buffer.
class BufferHistory {
 public:
  /// `count` is the buffer's number of elements.
  explicit BufferHistory(std::uint64_t count)
      : segments_{{.begin = 0, .end = count, .written = false, .writer = {}, .readers = {}}} {}

  /// Adds to `need` the ops that must finish before an access.
  void require(const Access& access, Clock& need) const;
  /// Notes that the access was made by op number `count` of `stream`, counted from 1.
  void note(const Access& access, StreamId stream, std::uint32_t count);
  /// False if some element that the access reads was never written.
  [[nodiscard]] bool written(const Access& access) const;
  /// Forgets the recorded ops, which have all finished; keeps the record of the parts written.
  void drain();

 private:
  struct Segment {
    std::uint64_t begin = 0, end = 0;
    bool written = false;
    Clock writer, readers;
  };
  [[nodiscard]] std::size_t find(std::uint64_t element) const;
  [[nodiscard]] std::span<const Segment> touched(const Access& access) const;
  void split_at(std::uint64_t element);

  std::vector<Segment> segments_;  ///< sorted, disjoint, covering the buffer
};

}  // namespace isoscale::program
