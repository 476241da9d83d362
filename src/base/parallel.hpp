// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>

namespace isoscale::base {

/// Calls work(item) for the items 0 to items - 1, on one thread for each CPU that this process may
/// run on, or fewer if there are fewer items. `work` may run for different items at the same time.
/// If a call throws, no further item begins, and the exception of the lowest item is rethrown here
/// after all have ended.
void parallel_for(std::size_t items, const std::function<void(std::size_t)>& work);

/// Calls work(item) for the items 0, 1, ... in order on several threads, at most `ahead` items at a
/// time. Before each item it waits until the items 0 to item - `ahead` have ended, and asks
/// begins(item, ended), where `ended` is the number of these items. `ended` stays this number even
/// if more items have ended, so that the number of threads does not decide which items begin.
/// `begins` may read the results of the items below `ended`, and must not throw. No further item
/// begins once `begins` returned false or a call of `work` threw; the exception of the lowest item
/// is rethrown. Returns the number of items begun.
std::size_t parallel_in_order(
    std::size_t items, std::size_t ahead,
    const std::function<bool(std::size_t item, std::size_t ended)>& begins,
    const std::function<void(std::size_t)>& work);

}  // namespace isoscale::base
