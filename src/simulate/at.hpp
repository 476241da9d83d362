// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace isoscale::simulate {

/// Where a rank stands in a vector by rank.
inline std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace isoscale::simulate
