// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/memory_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::Advice;

// CUDA 13 takes places; before it, numbers of devices.
#if CUDART_VERSION >= 13000
using Place = cudaMemLocation;
Place on_gpu(int device) { return {.type = cudaMemLocationTypeDevice, .id = device}; }
Place on_host() { return {.type = cudaMemLocationTypeHost, .id = 0}; }
cudaError_t prefetch(const AdviseCall& call, Place place, cudaStream_t stream) {
  return cudaMemPrefetchAsync(call.memory, call.bytes, place, 0, stream);
}
#else
using Place = int;
Place on_gpu(int device) { return device; }
Place on_host() { return cudaCpuDeviceId; }
cudaError_t prefetch(const AdviseCall& call, Place place, cudaStream_t stream) {
  return cudaMemPrefetchAsync(call.memory, call.bytes, place, stream);
}
#endif

cudaError_t advise(const AdviseCall& call, cudaMemoryAdvise advice, Place place) {
  return cudaMemAdvise(call.memory, call.bytes, advice, place);
}

}  // namespace

void launch(const AdviseCall& call, cudaStream_t stream) {
  if (call.bytes == 0) return;
  const Place device = on_gpu(call.device);
  switch (call.advice) {
    case Advice::prefetch_device:
      return check(prefetch(call, device, stream));
    case Advice::prefetch_host:
      return check(prefetch(call, on_host(), stream));
    case Advice::read_mostly:
      return check(advise(call, cudaMemAdviseSetReadMostly, device));
    case Advice::unset_read_mostly:
      return check(advise(call, cudaMemAdviseUnsetReadMostly, device));
    case Advice::prefer_device:
      return check(advise(call, cudaMemAdviseSetPreferredLocation, device));
    case Advice::prefer_host:
      return check(advise(call, cudaMemAdviseSetPreferredLocation, on_host()));
    case Advice::unset_preferred:
      return check(advise(call, cudaMemAdviseUnsetPreferredLocation, device));
  }
}

AdviseCall prepare_op(const Resolver& resolver, const program::Advise& op) {
  const program::Space space = resolver.space(op.slice);
  if (space != program::Space::managed) {
    throw base::Error(
        fmt::format("advice about {} memory: only managed memory takes it", program::name(space)));
  }
  AdviseCall call{.memory = resolver.address(op.slice),
                  .bytes = op.slice.count * resolver.element_size(op.slice),
                  .advice = op.advice};
  check(cudaGetDevice(&call.device));
  return call;
}

bool gives_advice(const program::RankProgram& program) {
  return std::ranges::any_of(program.sections(), [](const program::Program* section) {
    return std::ranges::any_of(section->ops, [](const program::Op& op) {
      return std::holds_alternative<program::Advise>(op.payload);
    });
  });
}

bool moves_pages() {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, device));
  return value != 0;
}

}  // namespace isoscale::executor::cuda
