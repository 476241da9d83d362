// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>

#include "base/error.hpp"

namespace isoscale {

/// Writes a text to standard output, whole. Throws base::Error when it cannot be written.
inline base::ExitCode print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw base::Error("standard output cannot be written");
  return base::ExitCode::done;
}

}  // namespace isoscale
