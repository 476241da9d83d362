// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>

namespace isoscale::analysis {

/// Calls work(item) for the items 0 to items - 1, on as many threads as there are usable cores; in
/// no particular order. `work` may be called at once for different items. When calls throw, what
/// the one of the lowest item threw is thrown here, after all have ended.
void side_by_side(std::size_t items, const std::function<void(std::size_t)>& work);

}  // namespace isoscale::analysis
