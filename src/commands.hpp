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
#include "config/command_line.hpp"
#include "config/run_config.hpp"

/// The subcommands, and how they write to standard output.
namespace isoscale {

/// `isoscale run`. Throws base::Error. A build without MPI has another definition of this and of
/// check_command(), which only refuses.
[[nodiscard]] base::ExitCode run_command(const config::RunConfig& config, int argc, char** argv);
/// `isoscale check`. Throws base::Error.
[[nodiscard]] base::ExitCode check_command(const config::CheckCommand& command, int argc,
                                           char** argv);

/// `isoscale report`: reads run files, each launch once, and prints what they say.
[[nodiscard]] base::ExitCode report_command(const config::ReportCommand& command);

/// `isoscale compare`: the sides' curves, what they differ by and why, and the gate's verdict.
[[nodiscard]] base::ExitCode compare_command(const config::CompareCommand& command);

/// `isoscale predict`: the curve at rank counts that nobody measured, from a run or a data sheet.
[[nodiscard]] base::ExitCode predict_command(const config::PredictCommand& command);

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
