// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/warn.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/text.hpp"

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

/// Writes all bytes to standard error; returns false if that fails.
bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDERR_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void warn(std::string_view line) {
  write_all(shown(line));  // if this fails, the failure cannot be reported
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
    if (!write_all(part)) return;
    left.remove_prefix(part.size());
  }
}

}  // namespace isoscale::base
