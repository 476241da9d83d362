// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/buffer_placement.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "program/op_clocks_and_buffer_history.hpp"
#include "program/operands.hpp"

namespace isoscale::program {
namespace {

/// The period for which a buffer needs its storage: the ops that use it, and the ops that are known
/// to finish before its first use.
struct Lifetime {
  BufferId buffer = no_buffer;                      ///< no_buffer if no op uses it
  std::uint64_t bytes = 0;                          ///< padded_bytes() of its size
  std::size_t first_section = 0, last_section = 0;  ///< sections with ops that use it
  std::size_t first_op = 0, last_op = 0;            ///< ops that use it, numbered over all sections
  /// True if the storage may serve other buffers after `last_op`.
  bool ends = false;
  Clock known;  ///< ops of the first section that finish before any op that uses it
  Clock users;  ///< ops of the last section that use it
};

/// Packer::by_size(), which compares all pairs of buffers, is used only up to this number of
/// buffers; with more it would take more than about ten milliseconds.
constexpr std::size_t most_compared = 2048;
/// Packer::by_end() forgets placed buffers whose bytes all remaining buffers may reuse, but only
/// once per this many placements, because it must check all placed buffers each time.
constexpr std::size_t places_between_drops = 32;

bool is_before(const Lifetime& a, const Lifetime& b) {
  if (!a.ends || a.last_op >= b.first_op) return false;
  return a.last_section < b.first_section ||
         (a.last_section == b.first_section && b.known.covers(a.users));
}

/// The offsets of buffers.
struct Packing {
  std::vector<std::uint64_t> offsets;  ///< bytes, one for each Lifetime
  std::uint64_t bytes = 0;             ///< extent of all buffers
};

/// Places buffers one by one, each in the tightest gap between the buffers that may be in use at
/// the same time.
class Packer {
 public:
  explicit Packer(const std::vector<Lifetime>& lifetimes)
      : lives_(lifetimes), result_{.offsets = std::vector<std::uint64_t>(lifetimes.size())} {}

  /// Places buffers in descending order of size; among equally large buffers, the one whose last
  /// use is latest comes first. Each buffer is compared with all buffers placed before it.
  [[nodiscard]] Packing by_size() {
    for (const std::size_t i : ordered([&](const Lifetime& life) {
           return std::tuple{life.bytes, life.last_op};
         })) {
      place(i);
    }
    return std::move(result_);
  }

  /// Places buffers in reverse order of their last use; buffers that are never given back
  /// (Lifetime::ends is false) come first. Placed buffers whose bytes all remaining buffers may
  /// reuse are dropped from time to time, so that there are fewer comparisons than in by_size().
  /// This order leaves more gaps.
  [[nodiscard]] Packing by_end() {
    const std::vector<std::size_t> order = ordered([&](const Lifetime& life) {
      return std::tuple{!life.ends, life.last_op, life.bytes};
    });
    // Let S be the last section that uses buffer order[i]. users[i] holds the ops of S that use
    // this buffer, or a buffer that is placed later and whose last section is S too.
    std::vector<Clock> users(order.size());
    for (std::size_t i = order.size(); i-- > 0;) {
      const Lifetime& mine = lives_[order[i]];
      users[i] = mine.users;
      const bool goes_on =
          i + 1 < order.size() && lives_[order[i + 1]].last_section == mine.last_section;
      if (goes_on) users[i].join(users[i + 1]);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Lifetime& mine = lives_[order[i]];
      // Dropping placed buffers only saves comparisons, so it need not happen each time.
      if (mine.ends && i % places_between_drops == 0) drop_after(mine.last_section, users[i]);
      place(order[i]);
    }
    return std::move(result_);
  }

 private:
  /// A placed buffer. `first_op` and `last_op` are copied from `life`, since most comparisons need
  /// only these two numbers.
  struct Placed {
    std::uint64_t offset = 0, end = 0;
    std::size_t first_op = 0, last_op = 0;
    const Lifetime* life = nullptr;
    [[nodiscard]] bool is_in_the_way_of(const Lifetime& other) const {
      if (other.last_op < first_op) return !is_before(other, *life);
      return last_op >= other.first_op || !is_before(*life, other);
    }
  };

  template <class Key>
  [[nodiscard]] std::vector<std::size_t> ordered(const Key& key) const {
    std::vector<std::size_t> order(lives_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return key(lives_[i]); });
    return order;
  }

  /// Drops the placed buffers whose first use comes after all of `users`, which are ops of the
  /// section number `section`.
  void drop_after(std::size_t section, const Clock& users) {
    std::erase_if(placed_, [&](const Placed& other) {
      return other.life->first_section > section ||
             (other.life->first_section == section && other.life->known.covers(users));
    });
  }

  void place(std::size_t index) {
    const Lifetime& mine = lives_[index];
    std::uint64_t end = 0, best = 0, best_gap = 0;
    for (const Placed& other : placed_) {
      if (!other.is_in_the_way_of(mine)) continue;
      const std::uint64_t gap = other.offset > end ? other.offset - end : 0;
      if (gap >= mine.bytes && (best_gap == 0 || gap < best_gap)) {
        best = end;
        best_gap = gap;
        if (gap == mine.bytes) break;  // no gap is tighter
      }
      end = std::max(end, other.end);
    }
    const std::uint64_t offset = best_gap > 0 ? best : end;
    placed_.insert(std::ranges::upper_bound(placed_, offset, {}, &Placed::offset),
                   {.offset = offset,
                    .end = offset + mine.bytes,
                    .first_op = mine.first_op,
                    .last_op = mine.last_op,
                    .life = &mine});
    result_.offsets[index] = offset;
    result_.bytes = std::max(result_.bytes, offset + mine.bytes);
  }

  const std::vector<Lifetime>& lives_;
  Packing result_;
  std::vector<Placed> placed_;  ///< in ascending order of offset
};

/// Returns the lifetimes of all buffers.
std::vector<Lifetime> lifetimes(const RankProgram& program, const std::vector<bool>& may_end) {
  std::vector<Lifetime> lives(program.buffers.size());
  std::size_t section = 0, number = 0;
  for (const Program* ops : program.sections()) {
    const std::vector<Clock> before = clocks_before(*ops);
    Clock now;  // the ops of this section up to here
    for (std::size_t i = 0; i < before.size(); ++i, ++number) {
      const StreamId stream = ops->ops[i].stream;
      ++now.done[stream];
      for_each_slice(ops->ops[i].payload, [&](const Slice& slice, Mode) {
        Lifetime& life = lives[slice.buffer];
        if (life.buffer == no_buffer) {
          life.buffer = slice.buffer;
          life.bytes = padded_bytes(buffer_bytes(program.buffers[slice.buffer]));
          life.first_section = section;
          life.first_op = number;
          life.known = before[i];
        }
        if (life.first_section == section) life.known.meet(before[i]);
        if (std::exchange(life.last_section, section) != section) life.users = {};
        life.last_op = number;
        life.users.join(stream, now.done[stream]);
      });
    }
    ++section;
  }
  for (Lifetime& life : lives) {
    life.ends =
        life.buffer != no_buffer && may_end[life.buffer] && life.first_section == life.last_section;
  }
  return lives;
}

}  // namespace

void place_buffers(RankProgram& program, const std::vector<bool>& may_end) {
  std::array<std::vector<Lifetime>, space_count> lives;
  for (Lifetime& life : lifetimes(program, may_end)) {
    if (life.buffer == no_buffer) continue;
    lives[static_cast<std::size_t>(program.buffers[life.buffer].space)].push_back(life);
  }
  // A rank accesses a peer's symmetric buffer at the offset that its own buffer has. This is
  // correct because peers that share symmetric buffers have programs with the same ops and buffers,
  // which are placed in the same way.
  for (std::size_t space = 0; space < space_count; ++space) {
    const std::vector<Lifetime>& here = lives[space];
    Packer packer{here};
    const Packing packing = here.size() <= most_compared ? packer.by_size() : packer.by_end();
    program.arena_bytes[space] = packing.bytes;
    for (std::size_t i = 0; i < here.size(); ++i) {
      program.buffers[here[i].buffer].offset = packing.offsets[i];
    }
  }
}

}  // namespace isoscale::program
