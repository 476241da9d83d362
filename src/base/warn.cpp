// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/warn.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/text.hpp"
#include "base/work_in_child_process.hpp"

namespace isoscale::base {
namespace {

/// Escapes control characters except line breaks: names from foreign files may contain characters
/// that move the cursor.
std::string shown(std::string_view line) {
  std::string text;
  for (const std::string_view part : split(line, '\n')) {
    text += printable(part, part.size()) + '\n';
  }
  return text;
}

}  // namespace

void warn(std::string_view line) {
  send_all(STDERR_FILENO, shown(line));  // if this fails, the failure cannot be reported
}

void warn_within(std::string_view line, std::chrono::milliseconds limit) {
  const std::string text = shown(line);
  const auto end = std::chrono::steady_clock::now() + limit;
  for (std::string_view left = text; !left.empty();) {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd standard_error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    const int ready = poll(&standard_error, 1, std::max(0, static_cast<int>(time.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    // A pipe that is ready takes PIPE_BUF bytes without blocking.
    const std::string_view part = left.substr(0, PIPE_BUF);
    if (!send_all(STDERR_FILENO, part)) return;
    left.remove_prefix(part.size());
  }
}

}  // namespace isoscale::base
