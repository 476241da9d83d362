// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>
#include <type_traits>

#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/kernels.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr unsigned tile = 32;      // elements a side
constexpr unsigned tile_rows = 8;  // threads of a column: each takes four elements

/// Largest magnitude of a matrix, as the bits of an f32: for numbers that are not negative these
/// order as the numbers do, with NaN above all.
template <class From>
__global__ void find_largest(const From* src, std::uint64_t rows, std::uint64_t columns,
                             std::uint64_t src_row, unsigned int* largest) {
  unsigned int mine = 0;
  const std::uint64_t count = rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const auto value = static_cast<float>(load(src[e / columns * src_row + e % columns]));
    const unsigned int bits = __float_as_uint(value) & 0x7fffffffU;
    mine = bits > mine ? bits : mine;
  }
  mine = over_warp(mine, Most{});
  if (lane() == 0) atomicMax(largest, mine);
}

/// As program::amax_scale has it.
__device__ float scale_of(unsigned int largest_bits, double target) {
  const auto largest = static_cast<double>(__uint_as_float(largest_bits));
  if (!(largest > 0) || isinf(largest)) return 1;
  constexpr int most = 126;  // so that the scale and its inverse are normal f32 numbers
  const int exponent = ilogb(target / largest);
  return static_cast<float>(scalbn(1.0, exponent < -most  ? -most
                                        : exponent > most ? most
                                                          : exponent));
}

/// How a cast scales; `is_exact`: by a power of two.
struct Scaling {
  program::CastScale kind;
  bool is_exact;
  double given, target;
  const unsigned int* largest;
  float* descale;
};

/// The scale of a cast: given, or taken from what find_largest found, and then told to descale.
__device__ double scale_of_cast(const Scaling& scaling) {
  if (scaling.kind == program::CastScale::fixed) return scaling.given;
  const float found = scale_of(*scaling.largest, scaling.target);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
    *scaling.descale = 1 / found;
  }
  return found;
}

/// f32 unless one side is f64. Scales by a power of two are exact in either.
template <class From, class To>
using Between =
    std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;

/// scale * element, rounded once.
template <class From, class To>
__device__ To scaled(const From& element, double scale, bool is_exact) {
  using Value = Between<From, To>;
  if (is_exact) return rounded<To>(static_cast<Value>(load(element)) * static_cast<Value>(scale));
  return rounded<To>(static_cast<double>(load(element)) * scale);
}

template <class From, class To>
__global__ void cast_plain(const From* src, std::uint64_t src_row, To* dst, std::uint64_t dst_row,
                           std::uint64_t rows, std::uint64_t columns, Scaling scaling) {
  const double scale = scale_of_cast(scaling);
  const std::uint64_t count = rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t row = e / columns, column = e % columns;
    dst[row * dst_row + column] =
        scaled<From, To>(src[row * src_row + column], scale, scaling.is_exact);
  }
}

/// A tile of 32 x 32 a block, through shared memory, so that both sides are read and written along
/// their rows. `dst` may be null.
template <class From, class To>
__global__ void cast_transpose(const From* src, std::uint64_t src_row, To* dst,
                               std::uint64_t dst_row, To* transposed, std::uint64_t transposed_row,
                               std::uint64_t rows, std::uint64_t columns, Scaling scaling) {
  __shared__ To values[tile][tile + 1];  // one more: columns lie in different banks
  const double scale = scale_of_cast(scaling);
  const std::uint64_t tiles_down = (rows + tile - 1) / tile;
  const std::uint64_t column = std::uint64_t{blockIdx.x} * tile + threadIdx.x;
  for (std::uint64_t down = blockIdx.y; down < tiles_down; down += gridDim.y) {
    for (unsigned r = threadIdx.y; r < tile; r += tile_rows) {
      const std::uint64_t row = down * tile + r;
      if (row >= rows || column >= columns) continue;
      const To value = scaled<From, To>(src[row * src_row + column], scale, scaling.is_exact);
      values[r][threadIdx.x] = value;
      if (dst != nullptr) dst[row * dst_row + column] = value;
    }
    __syncthreads();
    for (unsigned c = threadIdx.y; c < tile; c += tile_rows) {
      const std::uint64_t out_row = std::uint64_t{blockIdx.x} * tile + c;
      const std::uint64_t out_column = down * tile + threadIdx.x;
      if (out_row >= columns || out_column >= rows) continue;
      transposed[out_row * transposed_row + out_column] = values[threadIdx.x][c];
    }
    __syncthreads();
  }
}

template <class From>
cudaError_t start_to_find(const CastCall& call, const From* src, cudaStream_t stream) {
  const cudaError_t cleared = cudaMemsetAsync(call.largest, 0, sizeof *call.largest, stream);
  if (cleared != cudaSuccess) return cleared;
  start_kernel(find_largest<From>, blocks_for(call.rows * call.columns), block_threads, stream, src,
               call.rows, call.columns, call.src_row, call.largest);
  return cudaGetLastError();
}

template <class From, class To>
void start_typed(const CastCall& call, const From* src, cudaStream_t stream) {
  auto* const dst = static_cast<To*>(call.dst);
  int exponent = 0;
  const bool is_power = std::abs(std::frexp(call.scale, &exponent)) == 0.5;
  const Scaling scaling{.kind = call.scaling,
                        .is_exact = call.scaling == program::CastScale::amax || is_power,
                        .given = call.scale,
                        .target = call.target,
                        .largest = call.largest,
                        .descale = call.descale};
  if (call.transposed == nullptr) {
    start_kernel(cast_plain<From, To>, blocks_for(call.rows * call.columns), block_threads, stream,
                 src, call.src_row, dst, call.dst_row, call.rows, call.columns, scaling);
    return;
  }
  constexpr std::uint64_t most_down = 65535;  // a grid's limit
  const std::uint64_t down = (call.rows + tile - 1) / tile;
  const dim3 grid{static_cast<unsigned>((call.columns + tile - 1) / tile),
                  static_cast<unsigned>(down < most_down ? down : most_down)};
  start_kernel(cast_transpose<From, To>, grid, dim3{tile, tile_rows}, stream, src, call.src_row,
               dst, call.dst_row, static_cast<To*>(call.transposed), call.transposed_row, call.rows,
               call.columns, scaling);
}

}  // namespace

cudaError_t start(const CastCall& call, cudaStream_t stream) {
  if (call.rows * call.columns == 0) return cudaSuccess;
  cudaError_t found = cudaSuccess;
  const bool has_types = with_float(call.from, [&](auto from) {
    using From = typename decltype(from)::type;
    const auto* const src = static_cast<const From*>(call.src);
    if (call.scaling == program::CastScale::amax) found = start_to_find(call, src, stream);
    if (found != cudaSuccess) return true;
    return with_float_or_fp8(call.to, [&](auto to) {
      start_typed<From, typename decltype(to)::type>(call, src, stream);
      return true;
    });
  });
  return found != cudaSuccess ? found : outcome(has_types);
}

bool has_kernel(const CastCall& call) {
  const auto any = [](auto) { return true; };
  return with_float(call.from, any) && with_float_or_fp8(call.to, any);
}

}  // namespace isoscale::executor::cuda
