// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/storage.hpp"

#include <algorithm>
#include <iterator>

namespace isoscale::program {
namespace {

std::uint64_t round_up(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, (bytes + Arena::alignment - 1) / Arena::alignment) *
         Arena::alignment;
}

}  // namespace

Arena::Block Arena::take(std::uint64_t bytes, const Clock& known) {
  const std::uint64_t need = round_up(bytes);
  const Stretch stretch = tightest(need, known);
  return stretch.bytes >= need ? cut(stretch, need) : append(need, known);
}

Arena::Stretch Arena::tightest(std::uint64_t bytes, const Clock& known) {
  Stretch best;
  for (auto block = free_.begin(); block != free_.end();) {
    if (!known.covers(block->second.last_users)) {
      ++block;
      continue;
    }
    Stretch stretch{.first = block, .past = block, .bytes = 0};
    std::uint64_t next = block->first;
    while (block != free_.end() && block->first == next && known.covers(block->second.last_users)) {
      stretch.bytes += block->second.bytes;
      next = block->first + block->second.bytes;
      stretch.past = ++block;
    }
    if (stretch.bytes >= bytes && (best.bytes == 0 || stretch.bytes < best.bytes)) best = stretch;
  }
  return best;
}

Arena::Block Arena::cut(Stretch stretch, std::uint64_t bytes) {
  Block block{.offset = stretch.first->first, .birth = {}};
  std::uint64_t taken = 0;
  for (auto part = stretch.first; taken < bytes;) {
    block.birth.join(part->second.last_users);
    const std::uint64_t wanted = bytes - taken;
    if (part->second.bytes > wanted) {
      Free rest = part->second;
      rest.bytes -= wanted;
      const std::uint64_t rest_offset = part->first + wanted;
      free_.erase(part);
      free_.emplace(rest_offset, rest);
      break;
    }
    taken += part->second.bytes;
    part = free_.erase(part);
  }
  return block;
}

Arena::Block Arena::append(std::uint64_t bytes, const Clock& known) {
  Block block{.offset = end_, .birth = {}};
  // A free block at the very end is grown rather than left behind.
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second.bytes == end_ && last->second.bytes < bytes &&
        known.covers(last->second.last_users)) {
      block = {.offset = last->first, .birth = last->second.last_users};
      free_.erase(last);
    }
  }
  end_ = block.offset + bytes;
  return block;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes, const Clock& last_users) {
  auto block =
      free_.emplace(offset, Free{.bytes = round_up(bytes), .last_users = last_users}).first;
  // Neighbours merge when one was freed after the other on every stream; else each stays as easy to
  // get as it is.
  const auto merge = [this](FreeList::iterator left, FreeList::iterator right) {
    const Clock& a = left->second.last_users;
    const Clock& b = right->second.last_users;
    if (left->first + left->second.bytes != right->first || !(a.covers(b) || b.covers(a))) {
      return right;
    }
    left->second.bytes += right->second.bytes;
    left->second.last_users.join(right->second.last_users);
    free_.erase(right);
    return left;
  };
  if (block != free_.begin()) block = merge(std::prev(block), block);
  if (const auto next = std::next(block); next != free_.end()) merge(block, next);
}

void Arena::drain() {
  FreeList merged;
  for (const auto& [offset, block] : free_) {
    const auto last = merged.empty() ? merged.end() : std::prev(merged.end());
    if (last != merged.end() && last->first + last->second.bytes == offset) {
      last->second.bytes += block.bytes;
    } else {
      merged.emplace_hint(merged.end(), offset, Free{.bytes = block.bytes, .last_users = {}});
    }
  }
  free_ = std::move(merged);
}

}  // namespace isoscale::program
