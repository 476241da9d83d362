// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "executor/host/list_calls.hpp"
#include "program/op.hpp"

namespace isoscale::executor::host {
namespace {

using program::DType;

/// Calls use(T{}) with the type that elements of `type` are computed in.
template <class Use>
void with_wide(DType type, const Use& use) {
  if (type == DType::f64) return use(double{});
  use(float{});
}

/// Orders as the magnitudes do, with NaN above all.
template <class T>
auto magnitude(T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return std::bit_cast<Bits>(std::abs(value));
}

/// The places of the `keep` greatest of a block, in order of place.
template <class T>
std::vector<std::size_t> greatest(const std::vector<T>& block, std::size_t keep) {
  std::vector<std::size_t> order(block.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (keep < order.size()) {
    const auto before = [&](std::size_t a, std::size_t b) {
      const auto of_a = magnitude(block[a]), of_b = magnitude(block[b]);
      return of_a != of_b ? of_a > of_b : a < b;
    };
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(keep), before);
    order.resize(keep);
    std::ranges::sort(order);
  }
  return order;
}

template <class T>
void select(const SelectCall& call) {
  const std::size_t size = program::element_size(call.type);
  std::byte* values = call.values;
  std::int32_t* places = call.places;
  std::vector<T> block, kept(call.keep);
  for (std::size_t begin = 0; begin < call.count; begin += call.block) {
    block.resize(std::min(call.block, call.count - begin));
    std::byte* const src = call.src + begin * size;
    widen_row(call.type, src, block.data(), block.size());
    const std::vector<std::size_t> taken = greatest(block, call.keep);
    std::ranges::fill(kept, T{0});
    std::fill_n(places, call.keep, -1);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      kept[i] = block[taken[i]];
      places[i] = static_cast<std::int32_t>(begin + taken[i]);
      std::memset(src + taken[i] * size, 0, size);  // the code of 0 in every type
    }
    narrow_row(kept.data(), call.type, values, call.keep);
    values += call.keep * size;
    places += call.keep;
  }
}

template <class T>
void spread(const SpreadCall& call) {
  const std::size_t size = program::element_size(call.type);
  const std::size_t blocks =
      program::block_count(call.count, static_cast<std::uint32_t>(call.block));
  std::vector<T> sum, list(call.keep);
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * call.block;
    sum.assign(std::min(call.block, call.count - begin), T{0});
    for (std::size_t part = 0; part < call.parts; ++part) {
      const std::size_t first = (part * blocks + b) * call.keep;
      widen_row(call.type, call.values + first * size, list.data(), call.keep);
      for (std::size_t i = 0; i < call.keep; ++i) {
        // A place of -1 lies in no block.
        const std::int64_t at = call.places[first + i] - static_cast<std::int64_t>(begin);
        if (at < 0 || at >= static_cast<std::int64_t>(sum.size())) continue;
        sum[static_cast<std::size_t>(at)] += list[i];
      }
    }
    narrow_row(sum.data(), call.type, call.dst + begin * size, sum.size());
  }
}

/// Rows of one that is not scaled are moved as they are.
void move_rows(const RowsCall& call) {
  const std::size_t size = program::element_size(call.type);
  std::byte* dst = call.dst;
  for (const std::uint32_t row : call.from) {
    if (row == program::Rows::no_row) {
      std::memset(dst, 0, call.columns * size);
    } else {
      std::memcpy(dst, call.src + row * call.src_row * size, call.columns * size);
    }
    dst += call.dst_row * size;
  }
}

template <class T>
void add_rows(const RowsCall& call) {
  const std::size_t size = program::element_size(call.type);
  const auto scale = static_cast<T>(call.scale);
  std::vector<T> sum(call.columns), row(call.columns);
  std::byte* dst = call.dst;
  for (std::size_t i = 0; i < call.from.size(); i += call.each, dst += call.dst_row * size) {
    std::ranges::fill(sum, T{0});
    for (std::size_t j = i; j < i + call.each; ++j) {
      if (call.from[j] == program::Rows::no_row) continue;
      widen_row(call.type, call.src + call.from[j] * call.src_row * size, row.data(), call.columns);
      for (std::size_t c = 0; c < call.columns; ++c) sum[c] += row[c];
    }
    for (T& value : sum) value *= scale;
    narrow_row(sum.data(), call.type, dst, call.columns);
  }
}

}  // namespace

void run(const SelectCall& call) {
  with_wide(call.type, [&]<class T>(T /*type*/) { select<T>(call); });
}

void run(const SpreadCall& call) {
  with_wide(call.type, [&]<class T>(T /*type*/) { spread<T>(call); });
}

void run(const RowsCall& call) {
  if (call.each == 1 && call.scale == 1) return move_rows(call);
  with_wide(call.type, [&]<class T>(T /*type*/) { add_rows<T>(call); });
}

}  // namespace isoscale::executor::host
