// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/precision.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::program {
namespace {

constexpr std::array<std::string_view, 6> names{"f64", "f32", "tf32", "f16", "bf16", "fp8"};

}  // namespace

std::string_view name(Precision precision) { return names[static_cast<std::size_t>(precision)]; }

Precision parse_precision(std::string_view text) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<Precision>(i);
  }
  throw base::UsageError{fmt::format("unknown dtype {}{}; the dtypes are {}", base::quoted(text),
                                     base::did_you_mean(text, names), fmt::join(names, ", "))};
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
