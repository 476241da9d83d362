// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/call.hpp"

#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {

namespace {

/// CUDA's 2-D copies want rows that do not overlap; a source that repeats itself is read row by
/// row.
bool has_pitches(const StridedCopy& call) {
  return call.src_row >= call.row_bytes && call.dst_row >= call.row_bytes;
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

void launch(const HostFillCall& call, cudaStream_t stream) {
  FillCall fill = call.fill;
  fill.dst = call.staging;
  // What the shard leaves out of the slice keeps its values.
  check(cudaMemcpyAsync(call.staging, call.dst, call.bytes, cudaMemcpyDefault, stream));
  launch(fill, stream);
  check(cudaMemcpyAsync(call.dst, call.staging, call.bytes, cudaMemcpyDefault, stream));
}

}  // namespace isoscale::executor::cuda
