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
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "config/command_line.hpp"
#include "settings/run_config.hpp"

/// The functions of the subcommands, and functions by which they write to standard output.
namespace isoscale {

/// `isoscale run`: plans and measures. Throws base::Error. In a build without MPI, this function
/// and the one for `isoscale check` only throw.
[[nodiscard]] base::ExitCode execute(const settings::RunConfig& config, int argc, char** argv);
/// `isoscale check`: prints the results of the checks that precede a run. Throws base::Error.
[[nodiscard]] base::ExitCode execute(const settings::CheckCommand& command, int argc, char** argv);

/// `isoscale report`: reads run files and prints their results. Copies of a run count once.
[[nodiscard]] base::ExitCode execute(const settings::ReportCommand& command);

/// `isoscale compare`: prints the curves of all sides (a side is the runs of one machine), their
/// differences, the causes of these and, with --gate, whether a side is too slow.
[[nodiscard]] base::ExitCode execute(const settings::CompareCommand& command);

/// `isoscale predict`: prints a predicted curve, based on a run or on a data sheet.
[[nodiscard]] base::ExitCode execute(const settings::PredictCommand& command);
/// `isoscale list`: prints names (of workloads, models, ...), or the keys of a kind of file.
[[nodiscard]] base::ExitCode execute(const config::ListCommand& command);

/// Writes the whole text to standard output and returns ExitCode::done. If it cannot be written,
/// throws std::runtime_error and not base::Error, whose place in the source tells a user nothing.
inline base::ExitCode print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw std::runtime_error("standard output cannot be written");
  }
  return base::ExitCode::done;
}

/// Returns the width, in columns, for a summary on standard output. On a terminal it is COLUMNS or
/// else the window's width, but at least 60 and at most 110. It is 110 for files and pipes, and if
/// a terminal's width is unknown, as it may be under mpirun.
inline std::size_t output_columns() {
  constexpr std::size_t narrowest = 60, widest = 110;
  if (::isatty(STDOUT_FILENO) == 0) return widest;
  std::size_t columns = 0;
  if (const char* const variable = std::getenv("COLUMNS")) {
    const std::string_view text = variable;
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  if (winsize window{}; columns == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
    columns = window.ws_col;
  }
  return columns == 0 ? widest : std::clamp(columns, narrowest, widest);
}

}  // namespace isoscale
