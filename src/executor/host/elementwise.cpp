// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cstring>

#include "executor/host/calls.hpp"
#include "program/fill.hpp"

namespace isoscale::executor::host {
namespace {

template <class T>
void add_row(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ dst,
             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = a[i] + b[i];
}

template <class T>
void add_row_in_place(const T* __restrict__ addend, T* __restrict__ dst, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dst[i] += addend[i];
}

template <class T>
void double_row(T* dst, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dst[i] += dst[i];
}

/// dst may be either operand, or both: told apart so that each loop can be vectorised.
template <class T>
void add(const AddCall& call) {
  const auto* a = reinterpret_cast<const T*>(call.a);
  const auto* b = reinterpret_cast<const T*>(call.b);
  auto* dst = reinterpret_cast<T*>(call.dst);
  for (std::size_t row = 0; row < call.rows; ++row) {
    if (dst == a && dst == b) {
      double_row(dst, call.columns);
    } else if (dst == a) {
      add_row_in_place(b, dst, call.columns);
    } else if (dst == b) {
      add_row_in_place(a, dst, call.columns);
    } else {
      add_row(a, b, dst, call.columns);
    }
    a += call.a_row;
    b += call.b_row;
    dst += call.dst_row;
  }
}

/// `value_of(global index)` into each element of the shard.
template <class T, class ValueOf>
void fill_shard(const FillCall& call, const ValueOf& value_of) {
  auto* dst = reinterpret_cast<T*>(call.dst);
  for (std::uint64_t i = 0; i < call.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < call.extents[1]; ++j) {
      std::uint64_t local = i * call.local[0] + j * call.local[1];
      std::uint64_t index = call.first + i * call.global[0] + j * call.global[1];
      for (std::uint64_t k = 0; k < call.extents[2]; ++k) {
        dst[local] = value_of(index);
        local += call.local[2];
        index += call.global[2];
      }
    }
  }
}

template <class T>
void fill(const FillCall& call) {
  if (call.source == program::FillSource::constant) {
    fill_shard<T>(call,
                  [value = static_cast<T>(call.value)](std::uint64_t /*index*/) { return value; });
    return;
  }
  const auto scale = static_cast<T>(call.scale);
  fill_shard<T>(call, [&](std::uint64_t index) {
    return static_cast<T>(program::fill_integer(call.origin, index)) * scale;
  });
}

}  // namespace

void run(const CopyCall& call) {
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* src = call.src + b * call.src_batch;
    std::byte* dst = call.dst + b * call.dst_batch;
    for (std::size_t row = 0; row < call.rows; ++row) {
      std::memcpy(dst + row * call.dst_row, src + row * call.src_row, call.row_bytes);
    }
  }
}

void run(const AddCall& call) {
  if (call.element == Element::f32) {
    add<float>(call);
  } else {
    add<double>(call);
  }
}

void run(const FillCall& call) {
  if (call.element == Element::f32) {
    fill<float>(call);
  } else {
    fill<double>(call);
  }
}

}  // namespace isoscale::executor::host
