// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Memory that NCCL gives and that its communicators are told of.
#include <algorithm>
#include <cstddef>

#include <nccl_device.h>

#include "tests/cuda/nccl_work.hpp"

using namespace isoscale::standin;

namespace {

/// How many communicators know a piece of memory; it must not be freed while one does.
std::map<const void*, int>& known() {
  static std::map<const void*, int> one;
  return one;
}

/// Communicators by their windows.
std::map<void*, std::weak_ptr<Ring>>& rings() {
  static std::map<void*, std::weak_ptr<Ring>> one;
  return one;
}

void* add(std::map<void*, Range>& ranges, const Range& range) {
  ++known()[range.begin];
  ++machine().alive.registrations;
  static std::uintptr_t last = 0;
  void* const handle = reinterpret_cast<void*>(++last);
  ranges[handle] = range;
  return handle;
}

ncclResult_t remove(std::map<void*, Range>& ranges, void* handle) {
  const auto found = ranges.find(handle);
  if (found == ranges.end()) return ncclInvalidArgument;
  --known()[found->second.begin];
  --machine().alive.registrations;
  ranges.erase(found);
  return ncclSuccess;
}

}  // namespace

namespace isoscale::standin {

Window window_of(void* handle) {
  const auto found = rings().find(handle);
  const std::shared_ptr<Ring> ring = found == rings().end() ? nullptr : found->second.lock();
  if (ring == nullptr || !ring->windows.contains(handle)) return {};
  return {.ring = ring, .range = ring->windows.at(handle)};
}

void forget_registrations(Ring& ring) {
  while (!ring.windows.empty()) remove(ring.windows, ring.windows.begin()->first);
  while (!ring.buffers.empty()) remove(ring.buffers, ring.buffers.begin()->first);
}

}  // namespace isoscale::standin

ncclResult_t ncclMemAlloc(void** to, std::size_t bytes) {
  *to = machine().memory.take(bytes, Kind::nccl, machine().settings.gpu_memory);
  return *to == nullptr ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclMemFree(void* memory) {
  if (!machine().memory.holds(memory, 1, Kind::nccl)) return ncclInvalidArgument;
  if (known()[memory] > 0) return ncclInvalidUsage;
  static_cast<void>(drain());
  return machine().memory.give_back(memory) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void* memory, std::size_t bytes,
                              void** handle) {
  if (!machine().memory.holds(memory, bytes)) return ncclInvalidArgument;
  *handle = add(communicator->ring->buffers, {static_cast<std::byte*>(memory), bytes});
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void* handle) {
  return remove(communicator->ring->buffers, handle);
}

/// Collective: all ranks give as much.
ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void* memory, std::size_t bytes,
                                    ncclWindow_t* window, int flags) {
  Ring& ring = *communicator->ring;
  const bool is_sound = machine().memory.holds(memory, bytes, Kind::nccl) &&
                        bytes % NCCL_WIN_REQUIRED_ALIGNMENT == 0 &&
                        flags == NCCL_WIN_COLL_SYMMETRIC;
  std::array<unsigned long, 2> extremes{bytes, ~bytes};
  MPI_Allreduce(MPI_IN_PLACE, extremes.data(), 2, MPI_UNSIGNED_LONG, MPI_MAX, ring.mpi);
  if (!is_sound || extremes[0] != ~extremes[1]) return ncclInvalidArgument;
  *window = nullptr;
  // From 2.28 on it is a window all the same, but of this rank alone.
  const bool is_null = machine().settings.nccl < NCCL_VERSION(2, 28, 0);
  if (!machine().settings.makes_windows && is_null) return ncclSuccess;
  *window = static_cast<ncclWindow_t>(add(ring.windows, {static_cast<std::byte*>(memory), bytes}));
  if (machine().settings.makes_windows) rings()[*window] = communicator->ring;
  return ncclSuccess;
}

/// Device communicators without resources, and what is to be known before one is made.
ncclResult_t ncclDevCommCreate(ncclComm_t communicator,
                               const ncclDevCommRequirements_t* requirements, ncclDevComm_t* made) {
  if (machine().settings.nccl >= NCCL_VERSION(2, 29, 0))
    return ncclInvalidUsage;  // no magic number
  if (!machine().settings.makes_windows) return ncclInvalidUsage;
  if (requirements->lsaBarrierCount != 0 || requirements->ginContextCount != 0) {
    return ncclInvalidArgument;
  }
  MPI_Barrier(communicator->ring->mpi);
  made->nRanks = communicator->ring->size;
  ++machine().alive.registrations;
  return ncclSuccess;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t communicator, const ncclDevComm_t* made) {
  if (made->nRanks != communicator->ring->size) return ncclInvalidArgument;
  --machine().alive.registrations;
  return ncclSuccess;
}

namespace isoscale::standin {

/// The beginning of what NCCL 2.29 has.
struct Properties {
  std::size_t size;
  unsigned magic, version;
  int attributes[4];
  bool device_api, multicast;
};
ncclResult_t query_properties(ncclComm_t communicator,
                              Properties* properties) __asm__("ncclCommQueryProperties");

ncclResult_t query_properties(ncclComm_t communicator, Properties* properties) {
  const int running = machine().settings.nccl;
  if (running < NCCL_VERSION(2, 29, 0) || properties->magic != 0xcafebeef) return ncclInvalidUsage;
  if (static_cast<int>(properties->version) > running) return ncclInvalidUsage;
  properties->attributes[0] = communicator->ring->rank;
  properties->device_api = machine().settings.makes_windows;
  return ncclSuccess;
}

}  // namespace isoscale::standin

/// Which ranks reach each other's memory.
ncclTeam_t ncclTeamLsa(ncclComm_t communicator) {
  const Ring& ring = *communicator->ring;
  const int many =
      machine().settings.mapped_ranks == 0 ? ring.size : machine().settings.mapped_ranks;
  return {.nRanks = many, .rank = ring.rank % many, .stride = 1};
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator, ncclWindow_t window) {
  return remove(communicator->ring->windows, window);
}
