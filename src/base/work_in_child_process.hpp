// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/handle.hpp"

/// Runs work in a forked copy of this process under limits, for work that may fail without
/// throwing.
namespace isoscale::base {

/// The outcome of the work.
struct Answer {
  std::optional<std::string> text{};  ///< absent if the forked process failed or exceeded a limit
  std::string ended{};                ///< how it ended if `text` is absent: "signal 11"; else ""
};

/// The two ends of a pipe; both are empty if the system cannot open one.
struct Pipe {
  Descriptor from, into;
};
[[nodiscard]] Pipe make_pipe();
/// Writes all bytes to the descriptor `pipe`; returns false if that fails, as it does when the
/// reading end has been closed.
bool send_all(int pipe, std::string_view bytes);
/// Waits until a child process has ended and returns how it ended: "signal 11", "exit status 1", or
/// "unknown end" if the process cannot be waited for.
[[nodiscard]] std::string end_of(pid_t process);

/// The most that a forked copy of this process may use.
struct Limits {
  /// The bytes of address space that the copy may use on top of what this process has in use
  /// already. This is also the limit for the size of each file that the copy writes.
  std::uint64_t memory;
  std::chrono::seconds cpu_time;  ///< at least 1
  std::chrono::seconds wall_time;
  std::uint64_t answer = 1U << 16U;  ///< bytes; the copy is ended if its answer is longer
};

/// Returns `answer()`, computed by a forked copy of this process under limits. The copy writes no
/// core file, its standard error is discarded (except in builds with the address or thread
/// sanitizer), and its changes to memory are lost. The text is absent when the copy crashed or
/// exceeded a limit; `ended` then says how: "signal 11", "more than 2 s of CPU time". `answer` must
/// not throw and must not take a lock that another thread may hold. Throws base::Error if the
/// system cannot create the process or its pipe; the work is then not done at all.
[[nodiscard]] Answer answer_within(const Limits& limits,
                                   const std::function<std::string()>& answer);

}  // namespace isoscale::base
