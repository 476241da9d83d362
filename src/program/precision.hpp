// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "program/buffer.hpp"

namespace isoscale::program {

/// The type that a run computes in; tf32 is stored as f32.
enum class Precision : std::uint8_t { f64, f32, tf32, f16, bf16, fp8 };
[[nodiscard]] std::string_view name(Precision precision);
/// Returns the precision of this name. Throws base::UsageError with all names if there is none.
[[nodiscard]] Precision parse_precision(std::string_view text);
/// Returns the type in which data of a precision is stored; e4m3 for fp8.
[[nodiscard]] DType stored_type(Precision precision);
/// Returns the precision that an executor must support to handle `type`; absent for integers, which
/// all executors handle.
[[nodiscard]] std::optional<Precision> precision_of(DType type);

}  // namespace isoscale::program
