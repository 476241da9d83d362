// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/op_clocks_and_buffer_history.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// The period for which a buffer needs its storage: the ops that use it, and the ops that are known
/// to finish before its first use.
struct Lifetime {
  BufferId buffer = no_buffer;
  std::uint64_t bytes = 0;                          ///< Arena::footprint() of its size
  std::size_t first_section = 0, last_section = 0;  ///< sections with ops that use it
  std::size_t first_op = 0, last_op = 0;            ///< ops that use it, numbered over all sections
  /// True if the storage may serve other buffers after `last_op`, because the buffer is temporary
  /// and used in one section only, so that no later run reads its data.
  bool ends = false;
  Clock known;  ///< ops of the first section that finish before any op that uses it
  Clock users;  ///< ops of the last section that use it
};

/// Returns the lifetimes of all buffers of a program whose ops are all written. may_end[i] is false
/// if buffer i keeps its storage to the end. The members `known` and `users` are left empty, since
/// they depend on waits. The member `buffer` is no_buffer for a buffer that no op uses.
[[nodiscard]] std::vector<Lifetime> lifetimes(const RankProgram& program,
                                              const std::vector<bool>& may_end);

/// Allocates blocks of storage in one memory space. A freed block is reused only for an op that is
/// known to come after the block's last users. (Otherwise reuse would make a stream wait for
/// another stream that it could run beside, and could cause a deadlock between ranks.)
class Arena {
 public:
  struct Block {
    std::uint64_t offset = 0;
    Clock birth;  ///< ops that must finish before any use of the block
  };

  static constexpr std::uint64_t alignment = 256;  ///< bytes
  /// Returns the bytes that a block takes: a multiple of the alignment, and never 0.
  [[nodiscard]] static constexpr std::uint64_t footprint(std::uint64_t bytes) {
    return (bytes == 0 ? 1 : (bytes + alignment - 1) / alignment) * alignment;
  }

  /// Returns a block of at least `bytes` for an op; `known` holds the ops that have finished before
  /// it. The block is cut from the smallest sufficient gap (adjacent free blocks that the op may
  /// use). If there is none, the arena grows, and the block is at its end.
  [[nodiscard]] Block take(std::uint64_t bytes, const Clock& known);
  /// Gives a block back; `last_users` are the ops that used it.
  void give_back(std::uint64_t offset, std::uint64_t bytes, const Clock& last_users);
  /// Notes that all streams have drained: any op may use the free blocks now.
  void drain();

  [[nodiscard]] std::uint64_t bytes() const { return end_; }  ///< extent of the arena

 private:
  struct Free {
    std::uint64_t offset = 0, bytes = 0;
    Clock last_users;
    [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
  };

  struct Stretch {  ///< consecutive free blocks without gaps
    std::size_t first = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Stretch tightest(std::uint64_t bytes, const Clock& known) const;
  [[nodiscard]] Block cut(const Stretch& stretch, std::uint64_t bytes);
  [[nodiscard]] Block append(std::uint64_t bytes, const Clock& known);
  /// Joins free block i + 1 to block i under two conditions. The blocks must be adjacent. The last
  /// users of one of them must come, on every stream, no earlier than those of the other, since
  /// otherwise the joined block would be harder to reuse than either block.
  void merge(std::size_t i);

  std::vector<Free> free_;  ///< in ascending order of offset
  std::uint64_t end_ = 0;
};

/// Gives the buffers of a finished program new offsets, now that the order of all ops is known. A
/// space is left as it is if its arena is hardly larger than the most bytes in use at one time, or
/// if new offsets would not make it smaller. Two buffers share bytes only if every op that uses one
/// is known to finish before any op that uses the other, so repacking adds no dependency. `lives`
/// has the lifetimes that lifetimes() returned for the program.
void repack(RankProgram& program, std::vector<Lifetime> lives);

}  // namespace isoscale::program
