// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace isoscale::runner {

/// Drops entries, ascending by `step`, until `most` are left: each time the one whose neighbours
/// are closest to each other, never the first or the last. What came in one after the other is then
/// spread evenly over all steps so far. Of the last two, the first goes.
template <class Entry>
void thin_to(std::vector<Entry>& entries, std::size_t most) {
  while (entries.size() > most) {
    const auto gap = [&](std::size_t i) { return entries[i + 1].step - entries[i - 1].step; };
    std::size_t crowded = entries.size() > 2 ? 1 : 0;
    for (std::size_t i = 2; i + 1 < entries.size(); ++i) {
      if (gap(i) < gap(crowded)) crowded = i;
    }
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(crowded));
  }
}

}  // namespace isoscale::runner
