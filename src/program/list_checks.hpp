// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "program/op.hpp"

namespace isoscale::program {

/// Blocks of `block` elements, the last of which may be short.
[[nodiscard]] constexpr std::uint64_t block_count(std::uint64_t elements, std::uint32_t block) {
  return (elements + block - 1) / block;
}

/// What is wrong with the extents or the indices of a Select, Spread or Rows; nothing for other
/// ops.
[[nodiscard]] std::optional<std::string> list_mistake(const Payload& payload);

}  // namespace isoscale::program
