// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "executor/cuda/kernels/vector_access.cuh"

namespace isoscale::executor::cuda {
namespace {

constexpr unsigned block_warps = block_threads / warp_threads;

/// Returns the bits of a value's magnitude. As integers they sort like the magnitudes, with NaN
/// above all.
__device__ std::uint32_t magnitude(float value) { return __float_as_uint(value) & 0x7fffffffU; }
__device__ std::uint64_t magnitude(double value) {
  return static_cast<std::uint64_t>(__double_as_longlong(value)) & 0x7fffffffffffffffULL;
}
template <class T>
using Key = decltype(magnitude(Compute<T>{}));

/// Returns, in every thread of the block, how many of the `size` keys are at least `least`.
template <class K>
__device__ std::uint32_t count_from(const K* keys, std::uint32_t size, K least,
                                    std::uint32_t* counter) {
  if (threadIdx.x == 0) *counter = 0;
  __syncthreads();
  unsigned mine = 0;
  for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) mine += keys[i] >= least ? 1 : 0;
  mine = over_warp(mine, Sum{});
  if (lane() == 0) atomicAdd(counter, mine);
  __syncthreads();
  const std::uint32_t result = *counter;
  __syncthreads();
  return result;
}

/// Returns the largest threshold for which at least `keep` keys are equal or greater, found bit by
/// bit from the highest; 0 if there are fewer than `keep` keys.
template <class K>
__device__ K threshold(const K* keys, std::uint32_t size, std::uint32_t keep,
                       std::uint32_t* counter) {
  K found = 0;
  for (int bit = static_cast<int>(sizeof(K)) * 8 - 2; bit >= 0; --bit) {
    const K candidate = found | (K{1} << bit);
    if (count_from(keys, size, candidate, counter) >= keep) found = candidate;
  }
  return found;
}

/// Counts of the threads of a block with a true flag: those before this thread, and all of them.
struct Ranked {
  std::uint32_t before, all;
};
__device__ Ranked rank_of(bool flag, std::uint32_t* of_warp) {
  const Lanes flags = __ballot_sync(all_lanes, flag);
  const unsigned warp = threadIdx.x / warp_threads;
  if (lane() == 0) of_warp[warp] = static_cast<std::uint32_t>(__popcll(flags));
  __syncthreads();
  Ranked result{static_cast<std::uint32_t>(__popcll(flags & ((Lanes{1} << lane()) - 1))), 0};
  for (unsigned w = 0; w < block_warps; ++w) {
    if (w < warp) result.before += of_warp[w];
    result.all += of_warp[w];
  }
  __syncthreads();
  return result;
}

/// The memory for a block's list of selected elements: their values, and their indices in src.
template <class T>
struct List {
  T* values;
  std::int32_t* places;
};

/// Writes to the list, in ascending order of index, the elements with keys above the threshold
/// `least` and the first `equals_wanted` elements with keys equal to it, and sets them to 0 in src.
/// The unused entries of the list, which has `keep` entries, get the value 0 and the index -1.
template <class T>
__device__ void write_list(T* src, const Key<T>* keys, std::uint64_t begin, std::uint32_t size,
                           std::uint32_t keep, Key<T> least, std::uint32_t equals_wanted,
                           const List<T>& list, std::uint32_t* of_warp) {
  std::uint32_t taken = 0, equals = 0;
  for (std::uint32_t first = 0; first < size; first += block_threads) {
    const std::uint32_t i = first + threadIdx.x;
    const bool exists = i < size;
    const bool is_equal = exists && keys[i] == least;
    const Ranked equal = rank_of(is_equal, of_warp);
    const bool is_taken =
        exists && (keys[i] > least || (is_equal && equals + equal.before < equals_wanted));
    const Ranked position = rank_of(is_taken, of_warp);
    if (is_taken) {
      const std::uint32_t to = taken + position.before;
      list.values[to] = src[begin + i];
      list.places[to] = static_cast<std::int32_t>(begin + i);
      src[begin + i] = rounded<T>(Compute<T>{0});
    }
    equals += equal.all;
    taken += position.all;
  }
  for (std::uint32_t i = taken + threadIdx.x; i < keep; i += block_threads) {
    list.values[i] = rounded<T>(Compute<T>{0});
    list.places[i] = -1;
  }
}

/// Moves the `keep` elements with the largest magnitudes of each block of src to the block's list.
/// A thread block handles one block of src at a time, whose keys (magnitudes) it keeps in shared
/// memory.
template <class T>
__global__ void select(T* src, T* values, std::int32_t* places, std::uint64_t count,
                       std::uint32_t block, std::uint32_t keep) {
  __shared__ Key<T> keys[most_per_list_block];
  __shared__ std::uint32_t counter, of_warp[block_warps];
  const std::uint64_t blocks = program::block_count(count, block);
  for (std::uint64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const std::uint64_t begin = b * block;
    const auto size = static_cast<std::uint32_t>(count - begin < block ? count - begin : block);
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) {
      keys[i] = magnitude(load(src[begin + i]));
    }
    __syncthreads();
    const Key<T> least = threshold(keys, size, keep, &counter);
    const std::uint32_t greater = count_from(keys, size, static_cast<Key<T>>(least + 1), &counter);
    const std::uint32_t equals_wanted = greater < keep ? keep - greater : 0;
    write_list<T>(src, keys, begin, size, keep, least, equals_wanted,
                  {values + b * keep, places + b * keep}, of_warp);
    __syncthreads();
  }
}

/// Sets dst to the sum of the lists; each thread block computes blocks of dst. The indices in
/// one list differ, so its entries are added in parallel. The lists are added one after the other,
/// so that sums do not depend on the order of threads.
template <class T>
__global__ void spread(const T* values, const std::int32_t* places, T* dst, std::uint64_t count,
                       std::uint32_t block, std::uint32_t keep, std::uint32_t parts) {
  __shared__ Compute<T> sums[most_per_list_block];
  const std::uint64_t blocks = program::block_count(count, block);
  for (std::uint64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const std::uint64_t begin = b * block;
    const auto size = static_cast<std::uint32_t>(count - begin < block ? count - begin : block);
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) sums[i] = 0;
    __syncthreads();
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint64_t first = (part * blocks + b) * keep;
      for (std::uint32_t i = threadIdx.x; i < keep; i += blockDim.x) {
        // An index of -1 marks an unused entry and lies in no block.
        const std::int64_t at = places[first + i] - static_cast<std::int64_t>(begin);
        if (at >= 0 && at < size) sums[at] += load(values[first + i]);
      }
      __syncthreads();
    }
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) {
      dst[begin + i] = rounded<T>(sums[i]);
    }
    __syncthreads();
  }
}

/// Computes `pack` columns of a row of dst, starting at `column`: `scale` times the sum of the
/// `each` rows of src that `from` lists.
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

/// Sums rows of src. Each thread block computes whole rows of dst; neighbouring threads access
/// neighbouring elements.
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

/// Starts the kernel of a Select or Spread: calls launch(grid, Type<T>{}) with the number of thread
/// blocks and the floating-point type of the call. `count` is the number of elements of src of a
/// Select, or of dst of a Spread.
template <class Op, class Launch>
cudaError_t start_lists(const Arguments<Op>& call, std::uint64_t count, const Launch& launch) {
  if (count == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  const std::uint64_t blocks = program::block_count(count, call.op.block);
  return outcome(with_float(call.type, [&](auto type) {
    launch(static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), type);
    return true;
  }));
}

template <class T>
T* as(const OperandAt& at) {
  return reinterpret_cast<T*>(at.data);
}

}  // namespace

cudaError_t start(const Arguments<program::Select>& call, cudaStream_t stream) {
  using Op = program::Select;
  return start_lists(call, call.op.src.count, [&]<class T>(unsigned grid, Type<T>) {
    start_kernel(select<T>, grid, block_threads, stream, as<T>(call[&Op::src]),
                 as<T>(call[&Op::values]), as<std::int32_t>(call[&Op::places]), call.op.src.count,
                 call.op.block, call.op.keep);
  });
}

cudaError_t start(const Arguments<program::Spread>& call, cudaStream_t stream) {
  using Op = program::Spread;
  return start_lists(call, call.op.dst.count, [&]<class T>(unsigned grid, Type<T>) {
    start_kernel(spread<T>, grid, block_threads, stream, as<const T>(call[&Op::values]),
                 as<const std::int32_t>(call[&Op::places]), as<T>(call[&Op::dst]),
                 call.op.dst.count, call.op.block, call.op.keep, call.op.parts);
  });
}

cudaError_t start(const Arguments<program::Rows>& call, cudaStream_t stream) {
  using Op = program::Rows;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    start_rows(sum_rows<T>, extents, stream, in<T>(call[&Op::src]), out<T>(call[&Op::dst]),
               call.from, call.op.each, static_cast<Compute<T>>(call.op.scale));
  });
}

}  // namespace isoscale::executor::cuda
