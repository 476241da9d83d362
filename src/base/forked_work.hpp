// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "units/quantity.hpp"

/// Runs work in forked copies of this process: several copies share a list of items, for libraries
/// that admit only one thread; or one copy works under limits, for work that may fail without
/// throwing.
namespace isoscale::base {

/// The outcome of one item.
struct Answer {
  std::optional<std::string> text{};  ///< absent if the process ended while it worked on this item
  std::string ended{};                ///< how it ended in that case: "signal 11", "exit status 1"
};

/// Returns `answer(item)` for the items 0 to items - 1, computed by at most `processes` forked
/// copies of this process, which take the items round-robin. `answer` must not throw; its changes
/// to memory are lost, and no copy runs this program's exit handlers. If a copy ends early, the
/// item that it worked on has no text, and other copies take over its remaining items. With one
/// process, or if the system cannot start any, `answer` is called in this process. Throws
/// base::Error when the copies' answers cannot be read.
[[nodiscard]] std::vector<Answer> answer_apart(
    std::size_t items, std::size_t processes,
    const std::function<std::string(std::size_t)>& answer);

/// Returns the number of cores that this process may run on; at least 1.
[[nodiscard]] std::size_t usable_cores();

/// The most that a forked copy of this process may use.
struct Limits {
  units::Bytes memory;  ///< on top of the address space that this process has in use already
  std::chrono::seconds cpu_time;  ///< at least 1
  std::chrono::seconds wall_time;
  units::Bytes answer{std::uint64_t{1} << 16U};  ///< the copy is ended if its answer is longer
};

/// Returns `answer()`, computed by a forked copy of this process under limits. The copy leaves no
/// core file, and its changes to memory are lost. The text is absent when the copy crashed or
/// exceeded a limit; `ended` then says how: "signal 11", "more than 2 s of CPU time". `answer` must
/// not throw and must not take a lock that another thread may hold. Throws base::Error if the
/// system gives no process; the work is then not done at all.
[[nodiscard]] Answer answer_within(const Limits& limits,
                                   const std::function<std::string()>& answer);

}  // namespace isoscale::base
