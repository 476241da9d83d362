// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace isoscale::workloads::stack {

/// As ops have it; Geometry's own are checked to fit.
inline std::uint32_t extent(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace isoscale::workloads::stack
