// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/log.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <string>

#include "base/text.hpp"

namespace isoscale::base {
namespace {

/// Escapes control characters except line breaks: names from foreign files may contain characters
/// that move the cursor.
std::string shown(std::string_view line) {
  std::string text;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\n', begin), line.size());
    text += printable(line.substr(begin, end - begin), end - begin) + '\n';
    begin = end + 1;
  }
  return text;
}

/// Writes a part of the text and returns the length of that part; 0 if standard error cannot be
/// written to, which cannot be reported anywhere.
std::size_t write_some(std::string_view text) {
  while (true) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) return static_cast<std::size_t>(written);
    if (written == 0 || errno != EINTR) return 0;
  }
}

}  // namespace

void warn(std::string_view line) {
  const std::string text = shown(line);
  // One write(2) usually takes the whole line; the loop only matters after a signal or for a full
  // pipe.
  for (std::string_view left = text; !left.empty();) {
    const std::size_t written = write_some(left);
    if (written == 0) return;
    left.remove_prefix(written);
  }
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
    const std::size_t written = write_some(left.substr(0, PIPE_BUF));
    if (written == 0) return;
    left.remove_prefix(written);
  }
}

}  // namespace isoscale::base
