// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/storage.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace isoscale::program {
namespace {

std::uint64_t round_up(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, (bytes + Arena::alignment - 1) / Arena::alignment) *
         Arena::alignment;
}

bool is_before(const Lifetime& a, const Lifetime& b) {
  if (!a.ends) return false;
  return a.last < b.first || (a.last == b.first && b.known.covers(a.users));
}

/// A piece of storage that is taken while a buffer is in use.
struct Taken {
  std::uint64_t begin = 0, end = 0;
};

/// The beginning of the tightest gap of at least `bytes`, else the end of all. Sorts `taken`.
std::uint64_t tightest_gap(std::vector<Taken>& taken, std::uint64_t bytes) {
  std::ranges::sort(taken, {}, &Taken::begin);
  std::uint64_t end = 0, best = 0, best_gap = 0;
  for (const Taken& other : taken) {
    const std::uint64_t gap = other.begin > end ? other.begin - end : 0;
    if (gap >= bytes && (best_gap == 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other.end);
  }
  return best_gap > 0 ? best : end;
}

}  // namespace

Arena::Block Arena::take(std::uint64_t bytes, const Clock& known) {
  const std::uint64_t need = round_up(bytes);
  live_ += need;
  peak_ = std::max(peak_, live_);
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
  live_ -= round_up(bytes);
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

Packing pack(const std::vector<Lifetime>& lifetimes) {
  Packing result{.offsets = std::vector<std::uint64_t>(lifetimes.size())};
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return lifetimes[i].bytes; });
  std::vector<Taken> taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Lifetime& mine = lifetimes[order[i]];
    const std::uint64_t bytes = round_up(mine.bytes);
    taken.clear();
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& other = lifetimes[order[j]];
      if (is_before(mine, other) || is_before(other, mine)) continue;
      const std::uint64_t begin = result.offsets[order[j]];
      taken.push_back({.begin = begin, .end = begin + round_up(other.bytes)});
    }
    const std::uint64_t offset = tightest_gap(taken, bytes);
    result.offsets[order[i]] = offset;
    result.bytes = std::max(result.bytes, offset + bytes);
  }
  return result;
}

}  // namespace isoscale::program
