// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The machine itself, and devices, errors and memory of the CUDA runtime.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
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

using namespace isoscale::standin;

namespace {

cudaError_t give(void** to, std::size_t bytes, Kind kind) {
  if (const auto status = synchronous_call_status(); status != cudaSuccess) return status;
  const Settings& settings = machine().settings;
  *to = machine().memory.take(bytes, kind,
                              kind == Kind::pinned ? settings.pinned_memory : settings.gpu_memory);
  return outcome(*to == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t take_back(void* pointer) {
  if (pointer == nullptr) return machine().sticky;
  if (machine().captures > 0) return outcome(cudaErrorStreamCaptureUnsupported);
  if (machine().memory.holds(pointer, 1, Kind::nccl)) return outcome(cudaErrorInvalidValue);
  const cudaError_t status = drain();  // as CUDA does before it frees
  if (!machine().memory.give_back(pointer)) return outcome(cudaErrorInvalidValue);
  return outcome(status);
}

struct Rows {
  std::size_t bytes = 0, count = 1, from = 0, to = 0;  ///< bytes of one, and from one to the next
};

void copy(void* to, const void* from, const Rows& rows) {
  for (std::size_t row = 0; row < rows.count; ++row) {
    std::memmove(static_cast<std::byte*>(to) + row * rows.to,
                 static_cast<const std::byte*>(from) + row * rows.from, rows.bytes);
  }
}

/// Memory that CUDA did not give out is pageable: the call ends when the copy is done.
cudaError_t copy_on(cudaStream_t stream, void* to, const void* from, const Rows& rows) {
  if (machine().sticky != cudaSuccess) return outcome(machine().sticky);
  const Allocations& memory = machine().memory;
  const bool is_pageable = !memory.holds(to, 1) || !memory.holds(from, 1);
  if (is_pageable && stream_of(stream).capture != nullptr) {
    return outcome(cudaErrorStreamCaptureUnsupported);
  }
  submit(stream, [=] { copy(to, from, rows); });
  return is_pageable ? cudaStreamSynchronize(stream) : cudaSuccess;
}

std::string place(cudaMemLocation location) {
  return location.type == cudaMemLocationTypeDevice ? "device " + std::to_string(location.id)
                                                    : "host";
}

std::string name(cudaMemoryAdvise advice) {
  static const std::map<cudaMemoryAdvise, std::string> names{
      {cudaMemAdviseSetReadMostly, "read mostly"},
      {cudaMemAdviseUnsetReadMostly, "not read mostly"},
      {cudaMemAdviseSetPreferredLocation, "prefer"},
      {cudaMemAdviseUnsetPreferredLocation, "prefer nothing"}};
  return names.at(advice);
}

/// Checks what both calls need.
cudaError_t status_for(const void* memory, std::size_t bytes) {
  if (!machine().settings.moves_pages) return outcome(cudaErrorInvalidDevice);
  if (!machine().memory.holds(memory, bytes, Kind::managed)) return outcome(cudaErrorInvalidValue);
  return synchronous_call_status();  // nor may a capture have them
}

}  // namespace

cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().settings.driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = machine().settings.gpus;
  const cudaError_t status = machine().settings.count_status;
  return outcome(status == cudaSuccess && *count == 0 ? cudaErrorNoDevice : status);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  if (index < 0 || index >= machine().settings.gpus) return outcome(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Stand-in GPU");
  properties->major = machine().settings.capability;
  properties->totalGlobalMem = machine().settings.gpu_memory;
  properties->uuid.bytes[15] = static_cast<char>(machine().settings.first_gpu + index);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int index) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0",
                static_cast<unsigned>(machine().settings.first_gpu + index) & 0xFFU);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int index) {
  return outcome(index >= 0 && index < machine().settings.gpus ? cudaSuccess
                                                               : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize() {
  if (const auto status = synchronous_call_status(); status != cudaSuccess) return status;
  return outcome(drain());
}

cudaError_t cudaGetLastError() {
  if (machine().sticky != cudaSuccess) return machine().sticky;
  return std::exchange(machine().last, cudaSuccess);
}

const char* cudaGetErrorName(cudaError_t /*error*/) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                          : "an error of the stand-in";
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = machine().settings.gpu_memory;
  *free = *total - std::min(*total, machine().memory.in_use(Kind::device));
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** to, std::size_t bytes) { return give(to, bytes, Kind::device); }
cudaError_t cudaMallocManaged(void** to, std::size_t bytes, unsigned /*flags*/) {
  return give(to, bytes, Kind::managed);
}
cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return give(to, bytes, Kind::pinned); }
cudaError_t cudaFree(void* pointer) { return take_back(pointer); }
cudaError_t cudaFreeHost(void* pointer) { return take_back(pointer); }

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  submit(stream, [=] {
    require_reachable(to, bytes);
    std::memset(to, value, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (const auto status = synchronous_call_status(); status != cudaSuccess) return status;
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind != cudaMemcpyDefault) return outcome(cudaErrorInvalidMemcpyDirection);
  return copy_on(stream, to, from, {.bytes = bytes});
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_row, const void* from, std::size_t from_row,
                              std::size_t bytes, std::size_t rows, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (kind != cudaMemcpyDefault) return outcome(cudaErrorInvalidMemcpyDirection);
  if (to_row < bytes || from_row < bytes) return outcome(cudaErrorInvalidPitchValue);
  return copy_on(stream, to, from, {.bytes = bytes, .count = rows, .from = from_row, .to = to_row});
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const auto status = synchronous_call_status(); status != cudaSuccess) return status;
  if (kind != cudaMemcpyDefault) return outcome(cudaErrorInvalidMemcpyDirection);
  const cudaError_t status = copy_on(nullptr, to, from, {.bytes = bytes});
  return status == cudaSuccess ? cudaStreamSynchronize(nullptr) : status;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  if (attribute == cudaDevAttrL2CacheSize) {
    *value = 1 << 20;
    return cudaSuccess;
  }
  if (attribute != cudaDevAttrConcurrentManagedAccess) return outcome(cudaErrorInvalidValue);
  *value = machine().settings.moves_pages ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, cudaMemLocation location,
                                 unsigned /*flags*/, cudaStream_t stream) {
  if (const cudaError_t status = status_for(memory, bytes); status != cudaSuccess) return status;
  submit(stream, [=] { machine().advice.push_back("prefetch " + place(location)); });
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  if (const cudaError_t status = status_for(memory, bytes); status != cudaSuccess) return status;
  const bool has_place = advice == cudaMemAdviseSetPreferredLocation;
  machine().advice.push_back(name(advice) + (has_place ? " " + place(location) : ""));
  return cudaSuccess;
}
