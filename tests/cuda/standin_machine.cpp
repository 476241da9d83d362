// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/cuda/standin.hpp"

namespace isoscale::standin {
namespace {

constexpr std::size_t guard = 512;  // bytes, also the alignment
constexpr unsigned char guard_byte = 0xC3;
constexpr unsigned char fresh_byte = 0xFF;  // NaN in every floating type

bool is_guarded(const unsigned char* begin) {
  return std::all_of(begin, begin + guard, [](unsigned char byte) { return byte == guard_byte; });
}

}  // namespace

ItemPointer Queue::add(WorkPointer work, std::span<const ItemPointer> before, std::int64_t takes) {
  auto item = std::make_shared<Item>();
  item->work = std::move(work);
  item->begin = machine().host_time;
  item->takes = takes;
  for (const ItemPointer& other : before) {
    item->begin = std::max(item->begin, other->end);
    if (other->done) continue;
    other->next.push_back(item);
    ++item->missing;
  }
  ++size_;
  if (item->missing == 0) ready_.push_back(item);
  return item;
}

/// One seed in three prefers the newest, one the oldest, one none: each finds other mistakes.
std::size_t Queue::pick(std::mt19937_64& random) const {
  const std::uint64_t style = machine().settings.seed % 3, drawn = random();
  constexpr std::uint64_t one_in = 8;  // at times any other, so that nothing starves
  if (style == 0 || drawn % one_in == 0) return (drawn / one_in) % ready_.size();
  return style == 1 ? ready_.size() - 1 : 0;
}

bool Queue::advance(std::mt19937_64& random) {
  if (ready_.empty()) return false;
  const std::size_t index = pick(random);
  const ItemPointer item = ready_[index];
  machine().gpu_time = item->begin;
  if (!item->work->run()) return true;
  item->end = machine().gpu_time + item->takes;
  item->done = true;
  item->work.reset();
  --size_;
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(index));
  for (const ItemPointer& next : item->next) {
    next->begin = std::max(next->begin, item->end);
    if (--next->missing == 0) ready_.push_back(next);
  }
  item->next.clear();
  return true;
}

void Queue::clear() {
  ready_.clear();
  size_ = 0;
}

/// Large pieces come and go with each choice of an algorithm: the kernel need not make their pages
/// anew each time.
Allocations::Allocations() {
  constexpr int most = 1 << 30;  // bytes
  mallopt(M_MMAP_THRESHOLD, most);
  mallopt(M_TRIM_THRESHOLD, most);
}

Allocations::~Allocations() {
  for (const auto& [at, piece] : pieces_) std::free(reinterpret_cast<void*>(at - guard));
}

void* Allocations::take(std::size_t bytes, Kind kind, std::size_t limit) {
  if (bytes > limit || in_use(kind) > limit - bytes) return nullptr;
  const std::size_t whole = (bytes + 3 * guard - 1) / guard * guard;
  auto* const base = static_cast<unsigned char*>(std::aligned_alloc(guard, whole));
  if (base == nullptr) return nullptr;
  std::memset(base, guard_byte, guard);
  std::memset(base + guard, fresh_byte, bytes);
  std::memset(base + guard + bytes, guard_byte, whole - guard - bytes);
  pieces_[reinterpret_cast<std::uintptr_t>(base + guard)] = {.bytes = bytes, .kind = kind};
  return base + guard;
}

bool Allocations::give_back(void* pointer) {
  const auto found = pieces_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == pieces_.end()) return false;
  auto* const data = static_cast<unsigned char*>(pointer);
  if (!is_guarded(data - guard) || !is_guarded(data + found->second.bytes)) ++damaged_;
  pieces_.erase(found);
  std::free(data - guard);
  return true;
}

bool Allocations::holds(const void* pointer, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  auto next = pieces_.upper_bound(at);
  if (next == pieces_.begin()) return false;
  const auto& [begin, piece] = *--next;
  return at + bytes <= begin + piece.bytes;
}

bool Allocations::holds(const void* pointer, std::size_t bytes, Kind kind) const {
  const auto next = pieces_.upper_bound(reinterpret_cast<std::uintptr_t>(pointer));
  return holds(pointer, bytes) && std::prev(next)->second.kind == kind;
}

std::size_t Allocations::in_use(Kind kind) const {
  const auto pool = [](Kind one) { return one == Kind::pinned; };
  std::size_t bytes = 0;
  for (const auto& [at, piece] : pieces_) bytes += pool(piece.kind) == pool(kind) ? piece.bytes : 0;
  return bytes;
}

void Machine::reset(const Settings& chosen) {
  settings = chosen;
  random.seed(chosen.seed);
  queue.clear();
  last = sticky = cudaSuccess;
  captures = 0;
  worked = scaled_by_zero = added_fast = 0;
  matmuls = graph_launches = symmetric_calls = registered_calls = marks = 0;
  host_time = gpu_time = 0;
  choices.clear();
  advice.clear();
  loaded.clear();
  looks.clear();
}

bool Machine::advance() {
  constexpr std::uint64_t most_at_once = 16;
  if (sticky != cudaSuccess) return false;
  try {
    bool any = false;
    for (std::uint64_t i = random() % most_at_once + 1; i > 0; --i) any |= queue.advance(random);
    return any;
  } catch (const Fault&) {
    sticky = cudaErrorIllegalAddress;
    return false;
  }
}

Machine& machine() {
  static Machine one;
  return one;
}

void require_reachable(const void* pointer, std::size_t bytes) {
  if (bytes > 0 && !machine().memory.holds(pointer, bytes)) throw Fault{};
}

}  // namespace isoscale::standin
