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

/// Copies of this process do work: several share it out, for libraries that let only one thread in,
/// or one does it under limits, where it may go wrong in ways that no exception tells of.
namespace isoscale::base {

/// The outcome of one item.
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

/// The most that a copy of this process may use up.
struct Limits {
  units::Bytes memory;            ///< beyond the addresses that this process has in use already
  std::chrono::seconds cpu_time;  ///< at least 1
  std::chrono::seconds wall_time;
  units::Bytes answer{std::uint64_t{1} << 16U};  ///< who says more is out of control
};

/// `answer()` worked out by a copy of this process under limits; it leaves no core file, and what
/// it changes in memory is lost. Absent when the copy crashed or exceeded a limit; `ended` then
/// says so in words: "signal 11", "more than 2 s of CPU time".
/// `answer` must not throw and may take no lock that another thread may hold. Throws base::Error
/// where the system gives no process: then the work is not done here instead.
[[nodiscard]] Answer answer_within(const Limits& limits,
                                   const std::function<std::string()>& answer);

}  // namespace isoscale::base
