// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "program/buffer.hpp"
#include "program/low_precision.hpp"

/// Elements in memory, by type. `Value` is what one is computed in: f32 for narrow types.
namespace isoscale::standin {

template <class T>
struct Plain {
  using Value = T;
  using Stored = T;
  static T load(const void* base, std::size_t i) { return static_cast<const T*>(base)[i]; }
  static void store(void* base, std::size_t i, T value) { static_cast<T*>(base)[i] = value; }
};

template <program::DType type>
struct Narrow {
  static constexpr program::NarrowFormat format = *program::narrow_format(type);
  using Value = float;
  using Stored = std::conditional_t<format.bits == 8, std::uint8_t, std::uint16_t>;
  static float load(const void* base, std::size_t i) {
    return program::decode(format, static_cast<const Stored*>(base)[i]);
  }
  template <class From>
  static void store(void* base, std::size_t i, From value) {
    static_cast<Stored*>(base)[i] =
        static_cast<Stored>(program::encode(format, static_cast<double>(value)));
  }
};

/// Rounds once.
template <class Element>
void store_rounded(void* base, std::uint64_t i, double value) {
  if constexpr (std::is_floating_point_v<typename Element::Stored>) {
    Element::store(base, i, static_cast<typename Element::Stored>(value));
  } else {
    Element::store(base, i, value);
  }
}

/// use(Plain<T>{}) or use(Narrow<type>{}) for floating types; false for others.
template <class Use>
bool with_floating(program::DType type, const Use& use) {
  using program::DType;
  switch (type) {
    case DType::f64:
      return use(Plain<double>{});
    case DType::f32:
      return use(Plain<float>{});
    case DType::f16:
      return use(Narrow<DType::f16>{});
    case DType::bf16:
      return use(Narrow<DType::bf16>{});
    case DType::e4m3:
      return use(Narrow<DType::e4m3>{});
    case DType::e5m2:
      return use(Narrow<DType::e5m2>{});
    default:
      return false;
  }
}

/// Like with_floating, and integers.
template <class Use>
bool with_number(program::DType type, const Use& use) {
  using program::DType;
  switch (type) {
    case DType::i64:
      return use(Plain<std::int64_t>{});
    case DType::i32:
      return use(Plain<std::int32_t>{});
    case DType::i8:
      return use(Plain<std::int8_t>{});
    case DType::u8:
      return use(Plain<std::uint8_t>{});
    default:
      return with_floating(type, use);
  }
}

[[nodiscard]] inline bool is_fp8(program::DType type) {
  return type == program::DType::e4m3 || type == program::DType::e5m2;
}

}  // namespace isoscale::standin
