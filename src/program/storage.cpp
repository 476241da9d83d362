// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/storage.hpp"

#include <algorithm>
#include <utility>

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
  // A free block at the very end is grown rather than left behind.
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
               {.offset = offset, .bytes = round_up(bytes), .last_users = last_users});
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

}  // namespace isoscale::program
