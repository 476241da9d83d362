// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The kernels that pick elements and rows, by plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "executor/cuda/kernels/list_kernels.hpp"
#include "tests/cuda/elements.hpp"
#include "tests/cuda/standin.hpp"

namespace isoscale::executor::cuda {
namespace {

using standin::require_reachable;

template <class Value>
bool is_greater(Value a, Value b) {
  if (std::isnan(b)) return false;
  return std::isnan(a) || std::abs(a) > std::abs(b);
}

/// The first of the greatest elements that are left, again and again.
template <class Element>
void select(const SelectCall& call) {
  using Value = typename Element::Value;
  std::uint64_t entry = 0;
  for (std::uint64_t begin = 0; begin < call.count; begin += call.block, entry += call.keep) {
    const std::uint64_t size = std::min<std::uint64_t>(call.block, call.count - begin);
    std::vector<bool> taken(size);
    const std::uint64_t keep = std::min<std::uint64_t>(call.keep, size);
    for (std::uint64_t k = 0; k < keep; ++k) {
      std::uint64_t best = size;
      for (std::uint64_t i = 0; i < size; ++i) {
        if (taken[i]) continue;
        if (best == size || is_greater<Value>(Element::load(call.src, begin + i),
                                              Element::load(call.src, begin + best))) {
          best = i;
        }
      }
      taken[best] = true;
    }
    std::uint64_t to = entry;
    for (std::uint64_t i = 0; i < size; ++i) {
      if (!taken[i]) continue;
      Element::store(call.values, to, Element::load(call.src, begin + i));
      Element::store(call.src, begin + i, Value{0});
      call.places[to++] = static_cast<std::int32_t>(begin + i);
    }
    for (; to < entry + call.keep; ++to) {
      Element::store(call.values, to, Value{0});
      call.places[to] = -1;
    }
  }
}

template <class Element>
void spread(const SpreadCall& call) {
  const std::uint64_t entries = (call.count + call.block - 1) / call.block * call.keep;
  std::vector<typename Element::Value> sums(call.count);
  for (std::uint64_t i = 0; i < entries * call.parts; ++i) {
    if (call.places[i] < 0) continue;
    sums[static_cast<std::uint64_t>(call.places[i])] += Element::load(call.values, i);
  }
  for (std::uint64_t i = 0; i < call.count; ++i) Element::store(call.dst, i, sums[i]);
}

template <class Element>
void rows(const RowsCall& call) {
  using Value = typename Element::Value;
  for (std::uint64_t row = 0; row < call.rows; ++row) {
    for (std::uint64_t c = 0; c < call.columns; ++c) {
      Value sum = 0;
      for (std::uint64_t i = 0; i < call.each; ++i) {
        const std::uint32_t from = call.from[row * call.each + i];
        if (from != program::Rows::no_row) sum += Element::load(call.src, from * call.src_row + c);
      }
      Element::store(call.dst, row * call.dst_row + c, sum * static_cast<Value>(call.scale));
    }
  }
}

void run(const SelectCall& call) {
  const std::uint64_t size = program::element_size(call.type);
  const std::uint64_t entries = (call.count + call.block - 1) / call.block * call.keep;
  require_reachable(call.src, call.count * size);
  require_reachable(call.values, entries * size);
  require_reachable(call.places, entries * sizeof *call.places);
  standin::with_floating(call.type, [&](auto element) {
    select<decltype(element)>(call);
    return true;
  });
}

void run(const SpreadCall& call) {
  const std::uint64_t size = program::element_size(call.type);
  const std::uint64_t entries = (call.count + call.block - 1) / call.block * call.keep * call.parts;
  require_reachable(call.dst, call.count * size);
  require_reachable(call.values, entries * size);
  require_reachable(call.places, entries * sizeof *call.places);
  standin::with_floating(call.type, [&](auto element) {
    spread<decltype(element)>(call);
    return true;
  });
}

void run(const RowsCall& call) {
  const std::uint64_t size = program::element_size(call.type);
  require_reachable(call.from, call.rows * call.each * sizeof *call.from);
  require_reachable(call.dst, ((call.rows - 1) * call.dst_row + call.columns) * size);
  for (std::uint64_t i = 0; i < call.rows * call.each; ++i) {
    if (call.from[i] == program::Rows::no_row) continue;
    const auto* const src = static_cast<const std::byte*>(call.src);
    require_reachable(src + call.from[i] * call.src_row * size, call.columns * size);
  }
  standin::with_floating(call.type, [&](auto element) {
    rows<decltype(element)>(call);
    return true;
  });
}

template <class KernelCall>
cudaError_t start_any(const KernelCall& call, std::uint64_t elements, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  standin::submit(stream, [call] { run(call); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

bool is_wide_enough(program::DType type) {
  return !standin::is_fp8(type) && standin::with_floating(type, [](auto) { return true; });
}

}  // namespace

bool has_kernel(const SelectCall& call) {
  return call.block <= most_per_list_block && is_wide_enough(call.type);
}
bool has_kernel(const SpreadCall& call) {
  return call.block <= most_per_list_block && is_wide_enough(call.type);
}
bool has_kernel(const RowsCall& call) { return is_wide_enough(call.type); }

cudaError_t start(const SelectCall& call, cudaStream_t stream) {
  return start_any(call, call.count, stream);
}
cudaError_t start(const SpreadCall& call, cudaStream_t stream) {
  return start_any(call, call.count, stream);
}
cudaError_t start(const RowsCall& call, cudaStream_t stream) {
  return start_any(call, call.rows * call.columns, stream);
}

}  // namespace isoscale::executor::cuda
