// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "executor/resolver.hpp"

namespace isoscale::executor::cuda {

/// True if kernels reach the slice at full speed.
[[nodiscard]] inline bool is_on_device(const Resolver& resolver, const program::Slice& slice) {
  const program::Space space = resolver.space(slice);
  return space == program::Space::device || space == program::Space::managed ||
         space == program::Space::symmetric;
}

/// Throws base::Error, naming the operand by its role, unless kernels reach the slice at full
/// speed.
inline void require_on_device(const Resolver& resolver, const program::Slice& slice,
                              std::string_view role) {
  if (is_on_device(resolver, slice)) return;
  throw base::Error(fmt::format("{} lies in {} memory; only copies and fills may use that", role,
                                program::name(resolver.space(slice))));
}

/// Where it lies; throws as require_on_device.
inline std::byte* on_device(const Resolver& resolver, const program::Slice& slice,
                            std::string_view role) {
  require_on_device(resolver, slice, role);
  return resolver.address(slice);
}

inline std::byte* on_device(const Resolver& resolver, const program::Matrix& matrix,
                            std::uint64_t rows, std::uint64_t columns, std::string_view role) {
  require_on_device(resolver, matrix.slice, role);
  return resolver.address(matrix, rows, columns, 1);
}

}  // namespace isoscale::executor::cuda
