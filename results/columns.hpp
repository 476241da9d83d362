// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/error.hpp"

/// What columns that came out of a file must fulfil before anything is indexed by them.
namespace isoscale::results {

inline void require(bool holds, const char* what) {  // NOLINT: a condition is what it takes
  if (!holds) throw base::Error(what);
}

inline void require_lengths(std::initializer_list<std::size_t> lengths, const char* what) {
  for (const std::size_t length : lengths) require(length == *lengths.begin(), what);
}

/// Offsets of parts: from 0 to `total`, never falling.
inline void require_offsets(const std::vector<std::uint64_t>& offsets, std::size_t total,
                            const char* what) {
  require(!offsets.empty() && offsets.front() == 0 && offsets.back() == total &&
              std::is_sorted(offsets.begin(), offsets.end()),
          what);
}

/// What a column of numbers says that may hold NaN, for what is not known.
inline std::optional<double> known(double value) {
  return std::isnan(value) ? std::nullopt : std::optional{value};
}

}  // namespace isoscale::results
