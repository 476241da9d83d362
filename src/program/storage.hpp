// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/clock.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// The storage of one space: hands out blocks, and hands a freed block out again only to an op that
/// its last users are known to have finished before. (Reuse without that rule makes a stream wait
/// for another that it would else run beside, and can close a circle of waits between ranks.)
class Arena {
 public:
  struct Block {
    std::uint64_t offset = 0;
    Clock birth;  ///< what must have finished before any use of the block
  };

  static constexpr std::uint64_t alignment = 256;  ///< bytes

  /// A block of at least `bytes` for an op that knows `known` to have finished: the tightest free
  /// stretch it may have, else new storage at the end.
  [[nodiscard]] Block take(std::uint64_t bytes, const Clock& known);
  /// Gives a block back; `last_users` are the ops that used it.
  void give_back(std::uint64_t offset, std::uint64_t bytes, const Clock& last_users);
  /// All streams have drained: whatever was given back is free for anyone.
  void drain();

  [[nodiscard]] std::uint64_t bytes() const { return end_; }       ///< extent of the arena
  [[nodiscard]] std::uint64_t peak_live() const { return peak_; }  ///< bytes out at one time

 private:
  struct Free {
    std::uint64_t offset = 0, bytes = 0;
    Clock last_users;
    [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
  };

  struct Stretch {  ///< neighbouring free blocks
    std::size_t first = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Stretch tightest(std::uint64_t bytes, const Clock& known) const;
  [[nodiscard]] Block cut(const Stretch& stretch, std::uint64_t bytes);
  [[nodiscard]] Block append(std::uint64_t bytes, const Clock& known);
  /// Joins number i + 1 to number i where they are neighbours and one was freed after the other on
  /// every stream; else each stays as easy to get as it is.
  void merge(std::size_t i);

  std::vector<Free> free_;  ///< by offset
  std::uint64_t end_ = 0;
  std::uint64_t live_ = 0, peak_ = 0;
};

/// From when to when a buffer needs its storage, as far as the order of ops is known.
struct Lifetime {
  BufferId buffer = no_buffer;
  std::uint64_t bytes = 0;
  Section first = Section::setup, last = Section::setup;  ///< sections with ops that use it
  bool ends = false;  ///< released, and used in one section only: it keeps nothing for another play
  Clock known;        ///< what has finished, in section `first`, before any op that uses it
  Clock users;        ///< the ops that use it, in section `last`
};

/// Where the buffers of one space may lie: the largest are placed first, each in the tightest gap
/// between those that may be in use at the same time. Two share bytes only if every op that uses
/// one is known to finish before any that uses the other, so that the places add no dependency.
struct Packing {
  std::vector<std::uint64_t> offsets;  ///< one per lifetime, bytes
  std::uint64_t bytes = 0;             ///< extent
};
[[nodiscard]] Packing pack(const std::vector<Lifetime>& lifetimes);

}  // namespace isoscale::program
