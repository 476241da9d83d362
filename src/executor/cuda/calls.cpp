// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/calls.hpp"

#include "executor/cuda/errors_and_handles.hpp"

namespace isoscale::executor::cuda {
namespace {

/// True if CUDA can do the copy as one 2-D copy, which requires rows that do not overlap; otherwise
/// it is done row by row.
bool has_pitches(const StridedCopy& call) {
  return call.src_row >= call.row_bytes && call.dst_row >= call.row_bytes;
}

using program::Advice;

// CUDA 13 names places by locations; earlier versions by device numbers.
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

void launch(const StridedCopy& call, cudaStream_t stream) {
  if (call.row_bytes == 0) return;
  const bool by_matrix = call.rows > 1 && has_pitches(call);
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* const src = call.src + b * call.src_batch;
    std::byte* const dst = call.dst + b * call.dst_batch;
    if (by_matrix) {
      check(cudaMemcpy2DAsync(dst, call.dst_row, src, call.src_row, call.row_bytes, call.rows,
                              cudaMemcpyDefault, stream));
      continue;
    }
    for (std::size_t row = 0; row < call.rows; ++row) {
      check(cudaMemcpyAsync(dst + row * call.dst_row, src + row * call.src_row, call.row_bytes,
                            cudaMemcpyDefault, stream));
    }
  }
}

void launch(const FillCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const AddCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const CastCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const UpdateCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const SelectCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const SpreadCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const RowsCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const PutCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const ChecksumCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const CopyCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const NormCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const NormGradientCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const ActivationCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const ActivationGradientCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const SoftmaxCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const SoftmaxGradientCall& call, cudaStream_t stream) { check(start(call, stream)); }

void launch(const HostFillCall& call, cudaStream_t stream) {
  FillCall fill = call.fill;
  fill.dst = call.staging;
  // Elements of the slice that are not in the shard must keep their values, so they are copied too.
  check(cudaMemcpyAsync(call.staging, call.dst, call.bytes, cudaMemcpyDefault, stream));
  launch(fill, stream);
  check(cudaMemcpyAsync(call.dst, call.staging, call.bytes, cudaMemcpyDefault, stream));
}

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

}  // namespace isoscale::executor::cuda
