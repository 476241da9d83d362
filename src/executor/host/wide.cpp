// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/wide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
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

template <class Code, class Wide>
void decode_row(const program::NarrowFormat& format, const Code* from, Wide* to,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Wide>(decode(format, from[i]));
}

template <class Code, class Wide>
void encode_row(const program::NarrowFormat& format, const Wide* from, Code* to,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<Code>(encode(format, static_cast<double>(from[i])));
  }
}

}  // namespace

template <class Wide>
void widen_row(DType type, const std::byte* from, Wide* to, std::size_t count) {
  if (const auto format = program::narrow_format(type)) {
    format->bits == 8 ? decode_row(*format, typed<std::uint8_t>(from), to, count)
                      : decode_row(*format, typed<std::uint16_t>(from), to, count);
  } else if (type == DType::f32) {
    std::copy_n(typed<float>(from), count, to);
  } else if (type == DType::f64) {
    const auto* const values = typed<double>(from);
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Wide>(values[i]);
  } else {
    refuse(type);
  }
}

template <class Wide>
void narrow_row(const Wide* from, DType type, std::byte* to, std::size_t count) {
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

template void widen_row(DType, const std::byte*, float*, std::size_t);
template void widen_row(DType, const std::byte*, double*, std::size_t);
template void narrow_row(const float*, DType, std::byte*, std::size_t);
template void narrow_row(const double*, DType, std::byte*, std::size_t);

}  // namespace isoscale::executor::host
