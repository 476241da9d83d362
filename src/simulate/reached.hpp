// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "simulate/machine.hpp"

namespace isoscale::simulate {

/// The share that work of `size` reaches; 1 without a list.
[[nodiscard]] inline double reached_share(std::span<const ReachedShare> list, double size) {
  if (list.empty()) return 1;
  const auto above =
      std::ranges::lower_bound(list, size, {}, [](const ReachedShare& at) { return at.size; });
  if (above == list.begin()) return list.front().share;
  if (above == list.end()) return list.back().share;
  const ReachedShare& below = *std::prev(above);
  const double way = std::log(size / below.size) / std::log(above->size / below.size);
  return below.share + way * (above->share - below.share);
}

}  // namespace isoscale::simulate
