// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "executor/host/compute_ops.hpp"
#include "program/low_precision.hpp"

namespace isoscale::executor::host {
namespace {

using program::DType;

template <class T>
const T* typed(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <class T>
T* typed(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

[[noreturn]] void refuse(DType type) {
  throw base::Error(fmt::format("the host cannot compute with {}", program::name(type)));
}

template <class Code>
void decode_row(const program::NarrowFormat& format, const Code* from, double* to,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<double>(decode(format, from[i]));
}

template <class Code>
void encode_row(const program::NarrowFormat& format, const double* from, Code* to,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Code>(encode(format, from[i]));
}

}  // namespace

void widen_row(DType type, const std::byte* from, double* to, std::size_t count) {
  if (const auto format = program::narrow_format(type)) {
    format->bits == 8 ? decode_row(*format, typed<std::uint8_t>(from), to, count)
                      : decode_row(*format, typed<std::uint16_t>(from), to, count);
  } else if (type == DType::f32) {
    std::copy_n(typed<float>(from), count, to);
  } else if (type == DType::f64) {
    std::copy_n(typed<double>(from), count, to);
  } else {
    refuse(type);
  }
}

void narrow_row(const double* from, DType type, std::byte* to, std::size_t count) {
  if (const auto format = program::narrow_format(type)) {
    format->bits == 8 ? encode_row(*format, from, typed<std::uint8_t>(to), count)
                      : encode_row(*format, from, typed<std::uint16_t>(to), count);
  } else if (type == DType::f32) {
    auto* const values = typed<float>(to);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(from[i]);
  } else if (type == DType::f64) {
    std::copy_n(from, count, typed<double>(to));
  } else {
    refuse(type);
  }
}

/// Casts 1024 elements at a time through a small f64 array, since an f64 copy of all elements would
/// be large. Values are scaled in f64, then rounded once.
void run(const Arguments<program::Cast>& call) {
  constexpr std::size_t part = 1024;
  std::array<double, part> values{};
  const MatrixAt src = call[&program::Cast::src], dst = call[&program::Cast::dst];
  const std::size_t from_size = program::element_size(src.type);
  const std::size_t to_size = program::element_size(dst.type);
  for (std::size_t row = 0; row < call.op.rows; ++row) {
    for (std::size_t first = 0; first < call.op.columns; first += part) {
      const std::size_t count = std::min(part, call.op.columns - first);
      const std::size_t from = row * src.row_stride + first, to = row * dst.row_stride + first;
      widen_row(src.type, src.data + from * from_size, values.data(), count);
      for (std::size_t i = 0; i < count; ++i) values[i] *= call.op.scale;
      narrow_row(values.data(), dst.type, dst.data + to * to_size, count);
    }
  }
}

}  // namespace isoscale::executor::host
