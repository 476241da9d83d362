// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/lists.hpp"
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Sums the `pack` columns from `column` on.
template <unsigned pack, class T>
__device__ void sum_pack(In<T> src, Out<T> row, const std::uint32_t* from, std::uint32_t each,
                         Compute<T> scale, std::uint64_t column) {
  Compute<T> sums[pack]{};
  for (std::uint32_t i = 0; i < each; ++i) {
    if (from[i] == program::Rows::no_row) continue;
    Held<pack, 1, In<T>> held{src.row(from[i])};
    held.load(column, 0);
#pragma unroll
    for (unsigned e = 0; e < pack; ++e) sums[e] += load(held.element(0, e));
  }
  Held<pack, 1, Out<T>> held{row};
#pragma unroll
  for (unsigned e = 0; e < pack; ++e) held.element(0, e) = rounded<T>(sums[e] * scale);
  held.store(column, 0);
}

/// A thread block a row: its threads read and write neighbouring elements.
template <class T>
__global__ void sum_rows(Extents extents, In<T> src, Out<T> dst, const std::uint32_t* from,
                         std::uint32_t each, Compute<T> scale) {
  constexpr unsigned pack = pack_of<In<T>>();
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t /*matrix*/) {
    const std::uint32_t* const indices = from + row * each;
    const Out<T> to = dst.row(row);
    for (std::uint64_t p = threadIdx.x; p < extents.packs; p += blockDim.x) {
      sum_pack<pack>(src, to, indices, each, scale, p * pack);
    }
    for (std::uint64_t e = extents.packs * pack + threadIdx.x; e < extents.columns;
         e += blockDim.x) {
      sum_pack<1>(src, to, indices, each, scale, e);
    }
  });
}

}  // namespace

cudaError_t start(const RowsCall& call, cudaStream_t stream) {
  if (call.rows * call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_rows(sum_rows<T>, {call.rows, call.columns}, stream,
               In<T>{static_cast<const T*>(call.src), call.src_row},
               Out<T>{static_cast<T*>(call.dst), call.dst_row}, call.from, call.each,
               static_cast<Compute<T>>(call.scale));
    return true;
  }));
}

bool has_kernel(const RowsCall& call) {
  return with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
