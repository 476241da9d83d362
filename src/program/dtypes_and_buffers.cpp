// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/dtypes_and_buffers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::program {
namespace {

constexpr std::array<std::string_view, 6> precisions{"f64", "f32", "tf32", "f16", "bf16", "fp8"};

}  // namespace

std::string_view name(DType type) {
  static constexpr std::array<std::string_view, 10> names{"f64",  "f32", "f16", "bf16", "e4m3",
                                                          "e5m2", "i64", "i32", "i8",   "u8"};
  return names[static_cast<std::size_t>(type)];
}

std::uint64_t element_size(DType type) {
  static constexpr std::array<std::uint64_t, 10> sizes{8, 4, 2, 2, 1, 1, 8, 4, 1, 1};
  return sizes[static_cast<std::size_t>(type)];
}

std::uint64_t buffer_bytes(const Buffer& buffer) {
  return buffer.modelled_bytes > 0 ? buffer.modelled_bytes
                                   : buffer.count * element_size(buffer.dtype);
}

std::string_view name(Space space) {
  static constexpr std::array<std::string_view, space_count> names{"device", "pinned", "pageable",
                                                                   "managed", "symmetric"};
  return names[static_cast<std::size_t>(space)];
}

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, role_count> names{
      "weight", "master", "gradient", "optimizer", "input", "activation", "workspace"};
  return names[static_cast<std::size_t>(role)];
}

std::string_view name(Precision precision) {
  return precisions[static_cast<std::size_t>(precision)];
}

Precision parse_precision(std::string_view text) {
  const auto* const found = std::ranges::find(precisions, text);
  if (found != precisions.end()) return static_cast<Precision>(found - precisions.begin());
  throw base::UsageError{fmt::format("unknown dtype {}{}; the dtypes are {}", base::quoted(text),
                                     base::did_you_mean(text, precisions),
                                     fmt::join(precisions, ", "))};
}

DType stored_type(Precision precision) {
  constexpr std::array stored{DType::f64, DType::f32,  DType::f32,
                              DType::f16, DType::bf16, DType::e4m3};
  return stored[static_cast<std::size_t>(precision)];
}

std::optional<Precision> precision_of(DType type) {
  using enum Precision;
  if (type == DType::e5m2) return fp8;
  for (const Precision precision : {f64, f32, f16, bf16, fp8}) {
    if (stored_type(precision) == type) return precision;
  }
  return std::nullopt;
}

}  // namespace isoscale::program
