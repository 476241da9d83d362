// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/call.hpp"

#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {

void launch(const StridedCopy& call, cudaStream_t stream) {
  if (call.row_bytes == 0) return;
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* const src = call.src + b * call.src_batch;
    std::byte* const dst = call.dst + b * call.dst_batch;
    if (call.rows == 1) {
      check(cudaMemcpyAsync(dst, src, call.row_bytes, cudaMemcpyDefault, stream));
    } else {
      check(cudaMemcpy2DAsync(dst, call.dst_row, src, call.src_row, call.row_bytes, call.rows,
                              cudaMemcpyDefault, stream));
    }
  }
}

void launch(const FillCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const AddCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const CastCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const UpdateCall& call, cudaStream_t stream) { check(start(call, stream)); }

void launch(const HostFillCall& call, cudaStream_t stream) {
  void* staging = nullptr;
  check(cudaMallocAsync(&staging, call.bytes, stream));
  FillCall fill = call.fill;
  fill.dst = staging;
  // What the shard leaves out of the slice keeps its values.
  check(cudaMemcpyAsync(staging, call.dst, call.bytes, cudaMemcpyDefault, stream));
  launch(fill, stream);
  check(cudaMemcpyAsync(call.dst, staging, call.bytes, cudaMemcpyDefault, stream));
  check(cudaFreeAsync(staging, stream));
}

}  // namespace isoscale::executor::cuda
