// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"
#include "program/fill_and_checksum.hpp"

namespace isoscale::executor::cuda {
namespace {

using Word64 = unsigned long long;  // the type of atomicAdd

/// Adds the checksum of src to `sum`. The terms are integers, so the result does not depend on the
/// order in which warps add. `Word` is an unsigned integer of the size of an element.
template <class Word>
__global__ void checksum(Extents extents, In<Word> src, Places places, std::uint64_t mask,
                         Word64* sum) {
  Word64 mine = 0, not_finite = 0;
  for_each_element(
      extents,
      [&](const Word& bits, std::uint64_t place) {
        mine += program::checksum_term(bits, place);
        not_finite += program::is_finite(bits, mask) ? 0 : 1;
      },
      src, places);
  mine = over_warp(mine, Sum{});
  not_finite = over_warp(not_finite, Sum{});
  if (lane() != 0) return;
  atomicAdd(sum, mine);
  if (not_finite != 0) atomicAdd(sum + 1, not_finite);
}

template <class Word>
__global__ void flip_bits(Word* src, std::uint64_t rows, std::uint64_t columns, std::uint64_t batch,
                          std::uint64_t row_stride, std::uint64_t batch_stride,
                          const Word64* flip) {
  const std::uint64_t element = flip[0];
  if (flip[1] == 0 || element >= batch * rows * columns) return;
  const std::uint64_t row = element / columns;
  src[row / rows * batch_stride + row % rows * row_stride + element % columns] ^=
      static_cast<Word>(flip[1]);
}

template <class Word>
void start_as(const Arguments<program::Checksum>& call, cudaStream_t stream) {
  using Op = program::Checksum;
  const std::uint64_t rows = call.op.rows, columns = call.op.columns, batch = call.op.batch;
  const MatrixAt src = call[&Op::src];
  if (const OperandAt flip = call[&Op::flip]; flip.data != nullptr) {
    start_kernel(flip_bits<Word>, 1, 1, stream, reinterpret_cast<Word*>(src.data), rows, columns,
                 batch, src.row_stride, src.batch_stride,
                 reinterpret_cast<const Word64*>(flip.data));
  }
  start_elements(checksum<Word>, {rows, columns, batch}, stream, in<Word>(src),
                 Places{rows, columns}, program::exponent_mask(src.type),
                 reinterpret_cast<Word64*>(call[&Op::sum].data));
}

}  // namespace

cudaError_t start(const Arguments<program::Checksum>& call, cudaStream_t stream) {
  const cudaError_t cleared =
      cudaMemsetAsync(call[&program::Checksum::sum].data, 0, 2 * sizeof(Word64), stream);
  const bool is_empty = std::uint64_t{call.op.batch} * call.op.rows * call.op.columns == 0;
  if (cleared != cudaSuccess || is_empty) return cleared;
  switch (call.type) {
    case program::DType::f64:
    case program::DType::i64:
      start_as<std::uint64_t>(call, stream);
      break;
    case program::DType::f32:
    case program::DType::i32:
      start_as<std::uint32_t>(call, stream);
      break;
    case program::DType::f16:
    case program::DType::bf16:
      start_as<std::uint16_t>(call, stream);
      break;
    default:
      start_as<std::uint8_t>(call, stream);
  }
  return outcome(true);
}

}  // namespace isoscale::executor::cuda
