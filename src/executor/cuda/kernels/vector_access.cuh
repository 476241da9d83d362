// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/kernels.hpp"

/// Reads and writes the elements of operands at the speed of memory: in packs of up to 16 bytes if
/// all operands are aligned to 16 bytes, with several packs in flight at a time, and without a
/// division per element. All operands of a kernel have the same rows and columns. The thread that
/// reads an element also writes it, so that a result may overwrite an operand.
namespace isoscale::executor::cuda {

inline constexpr unsigned word_bytes = 16;
inline constexpr unsigned bytes_in_flight = 64;     ///< loaded by a thread before the first store
inline constexpr unsigned most_elements_held = 32;  ///< per operand; more would spill registers

/// A matrix, or a batch of matrices at equal distances, as an operand of a kernel. Strides are in
/// elements.
template <class T, bool reads_elements, bool writes_elements, bool may_miss = false>
struct Operand {
  using Element = std::remove_const_t<T>;
  static constexpr bool reads = reads_elements, writes = writes_elements;
  static constexpr bool can_miss = may_miss;  ///< data may be null; then nothing is written

  T* data = nullptr;
  std::uint64_t row_stride = 0, batch_stride = 0;

  [[nodiscard]] __host__ __device__ bool exists() const { return data != nullptr; }
  /// Returns one row of one matrix as a separate operand.
  [[nodiscard]] __device__ Operand row(std::uint64_t row, std::uint64_t matrix = 0) const {
    if (can_miss && !exists()) return {};
    return {data + matrix * batch_stride + row * row_stride};
  }
  /// Returns the same elements for reading only.
  [[nodiscard]] __device__ Operand<const T, true, false> input() const {
    return {data, row_stride, batch_stride};
  }
};
template <class T>
using In = Operand<const T, true, false>;
template <class T>
using Out = Operand<T, false, true>;
template <class T>
using OptionalOut = Operand<T, false, true, true>;
template <class T>
using InOut = Operand<T, true, true>;

template <class T>
In<T> in(const MatrixAt& matrix) {
  return {reinterpret_cast<const T*>(matrix.data), matrix.row_stride, matrix.batch_stride};
}
template <class T>
Out<T> out(const MatrixAt& matrix) {
  return {reinterpret_cast<T*>(matrix.data), matrix.row_stride, matrix.batch_stride};
}

/// An operand whose elements are their own indices in a batch of matrices, in row-major order.
struct Places {
  std::uint64_t rows = 0, columns = 0, first = 0;
  [[nodiscard]] __device__ Places row(std::uint64_t row, std::uint64_t matrix) const {
    return {0, 0, (matrix * rows + row) * columns};
  }
};

template <class O>
inline constexpr bool is_operand = false;
template <class T, bool reads, bool writes, bool can_miss>
inline constexpr bool is_operand<Operand<T, reads, writes, can_miss>> = true;

/// Returns the number of elements in a pack, the unit in which a thread processes elements: as many
/// as fit into a word of the operand with the widest elements. One instruction then moves a pack of
/// any operand, and the packs of a warp are adjacent: each sector of memory is moved once.
template <class... O>
constexpr unsigned pack_of() {
  unsigned widest = 1;
  const auto look = [&]<class P>(std::type_identity<P>) {
    if constexpr (is_operand<P>) widest = std::max<unsigned>(widest, sizeof(*P::data));
  };
  (look(std::type_identity<O>{}), ...);
  return word_bytes / widest;
}

/// Returns the number of packs that a thread loads before it uses the first: as many as
/// bytes_in_flight and most_elements_held allow, and 1 if no operand is read.
template <unsigned pack, class... O>
constexpr unsigned packs_in_flight() {
  unsigned bytes = 0;
  const auto look = [&]<class P>(std::type_identity<P>) {
    if constexpr (is_operand<P>) bytes += P::reads ? pack * sizeof(*P::data) : 0;
  };
  (look(std::type_identity<O>{}), ...);
  if (bytes == 0) return 1;
  return std::max(1U, std::min(bytes_in_flight / bytes, most_elements_held / pack));
}

/// An unsigned integer type, or a vector of integers, of 1, 2, 4, 8 or 16 bytes.
template <std::size_t bytes>
using Bits = std::tuple_element_t<
    std::bit_width(bytes) - 1,
    std::tuple<unsigned char, unsigned short, unsigned int, uint2, uint4>>;  // NOLINT: CUDA's types

/// `count` packs (of `pack` adjacent elements) of an operand's row, held in a thread's registers.
template <unsigned pack, unsigned count, class O>
struct Held {
  O row;
  using Word = Bits<pack * sizeof(*O::data)>;
  struct alignas(Word) Pack {
    typename O::Element at[pack];
  };
  Pack packs[count];

  __device__ explicit Held(const O& of) : row(of) {}
  __device__ typename O::Element& element(unsigned p, unsigned i) { return packs[p].at[i]; }
  __device__ void load(std::uint64_t at, std::uint64_t step) {
    if constexpr (O::reads) {
#pragma unroll
      for (unsigned p = 0; p < count; ++p) {
        reinterpret_cast<Word&>(packs[p]) =
            *reinterpret_cast<const Word*>(row.data + at + p * step);
      }
    }
  }
  __device__ void store(std::uint64_t at, std::uint64_t step) {
    if constexpr (O::writes) {
      if (O::can_miss && !row.exists()) return;
#pragma unroll
      for (unsigned p = 0; p < count; ++p) {  // __stwb makes a single store of a word
        __stwb(reinterpret_cast<Word*>(row.data + at + p * step),
               reinterpret_cast<const Word&>(packs[p]));
      }
    }
  }
};
template <unsigned pack, unsigned count>
struct Held<pack, count, Places> {
  Places row;
  std::uint64_t at = 0, step = 0;

  __device__ explicit Held(const Places& of) : row(of) {}
  __device__ std::uint64_t element(unsigned p, unsigned i) const {
    return row.first + at + p * step + i;
  }
  __device__ void load(std::uint64_t first, std::uint64_t distance) {
    at = first;
    step = distance;
  }
  __device__ void store(std::uint64_t /*at*/, std::uint64_t /*step*/) const {}
};

/// Loads `count` packs (groups of `pack` adjacent elements) of each operand's row, calls op(one
/// element of each operand ...) for each element, and stores the packs. The first pack begins at
/// column `at`, each next one `step` elements later.
template <unsigned pack, unsigned count, class Op, class... O>
__device__ void visit(const Op& op, std::uint64_t at, std::uint64_t step,
                      Held<pack, count, O>... held) {
  (held.load(at, step), ...);
#pragma unroll
  for (unsigned p = 0; p < count; ++p) {
#pragma unroll
    for (unsigned i = 0; i < pack; ++i) op(held.element(p, i)...);
  }
  (held.store(at, step), ...);
}

/// Calls op(element of each row ...) for the columns of a row that one thread processes: its share
/// of the row's `packs` whole packs, then its share of the remaining elements. The row is shared by
/// `step` threads, of which this one has the number `first`.
template <class Op, class... O>
__device__ void for_each_in_row(std::uint64_t columns, std::uint64_t packs, std::uint64_t first,
                                std::uint64_t step, const Op& op, const O&... rows) {
  constexpr unsigned pack = pack_of<O...>(), count = packs_in_flight<pack, O...>();
  std::uint64_t p = first;
  if constexpr (count > 1) {
    for (; p + (count - 1) * step < packs; p += count * step) {
      visit(op, p * pack, step * pack, Held<pack, count, O>{rows}...);
    }
  }
  for (; p < packs; p += step) visit(op, p * pack, 0, Held<pack, 1, O>{rows}...);
  for (std::uint64_t e = packs * pack + first; e < columns; e += step) {
    visit(op, e, 0, Held<1, 1, O>{rows}...);
  }
}

/// The extents of the operands of a kernel. start_elements() treats the rows of a matrix as one
/// row if no operand has gaps between its rows.
struct Extents {
  std::uint64_t rows = 0, columns = 0, batch = 1;
  std::uint64_t packs = 0;  ///< whole packs of a row; 0 if an operand is not aligned
};

/// Calls op(element of each operand ...) for the elements that this thread processes.
template <class Op, class... O>
__device__ void for_each_element(const Extents& extents, const Op& op, const O&... operands) {
  const std::uint64_t step = std::uint64_t{gridDim.y} * blockDim.y;
  for (std::uint64_t matrix = blockIdx.z; matrix < extents.batch; matrix += gridDim.z) {
    for (std::uint64_t row = std::uint64_t{blockIdx.y} * blockDim.y + threadIdx.y;
         row < extents.rows; row += step) {
      for_each_in_row(extents.columns, extents.packs, first_element(), element_step(), op,
                      operands.row(row, matrix)...);
    }
  }
}

/// True if holds(operand) is true for each operand among the arguments.
template <class Predicate, class... Arguments>
bool all_operands(const Predicate& holds, const Arguments&... arguments) {
  const auto ask = [&](const auto& argument) {
    if constexpr (is_operand<std::remove_cvref_t<decltype(argument)>>) return holds(argument);
    return true;
  };
  return (ask(arguments) && ...);
}

/// Returns the extents with `packs` set: 0 unless all rows of all operands begin at multiples of a
/// word.
template <class... Arguments>
Extents packed(Extents extents, const Arguments&... arguments) {
  const bool aligned = all_operands(
      [&](const auto& operand) {
        const std::uint64_t strides =
            operand.row_stride | (extents.batch > 1 ? operand.batch_stride : 0);
        const auto begin = reinterpret_cast<std::uintptr_t>(operand.data);
        return (begin | strides * sizeof *operand.data) % word_bytes == 0;
      },
      arguments...);
  extents.packs = aligned ? extents.columns / pack_of<Arguments...>() : 0;
  return extents;
}

/// Returns the argument; if it is an operand, its row stride is set to 0, for use as a single row.
template <class Argument>
Argument one_row(Argument argument) {
  if constexpr (is_operand<Argument>) argument.row_stride = 0;
  return argument;
}

/// Starts a kernel that calls for_each_element; the operands are among its arguments.
template <class... Parameters, class... Arguments>
void start_elements(void (*kernel)(Extents, Parameters...), Extents extents, cudaStream_t stream,
                    const Arguments&... arguments) {
  const auto is_dense = [&](const auto& of) { return of.row_stride == extents.columns; };
  if (extents.rows > 1 && all_operands(is_dense, arguments...)) {
    extents.columns *= std::exchange(extents.rows, 1);
    const auto has_no_gap = [&](const auto& of) { return of.batch_stride == extents.columns; };
    if (all_operands(has_no_gap, arguments...)) extents.columns *= std::exchange(extents.batch, 1);
  }
  extents =
      extents.rows == 1 ? packed(extents, one_row(arguments)...) : packed(extents, arguments...);
  constexpr unsigned pack = pack_of<Arguments...>();
  const std::uint64_t in_flight = extents.packs == 0 ? 1 : packs_in_flight<pack, Arguments...>();
  const std::uint64_t of_row = std::max(extents.packs, extents.columns - extents.packs * pack);
  // If rows are short, a block processes several side by side.
  const std::uint64_t across = extents.rows == 1
                                   ? block_threads
                                   : std::min<std::uint64_t>(block_threads, std::bit_ceil(of_row));
  const std::uint64_t down = block_threads / across;
  const auto blocks = [](std::uint64_t work, std::uint64_t of_block, std::uint64_t most) {
    return static_cast<unsigned>(
        std::clamp<std::uint64_t>((work + of_block - 1) / of_block, 1, most));
  };
  dim3 grid{blocks(of_row, across * in_flight, most_blocks)};
  grid.y = blocks(extents.rows, down, most_blocks / grid.x);
  grid.z = blocks(extents.batch, 1, most_blocks / (grid.x * grid.y));
  start_kernel(kernel, grid, dim3{static_cast<unsigned>(across), static_cast<unsigned>(down)},
               stream, extents, arguments...);
}

// Most of the following functions are common parts of kernels in which each block works on whole
// rows. Each thread reads and writes only its own columns, so that a result may overwrite an
// operand.

/// Calls launch(extents, Type<T>{}) for an op on matrices of floating types, which all have the
/// same extents; does nothing if these are empty.
template <class Op, class Launch>
cudaError_t start_typed(const Arguments<Op>& call, const Launch& launch) {
  Extents extents{call.op.rows, call.op.columns};
  if constexpr (requires { call.op.batch; }) extents.batch = call.op.batch;
  if (extents.rows * extents.columns * extents.batch == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    launch(extents, type);
    return true;
  }));
}

/// Starts a kernel in which each block works on whole rows: on one, or on several if there are more
/// than most_blocks. A block has one warp for short rows, up to block_threads threads for long
/// ones.
template <class... Parameters, class... Arguments>
void start_rows(void (*kernel)(Extents, Parameters...), Extents extents, cudaStream_t stream,
                const Arguments&... arguments) {
  extents = packed(extents, arguments...);
  constexpr unsigned pack = pack_of<Arguments...>();
  const std::uint64_t of_row = std::max(extents.packs, extents.columns - extents.packs * pack);
  const std::uint64_t warps = (of_row + warp_threads - 1) / warp_threads;
  const auto threads = static_cast<unsigned>(
      warp_threads * std::min<std::uint64_t>(warps, block_threads / warp_threads));
  dim3 grid{static_cast<unsigned>(std::min<std::uint64_t>(extents.rows, most_blocks))};
  grid.y = static_cast<unsigned>(std::min<std::uint64_t>(extents.batch, most_blocks / grid.x));
  start_kernel(kernel, grid, threads, stream, extents, arguments...);
}

/// Calls visit(row, matrix) for each row that this block computes.
template <class Visit>
__device__ void for_each_row(const Extents& extents, const Visit& visit) {
  for (std::uint64_t matrix = blockIdx.y; matrix < extents.batch; matrix += gridDim.y) {
    for (std::uint64_t row = blockIdx.x; row < extents.rows; row += gridDim.x) visit(row, matrix);
  }
}

/// Returns, in every thread of the block, the reduction by `join` of the values of all its threads:
/// first within warps, then over the warps, always in the same order.
template <class Value, class Join>
__device__ Value over_block(Value mine, const Join& join) {
  __shared__ Value of_warp[block_threads / warp_threads];
  mine = over_warp(mine, join);
  __syncthreads();  // all threads have read the previous call's result
  if (lane() == 0) of_warp[threadIdx.x / warp_threads] = mine;
  __syncthreads();
  Value all = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / warp_threads; ++warp) all = join(all, of_warp[warp]);
  return all;
}

/// Calls op(element of each row ...) for each column that this thread computes.
template <class Op, class... O>
__device__ void for_each_column(const Extents& extents, const Op& op, const O&... rows) {
  for_each_in_row(extents.columns, extents.packs, threadIdx.x, blockDim.x, op, rows...);
}

}  // namespace isoscale::executor::cuda
