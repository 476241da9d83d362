// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/text.hpp"

namespace isoscale::base {

void warn(std::string_view line) {
  // A line may hold names out of files of others; what moves a cursor is shown, not done. Line
  // breaks are ours.
  std::string text;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\n', begin), line.size());
    text += printable(line.substr(begin, end - begin), end - begin) + '\n';
    begin = end + 1;
  }
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
