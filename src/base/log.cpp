// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/log.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace isoscale::base {

void warn(std::string_view line) {
  std::string text{line};
  text += '\n';
  // One write(2) of the whole line; the loop only matters for a signal or a full pipe.
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
    if (written > 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      return;  // standard error is closed: there is nobody left to tell
    }
  }
}

}  // namespace isoscale::base
