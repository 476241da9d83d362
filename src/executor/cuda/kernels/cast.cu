// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>
#include <type_traits>

#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vector_access.cuh"

namespace isoscale::executor::cuda {
namespace {

constexpr unsigned tile = 64;  // elements per side of a square tile

/// Finds the largest magnitude of a matrix, as the bits of an f32. As integers, the bits of
/// positive numbers sort like the numbers, with NaN above all.
template <class From>
__global__ void find_largest(Extents extents, In<From> src, unsigned int* largest) {
  unsigned int mine = 0;
  for_each_element(
      extents,
      [&](const From& element) {
        const auto value = static_cast<float>(load(element));
        mine = Most{}(mine, __float_as_uint(value) & 0x7fffffffU);
      },
      src);
  mine = over_warp(mine, Most{});
  if (lane() == 0) atomicMax(largest, mine);
}

/// Returns the scale of CastScale::amax, computed in f64: 2^floor(log2(target / largest)), with the
/// exponent limited to -126 ... 126; 1 if `largest` is 0 or not finite.
__device__ float scale_of(unsigned int largest_bits, double target) {
  const auto largest = static_cast<double>(__uint_as_float(largest_bits));
  if (!(largest > 0) || isinf(largest)) return 1;
  constexpr int most = 126;  // so that the scale and its inverse are normal f32 numbers
  const int exponent = ilogb(target / largest);
  return static_cast<float>(scalbn(1.0, exponent < -most  ? -most
                                        : exponent > most ? most
                                                          : exponent));
}

/// The scaling of a cast; `is_exact` is true if the scale is a power of two.
struct Scaling {
  program::CastScale kind;
  bool is_exact;
  double given, target;
  const unsigned int* largest;
  float* descale;
};

/// Returns the scale of a cast: the given one, or the one that follows from the result of
/// find_largest. In the second case, one thread writes its inverse to descale.
__device__ double scale_of_cast(const Scaling& scaling) {
  if (scaling.kind == program::CastScale::fixed) return scaling.given;
  const float found = scale_of(*scaling.largest, scaling.target);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
    *scaling.descale = 1 / found;
  }
  return found;
}

/// The type in which a cast computes: f32, or f64 if one side is f64. Scales that are powers of two
/// are exact in both types.
template <class From, class To>
using Between =
    std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;

/// Returns scale * element, rounded once.
template <class From, class To>
__device__ To scaled(const From& element, double scale, bool is_exact) {
  using Value = Between<From, To>;
  if (is_exact) return rounded<To>(static_cast<Value>(load(element)) * static_cast<Value>(scale));
  return rounded<To>(static_cast<double>(load(element)) * scale);
}

template <class From, class To>
__global__ void cast_plain(Extents extents, In<From> src, Out<To> dst, Scaling scaling) {
  const double scale = scale_of_cast(scaling);
  for_each_element(
      extents,
      [=](const From& element, To& to) { to = scaled<From, To>(element, scale, scaling.is_exact); },
      src, dst);
}

/// Calls op(row and column in the tile, element of each operand ...) for the elements of a tile
/// that this thread processes. The tile begins at row `down` and column `right` of the operands.
/// Elements are processed in packs (see pack_of) if all of them exist and extents.packs is not 0.
template <class Op, class... O>
__device__ void for_each_in_tile(const Extents& extents, std::uint64_t down, std::uint64_t right,
                                 const Op& op, const O&... operands) {
  constexpr unsigned pack = pack_of<O...>();
  // A thread loads two packs of a row, half a row apart, unless that leaves threads without work.
  // A warp then writes whole sectors of memory, and a column to different banks of shared memory.
  constexpr unsigned count = std::min(2U, tile * tile / block_threads / pack);
  constexpr unsigned across = tile / (pack * count), apart = tile / count;
  const std::uint64_t column = right + threadIdx.x % across * pack;
  const bool is_whole = extents.packs != 0 && column + (tile - apart) + pack <= extents.columns;
  const Places in_tile{0, 0, 0 - right};  // counts columns from the tile's first one
  for (unsigned r = threadIdx.x / across; r < tile && down + r < extents.rows;
       r += block_threads / across) {
    const auto op_of_row = [&](std::uint64_t c, auto&... elements) { op(r, c, elements...); };
    if (is_whole) {
      visit(op_of_row, column, apart, Held<pack, count, Places>{in_tile},
            Held<pack, count, O>{operands.row(down + r)}...);
      continue;
    }
#pragma unroll 1
    for (unsigned i = 0; i < pack * count; ++i) {
      const std::uint64_t at = column + i / pack * apart + i % pack;
      if (at >= extents.columns) continue;
      visit(op_of_row, at, 0, Held<1, 1, Places>{in_tile},
            Held<1, 1, O>{operands.row(down + r)}...);
    }
  }
}

/// Casts and transposes tiles through shared memory, so that all matrices are accessed along their
/// rows. src and dst are accessed in packs if extents.packs is not 0, and transposed if
/// transposed_extents.packs is not 0. `dst` may be absent (null).
template <class From, class To>
__global__ void cast_transpose(Extents extents, Extents transposed_extents, In<From> src,
                               OptionalOut<To> dst, Out<To> transposed, Scaling scaling) {
  // The gap pads each row by one bank of shared memory (4 bytes; 8 for f64), so that the elements
  // of a column lie in different banks.
  constexpr unsigned gap = sizeof(To) < sizeof(unsigned) ? sizeof(unsigned) / sizeof(To) : 1;
  __shared__ To values[tile][tile + gap];
  const double scale = scale_of_cast(scaling);
  const std::uint64_t right = std::uint64_t{blockIdx.x} * tile;
  for (std::uint64_t down = std::uint64_t{blockIdx.y} * tile; down < extents.rows;
       down += std::uint64_t{gridDim.y} * tile) {
    for_each_in_tile(
        extents, down, right,
        [&](unsigned row, std::uint64_t column, const From& element, To& to) {
          to = scaled<From, To>(element, scale, scaling.is_exact);
          values[column][row] = to;
        },
        src, dst);
    __syncthreads();
    for_each_in_tile(
        transposed_extents, right, down,
        [&](unsigned row, std::uint64_t column, To& to) { to = values[row][column]; }, transposed);
    __syncthreads();
  }
}

using Cast = program::Cast;

template <class From>
cudaError_t start_to_find(const Arguments<Cast>& call, cudaStream_t stream) {
  const cudaError_t cleared = cudaMemsetAsync(call.largest, 0, sizeof *call.largest, stream);
  if (cleared != cudaSuccess) return cleared;
  start_elements(find_largest<From>, {call.op.rows, call.op.columns}, stream,
                 in<From>(call[&Cast::src]), call.largest);
  return cudaGetLastError();
}

template <class From, class To>
void start_as(const Arguments<Cast>& call, cudaStream_t stream) {
  const std::uint64_t rows = call.op.rows, columns = call.op.columns;
  const In<From> from = in<From>(call[&Cast::src]);
  const Out<To> dst = out<To>(call[&Cast::dst]), transposed = out<To>(call[&Cast::transposed]);
  int exponent = 0;
  const bool is_power = std::abs(std::frexp(call.op.scale, &exponent)) == 0.5;
  const Scaling scaling{.kind = call.op.scaling,
                        .is_exact = call.op.scaling == program::CastScale::amax || is_power,
                        .given = call.op.scale,
                        .target = call.op.target,
                        .largest = call.largest,
                        .descale = reinterpret_cast<float*>(call[&Cast::descale].data)};
  if (!transposed.exists()) {
    start_elements(cast_plain<From, To>, {rows, columns}, stream, from, dst, scaling);
    return;
  }
  constexpr std::uint64_t most_down = 65535;  // CUDA's limit for gridDim.y
  const std::uint64_t right = (columns + tile - 1) / tile, down = (rows + tile - 1) / tile;
  const dim3 grid{static_cast<unsigned>(right), static_cast<unsigned>(std::min(down, most_down))};
  const OptionalOut<To> plain{dst.data, dst.exists() ? dst.row_stride : 0};
  const Extents extents = packed({rows, columns}, from, plain);
  start_kernel(cast_transpose<From, To>, grid, block_threads, stream, extents,
               packed({columns, rows}, transposed), from, plain, transposed, scaling);
}

}  // namespace

cudaError_t start(const Arguments<Cast>& call, cudaStream_t stream) {
  if (std::uint64_t{call.op.rows} * call.op.columns == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  cudaError_t found = cudaSuccess;
  const bool has_plain = call[&Cast::dst].data != nullptr;
  const program::DType to_type = call[has_plain ? &Cast::dst : &Cast::transposed].type;
  const bool has_types = with_float(call[&Cast::src].type, [&]<class From>(Type<From>) {
    if (call.op.scaling == program::CastScale::amax) found = start_to_find<From>(call, stream);
    if (found != cudaSuccess) return true;
    return with_float_or_fp8(to_type, [&]<class To>(Type<To>) {
      start_as<From, To>(call, stream);
      return true;
    });
  });
  return found != cudaSuccess ? found : outcome(has_types);
}

}  // namespace isoscale::executor::cuda
