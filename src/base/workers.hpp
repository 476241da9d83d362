// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Work shared out among processes, for libraries that let only one thread in.
namespace isoscale::base {

/// What became of one item.
struct Answer {
  std::optional<std::string> text{};  ///< absent: the process ended while it was at this item
  std::string ended{};                ///< then how: "signal 11", "exit status 1"
};

/// `answer(item)` for the items 0 to items - 1, worked out by at most `processes` copies of this
/// one, each of which takes every so many-th item. `answer` must not throw; what it changes in
/// memory is lost, and no copy runs this program's exit handlers. A copy that ends early costs the
/// item that it was at; others take over the rest. With one process, or where the system has none
/// to give, it is called here. Throws base::Error when the copies' answers cannot be read.
[[nodiscard]] std::vector<Answer> answer_apart(
    std::size_t items, std::size_t processes,
    const std::function<std::string(std::size_t)>& answer);

/// Cores that this process may run on; at least 1.
[[nodiscard]] std::size_t usable_cores();

}  // namespace isoscale::base
