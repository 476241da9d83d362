// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Managed memory: where its pages lie. Prefetches are done in stream order, advice at once.
#include "tests/cuda/streams.hpp"

using namespace isoscale::standin;

namespace {

std::string place(cudaMemLocation location) {
  return location.type == cudaMemLocationTypeDevice ? "device " + std::to_string(location.id)
                                                    : "host";
}

std::string name(cudaMemoryAdvise advice) {
  switch (advice) {
    case cudaMemAdviseSetReadMostly:
      return "read mostly";
    case cudaMemAdviseUnsetReadMostly:
      return "not read mostly";
    case cudaMemAdviseSetPreferredLocation:
      return "prefer";
    case cudaMemAdviseUnsetPreferredLocation:
      return "prefer nothing";
    default:
      return "other";
  }
}

/// Checks what both calls need.
cudaError_t status_for(const void* memory, std::size_t bytes) {
  if (!machine().settings.moves_pages) return outcome(cudaErrorInvalidDevice);
  if (!machine().memory.holds(memory, bytes, Kind::managed)) return outcome(cudaErrorInvalidValue);
  return synchronous_call_status();  // nor may a capture have them
}

}  // namespace

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  if (attribute == cudaDevAttrL2CacheSize) {
    *value = machine().settings.l2_cache;
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
