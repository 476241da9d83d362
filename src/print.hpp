// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace isoscale {

/// Writes a text to standard output, whole. Throws base::Error when it cannot be written.
inline base::ExitCode print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw base::Error("standard output cannot be written");
  return base::ExitCode::done;
}

/// Columns that a summary on standard output may take: those of a terminal (COLUMNS, else what it
/// says), from 60 to 110; 110 for files and pipes, and where mpirun has no terminal and gives its
/// ranks one of no size.
inline std::size_t output_columns() {
  constexpr std::size_t narrowest = 60, widest = 110;
  if (::isatty(STDOUT_FILENO) == 0) return widest;
  std::size_t columns = 0;
  if (const char* const told = std::getenv("COLUMNS")) {
    const std::string_view text = told;
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  if (winsize window{}; columns == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    columns = window.ws_col;
  }
  return columns == 0 ? widest : std::clamp(columns, narrowest, widest);
}

}  // namespace isoscale
