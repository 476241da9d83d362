// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <array>
#include <cstring>

#include "executor/host/calls.hpp"
#include "program/low_precision.hpp"

namespace isoscale::executor::host {
namespace {

// Long rows are bound by memory: what is read and written once is all that these loops do. The sum
// of integers is taken in their unsigned type, where it wraps.

template <class T>
void add_row(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ dst,
             std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(a[i] + scale * b[i]);
}

template <class T>
void add_onto_a(const T* __restrict__ b, T* __restrict__ dst, std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(dst[i] + scale * b[i]);
}

template <class T>
void add_onto_b(const T* __restrict__ a, T* __restrict__ dst, std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(a[i] + scale * dst[i]);
}

template <class T>
void add_onto_both(T* dst, std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(dst[i] + scale * dst[i]);
}

/// dst may be either operand, or both: told apart so that each loop can be vectorised.
template <class T>
void add(const AddCall& call) {
  const auto* a = reinterpret_cast<const T*>(call.a);
  const auto* b = reinterpret_cast<const T*>(call.b);
  auto* dst = reinterpret_cast<T*>(call.dst);
  const auto scale = program::constant_as<T>(call.scale);
  for (std::size_t row = 0; row < call.rows; ++row) {
    if (dst == a && dst == b) {
      add_onto_both(dst, call.columns, scale);
    } else if (dst == a) {
      add_onto_a(b, dst, call.columns, scale);
    } else if (dst == b) {
      add_onto_b(a, dst, call.columns, scale);
    } else {
      add_row(a, b, dst, call.columns, scale);
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
    const T value = program::constant_as<T>(call.value);
    return fill_shard<T>(call, [value](std::uint64_t /*index*/) { return value; });
  }
  if constexpr (!std::is_integral_v<T>) {
    if (call.source == program::FillSource::normal) {
      return fill_shard<T>(call, [&](std::uint64_t index) {
        return program::fill_normal<T>(call.grid, index, call.scale);
      });
    }
  }
  fill_shard<T>(call, [&](std::uint64_t index) {
    return program::fill_value<T>(program::fill_integer(call.grid, index), call.scale);
  });
}

/// Rounded once from what f32 holds exactly. There are at most 255 integers: each is encoded once.
template <class Code>
void fill_narrow(const FillCall& call, const program::NarrowFormat& format) {
  const auto code = [&](double value) { return static_cast<Code>(program::encode(format, value)); };
  if (call.source == program::FillSource::constant) {
    return fill_shard<Code>(call,
                            [value = code(call.value)](std::uint64_t /*index*/) { return value; });
  }
  if (call.source == program::FillSource::normal) {
    return fill_shard<Code>(call, [&](std::uint64_t index) {
      return code(static_cast<double>(program::fill_normal<float>(call.grid, index, call.scale)));
    });
  }
  std::array<Code, 255> codes{};
  const int range = call.grid.range;
  for (int i = -range; i <= range; ++i) {
    codes[static_cast<std::size_t>(i + range)] = code(program::fill_value<double>(i, call.scale));
  }
  fill_shard<Code>(call, [&](std::uint64_t index) {
    return codes[static_cast<std::size_t>(program::fill_integer(call.grid, index) + range)];
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
  using program::DType;
  switch (call.type) {
    case DType::f64:
      return add<double>(call);
    case DType::f32:
      return add<float>(call);
    case DType::i64:
      return add<std::uint64_t>(call);
    case DType::i32:
      return add<std::uint32_t>(call);
    case DType::i8:
    case DType::u8:
      return add<std::uint8_t>(call);
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
      return;  // emulated or refused
  }
}

void run(const FillCall& call) {
  using program::DType;
  switch (call.type) {
    case DType::f64:
      return fill<double>(call);
    case DType::f32:
      return fill<float>(call);
    case DType::f16:
    case DType::bf16:
      return fill_narrow<std::uint16_t>(call, *program::narrow_format(call.type));
    case DType::e4m3:
    case DType::e5m2:
      return fill_narrow<std::uint8_t>(call, *program::narrow_format(call.type));
    case DType::i64:
      return fill<std::int64_t>(call);
    case DType::i32:
      return fill<std::int32_t>(call);
    case DType::i8:
      return fill<std::int8_t>(call);
    case DType::u8:
      return fill<std::uint8_t>(call);
  }
}

}  // namespace isoscale::executor::host
