// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/workers.hpp"
#include "units/quantity.hpp"

/// Work that may go wrong in ways that no exception tells of.
namespace isoscale::base {

/// What a copy of this process may use up.
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
