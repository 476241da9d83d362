// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/hazards.hpp"
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
  /// Bytes that a block takes: a multiple of the alignment, and never 0.
  [[nodiscard]] static constexpr std::uint64_t footprint(std::uint64_t bytes) {
    return (bytes == 0 ? 1 : (bytes + alignment - 1) / alignment) * alignment;
  }

  /// A block of at least `bytes` for an op that knows `known` to have finished: the tightest free
  /// stretch it may have, else new storage at the end.
  [[nodiscard]] Block take(std::uint64_t bytes, const Clock& known);
  /// Gives a block back; `last_users` are the ops that used it.
  void give_back(std::uint64_t offset, std::uint64_t bytes, const Clock& last_users);
  /// All streams have drained: whatever was given back is free for anyone.
  void drain();

  [[nodiscard]] std::uint64_t bytes() const { return end_; }  ///< extent of the arena

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
};

/// Places the buffers of a finished program anew, now that the order of all ops is known, where the
/// arena of a space is larger than it need be. Two buffers share bytes only if every op that uses
/// one is known to finish before any that uses the other, so that the places add no dependency.
/// `released`: per buffer, whether it keeps nothing for another play.
void repack(RankProgram& program, const std::vector<bool>& released);

}  // namespace isoscale::program
