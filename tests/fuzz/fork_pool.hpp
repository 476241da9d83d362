// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/forked_work.hpp"

/// Shares a list of inputs among forked copies of the test, since any of them may end the process.
namespace isoscale::fuzz {

/// Returns `answer(item)` for the items 0 to items - 1, computed by at most `processes` forked
/// copies of this process, which take the items round-robin. `answer` must not throw; its changes
/// to memory are lost, and no copy runs this program's exit handlers. If a copy ends early, the
/// item that it worked on has no text, and other copies take over its remaining items. Throws
/// base::Error when the system gives no process.
[[nodiscard]] std::vector<base::Answer> answer_apart(
    std::size_t items, std::size_t processes,
    const std::function<std::string(std::size_t)>& answer);

}  // namespace isoscale::fuzz
