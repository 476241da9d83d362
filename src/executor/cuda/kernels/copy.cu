// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/copy.hpp"

#include "executor/cuda/kernels/vectors.cuh"

namespace isoscale::executor::cuda {
namespace {

template <class Unit>
__global__ void copy(Extents extents, In<Unit> src, Out<Unit> dst) {
  for_each_element(
      extents, [](const Unit& from, Unit& to) { to = from; }, src, dst);
}

template <class Unit>
void start_in(const StridedCopy& pieces, cudaStream_t stream) {
  constexpr std::size_t size = sizeof(Unit);
  start_elements(copy<Unit>, {pieces.rows, pieces.row_bytes / size, pieces.batch}, stream,
                 In<Unit>{reinterpret_cast<const Unit*>(pieces.src), pieces.src_row / size,
                          pieces.src_batch / size},
                 Out<Unit>{reinterpret_cast<Unit*>(pieces.dst), pieces.dst_row / size,
                           pieces.dst_batch / size});
}

}  // namespace

cudaError_t start(const CopyCall& call, cudaStream_t stream) {
  const StridedCopy& pieces = call.pieces;
  if (pieces.row_bytes * pieces.rows * pieces.batch == 0) return cudaSuccess;
  // In the largest unit that all begins and strides are multiples of.
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(pieces.src) |
                             reinterpret_cast<std::uintptr_t>(pieces.dst) | pieces.row_bytes |
                             pieces.src_row | pieces.dst_row | pieces.src_batch | pieces.dst_batch;
  if (bits % sizeof(std::uint64_t) == 0) {
    start_in<std::uint64_t>(pieces, stream);
  } else if (bits % sizeof(std::uint32_t) == 0) {
    start_in<std::uint32_t>(pieces, stream);
  } else if (bits % sizeof(std::uint16_t) == 0) {
    start_in<std::uint16_t>(pieces, stream);
  } else {
    start_in<std::uint8_t>(pieces, stream);
  }
  return outcome(true);
}

}  // namespace isoscale::executor::cuda
