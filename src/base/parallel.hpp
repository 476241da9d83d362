// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>

namespace isoscale::base {

/// Calls work(item) for the items 0 to items - 1, on as many threads as there are usable cores; in
/// no particular order. `work` may be called at once for different items. When calls throw, what
/// the one of the lowest item threw is thrown here, after all have ended.
void parallel_for(std::size_t items, const std::function<void(std::size_t)>& work);

/// The same as far as it is worth while: items are begun in their order, each once `begins(item,
/// ended)` has said so, which may look at what came of the items 0 to ended - 1 and must not throw.
/// The first that it denies ends all. When an item is asked for, all but the `ahead` - 1 before it
/// have ended, and only those count: what is begun does not depend on the number of threads.
/// Returns how many were.
std::size_t parallel_in_order(
    std::size_t items, std::size_t ahead,
    const std::function<bool(std::size_t item, std::size_t ended)>& begins,
    const std::function<void(std::size_t)>& work);

}  // namespace isoscale::base
