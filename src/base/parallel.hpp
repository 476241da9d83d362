// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>

namespace isoscale::base {

/// Calls work(item) for the items 0 to items - 1 in no particular order, on as many threads as
/// there are usable cores. `work` may run for different items at the same time. If calls throw, the
/// exception of the lowest item is rethrown here after all have ended.
void parallel_for(std::size_t items, const std::function<void(std::size_t)>& work);

/// Calls work(item) for the items 0, 1, ... on several threads. It stops when begins(item, ended)
/// returns false or a call of `work` throws; the exception of the lowest item is then rethrown.
/// begins(item, ended) is called once the items 0 to item - `ahead` have ended. `ended` is the
/// number of these items, even if more have ended, so that the number of threads does not decide
/// which items begin. `begins` may read the results of the items below `ended`, and must not throw.
/// Returns the number of items begun.
std::size_t parallel_in_order(
    std::size_t items, std::size_t ahead,
    const std::function<bool(std::size_t item, std::size_t ended)>& begins,
    const std::function<void(std::size_t)>& work);

}  // namespace isoscale::base
