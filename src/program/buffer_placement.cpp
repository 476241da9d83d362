// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/buffer_placement.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "program/operands.hpp"

namespace isoscale::program {
namespace {

/// An arena is repacked only if it is more than this many times as large as the largest number of
/// bytes that are in use at one time.
constexpr double good_enough = 1.02;
/// repack() compares all pairs of buffers only up to this number of buffers; comparing all pairs of
/// more buffers would take more than some tens of milliseconds.
constexpr std::size_t most_compared = 4096;
/// Packer::by_end() forgets placed buffers whose bytes all remaining buffers may reuse, but only
/// once per this many placements, because it must check all placed buffers each time.
constexpr std::size_t places_between_drops = 32;

bool is_before(const Lifetime& a, const Lifetime& b) {
  if (!a.ends || a.last_op >= b.first_op) return false;
  return a.last_section < b.first_section ||
         (a.last_section == b.first_section && b.known.covers(a.users));
}

/// The new offsets of buffers.
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

/// Returns, for each memory space, the largest number of bytes in use at any op, if the ops run in
/// program order.
std::array<std::uint64_t, space_count> peaks(const RankProgram& program,
                                             const std::vector<Lifetime>& lives) {
  std::size_t ops = 0;
  for (const Program* section : program.sections()) ops += section->ops.size();
  std::vector<std::array<std::uint64_t, space_count>> taken(ops + 1), given_back(ops + 1);
  for (const Lifetime& life : lives) {
    if (life.buffer == no_buffer) continue;
    const auto space = static_cast<std::size_t>(program.buffers[life.buffer].space);
    taken[life.first_op][space] += life.bytes;
    if (life.ends) given_back[life.last_op + 1][space] += life.bytes;
  }
  std::array<std::uint64_t, space_count> live{}, peak{};
  for (std::size_t op = 0; op < ops; ++op) {
    for (std::size_t space = 0; space < space_count; ++space) {
      live[space] += taken[op][space] - given_back[op][space];
      peak[space] = std::max(peak[space], live[space]);
    }
  }
  return peak;
}

void add_clocks(const RankProgram& program, std::vector<Lifetime>& lives) {
  std::size_t section = 0, number = 0;
  for (const Program* ops : program.sections()) {
    const std::vector<Clock> before = clocks_before(*ops);
    Clock now;  // the ops of this section up to here
    for (std::size_t i = 0; i < before.size(); ++i, ++number) {
      const StreamId stream = ops->ops[i].stream;
      ++now.done[stream];
      for_each_slice(ops->ops[i].payload, [&](const Slice& slice, Mode) {
        Lifetime& life = lives[slice.buffer];
        if (life.first_op == number) life.known = before[i];
        if (life.first_section == section) life.known.meet(before[i]);
        if (life.last_section == section) life.users.join(stream, now.done[stream]);
      });
    }
    ++section;
  }
}

}  // namespace

std::vector<Lifetime> lifetimes(const RankProgram& program, const std::vector<bool>& may_end) {
  std::vector<Lifetime> lives(program.buffers.size());
  std::size_t section = 0, number = 0;
  for (const Program* ops : program.sections()) {
    for (const Op& op : ops->ops) {
      for_each_slice(op.payload, [&](const Slice& slice, Mode) {
        Lifetime& life = lives[slice.buffer];
        if (life.buffer == no_buffer) {
          const Buffer& buffer = program.buffers[slice.buffer];
          life.buffer = slice.buffer;
          life.bytes = Arena::footprint(buffer_bytes(buffer));
          life.first_section = section;
          life.first_op = number;
        }
        life.last_section = section;
        life.last_op = number;
      });
      ++number;
    }
    ++section;
  }
  for (Lifetime& life : lives) {
    life.ends =
        life.buffer != no_buffer && may_end[life.buffer] && life.first_section == life.last_section;
  }
  return lives;
}

Arena::Block Arena::take(std::uint64_t bytes, const Clock& known) {
  const std::uint64_t need = footprint(bytes);
  const Stretch stretch = tightest(need, known);
  return stretch.bytes >= need ? cut(stretch, need) : append(need, known);
}

Arena::Stretch Arena::tightest(std::uint64_t bytes, const Clock& known) const {
  Stretch best;
  for (std::size_t i = 0; i < free_.size();) {
    if (!known.covers(free_[i].last_users)) {
      ++i;
      continue;
    }
    Stretch stretch{.first = i, .bytes = 0};
    do {
      stretch.bytes += free_[i].bytes;
      ++i;
    } while (i < free_.size() && free_[i].offset == free_[i - 1].end() &&
             known.covers(free_[i].last_users));
    if (stretch.bytes >= bytes && (best.bytes == 0 || stretch.bytes < best.bytes)) best = stretch;
  }
  return best;
}

Arena::Block Arena::cut(const Stretch& stretch, std::uint64_t bytes) {
  Block block{.offset = free_[stretch.first].offset, .birth = {}};
  const std::uint64_t end = block.offset + bytes;
  std::size_t part = stretch.first;
  for (; part < free_.size() && free_[part].offset < end; ++part) {
    block.birth.join(free_[part].last_users);
    if (free_[part].end() <= end) continue;
    free_[part].bytes = free_[part].end() - end;
    free_[part].offset = end;
    break;
  }
  free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(stretch.first),
              free_.begin() + static_cast<std::ptrdiff_t>(part));
  return block;
}

Arena::Block Arena::append(std::uint64_t bytes, const Clock& known) {
  Block block{.offset = end_, .birth = {}};
  // A free block at the very end is extended rather than left behind.
  if (!free_.empty()) {
    const Free& last = free_.back();
    if (last.end() == end_ && last.bytes < bytes && known.covers(last.last_users)) {
      block = {.offset = last.offset, .birth = last.last_users};
      free_.pop_back();
    }
  }
  end_ = block.offset + bytes;
  return block;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes, const Clock& last_users) {
  const auto at = std::ranges::lower_bound(free_, offset, {}, &Free::offset) - free_.begin();
  free_.insert(free_.begin() + at,
               {.offset = offset, .bytes = footprint(bytes), .last_users = last_users});
  auto i = static_cast<std::size_t>(at);
  if (i > 0) {
    const std::size_t before = free_.size();
    merge(i - 1);
    if (free_.size() < before) --i;
  }
  if (i + 1 < free_.size()) merge(i);
}

void Arena::merge(std::size_t i) {
  Free& left = free_[i];
  const Free& right = free_[i + 1];
  const bool comparable =
      left.last_users.covers(right.last_users) || right.last_users.covers(left.last_users);
  if (left.end() != right.offset || !comparable) return;
  left.bytes += right.bytes;
  left.last_users.join(right.last_users);
  free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i + 1));
}

void Arena::drain() {
  std::vector<Free> merged;
  for (const Free& block : free_) {
    if (!merged.empty() && merged.back().end() == block.offset) {
      merged.back().bytes += block.bytes;
    } else {
      merged.push_back({.offset = block.offset, .bytes = block.bytes, .last_users = {}});
    }
  }
  free_ = std::move(merged);
}

void repack(RankProgram& program, std::vector<Lifetime> lives) {
  const std::array<std::uint64_t, space_count> peak = peaks(program, lives);
  bool has_clocks = false;
  // Symmetric buffers may be moved too. A rank accesses a peer's buffer at the offset that its own
  // buffer has. This remains correct: peers that share symmetric buffers have programs with the
  // same ops and buffers, which are packed in the same way.
  for (std::size_t space = 0; space < space_count; ++space) {
    std::uint64_t& bytes = program.arena_bytes[space];
    if (static_cast<double>(bytes) <= good_enough * static_cast<double>(peak[space])) continue;
    if (!has_clocks) add_clocks(program, lives);
    has_clocks = true;
    std::vector<Lifetime> here;
    std::ranges::copy_if(lives, std::back_inserter(here), [&](const Lifetime& life) {
      return life.buffer != no_buffer &&
             static_cast<std::size_t>(program.buffers[life.buffer].space) == space;
    });
    Packer packer{here};
    const Packing packing = here.size() <= most_compared ? packer.by_size() : packer.by_end();
    if (packing.bytes >= bytes) continue;
    bytes = packing.bytes;
    for (std::size_t i = 0; i < here.size(); ++i) {
      program.buffers[here[i].buffer].offset = packing.offsets[i];
    }
  }
}

}  // namespace isoscale::program
