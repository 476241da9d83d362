// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/handle.hpp"

/// What copies of this process and the process itself have in common.
namespace isoscale::base {

struct PipeEndTraits {
  using type = int;
  static constexpr int null() { return -1; }
  static void free(int end) noexcept;
};
using PipeEnd = Handle<PipeEndTraits>;

/// Both ends of a pipe, or none where the system has none to give.
struct Pipe {
  PipeEnd from, into;
};
[[nodiscard]] Pipe make_pipe();

/// False when nobody reads any more.
[[nodiscard]] bool send_all(int pipe, std::string_view bytes);

/// Waits until the process has ended and says how: "signal 11", "exit status 1".
[[nodiscard]] std::string end_of(pid_t process);

}  // namespace isoscale::base
