// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace isoscale::comm {

/// No single message of ours is larger, whatever is sent: MPI counts are int, and a receiver that
/// is behind must not have to hold more.
inline constexpr std::size_t block_bytes = std::size_t{64} << 20;

/// `data` cut into consecutive blocks of at most block_bytes; none when it is empty.
template <class T>
[[nodiscard]] std::vector<std::span<T>> blocks(std::span<T> data) {
  constexpr std::size_t most = block_bytes / sizeof(T);
  std::vector<std::span<T>> parts;
  for (std::size_t first = 0; first < data.size(); first += most) {
    parts.push_back(data.subspan(first, std::min(most, data.size() - first)));
  }
  return parts;
}

}  // namespace isoscale::comm
