// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/buffer.hpp"

namespace isoscale::runner {

/// Raw elements of a floating type as f64. Throws base::Error for a type that is not one.
[[nodiscard]] std::vector<double> to_doubles(std::span<const std::byte> raw, program::DType type);

/// Calls visit(local, global) with the indices of each element of a shard.
template <class Visit>
void for_each_element(const program::Shard& shard, const mesh::Coordinates& at,
                      const Visit& visit) {
  const std::uint64_t first = shard.first(at);
  for (std::uint64_t i = 0; i < shard.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < shard.extents[1]; ++j) {
      for (std::uint64_t k = 0; k < shard.extents[2]; ++k) {
        visit(i * shard.local[0] + j * shard.local[1] + k * shard.local[2],
              first + i * shard.global[0] + j * shard.global[1] + k * shard.global[2]);
      }
    }
  }
}

/// Whether every raw element of a floating type is a finite number. Throws base::Error for a type
/// that is not one.
[[nodiscard]] bool all_finite(std::span<const std::byte> raw, program::DType type);

}  // namespace isoscale::runner
