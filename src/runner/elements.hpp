// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/buffer.hpp"

namespace isoscale::runner {

/// Raw elements of a floating type as f64. Throws base::Error for a type that is not one.
[[nodiscard]] std::vector<double> to_doubles(std::span<const std::byte> raw, program::DType type);

}  // namespace isoscale::runner
