// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>

#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "config/command_line.hpp"
#include "config/values.hpp"

namespace isoscale::config {

/// Names of positional arguments, as --help prints them.
inline constexpr const char* experiment_argument = "EXPERIMENT.toml";
inline constexpr const char* files_argument = "RUN.h5";
inline constexpr const char* sides_argument = "A.h5";
inline constexpr const char* source_argument = "RUN.h5|SYSTEM.toml";
inline constexpr const char* what_argument = "WHAT";
inline constexpr const char* workload_argument = "WORKLOAD";
inline constexpr const char* shell_argument = "SHELL";

/// The options of `run` that `check` has too.
inline constexpr std::array<std::string_view, 5> check_options{"device", "blas-threads", "gpu-bind",
                                                               "share-gpu", "allow"};

/// Returns a parser that has all commands and options, for parsing and for --help. It stores the
/// values of options as text, and leaves unknown arguments in remaining().
[[nodiscard]] std::unique_ptr<CLI::App> make_app();

// The functions below read the command line that CLI11 has parsed. They throw errors with messages
// of this program, not of CLI11.

/// Throws base::UsageError with `what`, and with a hint at the command's --help.
[[noreturn]] void refuse(std::string_view what, const CLI::App& command);

/// Returns the values that were given to an option of `command`. Throws base::UsageError if one of
/// them begins with "--".
[[nodiscard]] const std::vector<std::string>& values_of(const CLI::App& command,
                                                        const std::string& option);

/// Returns the value of an option; nullptr if it is not given. Throws base::UsageError if it is
/// given more than once.
[[nodiscard]] const std::string* value_of(const CLI::App& command, const std::string& option);

/// Calls `parse`, and puts the option's name before the message of an error that it throws.
template <class Parse>
auto with_place(std::string_view option, std::string_view text, Parse parse) {
  try {
    require_sane(text);
    return parse(text);
  } catch (const base::UsageError& error) {
    throw base::UsageError(fmt::format("{}: {}", option, error.what()), error.where());
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

/// Returns `arguments` with "--detail=all" in place of each --detail without sections: one that is
/// the last argument, or is followed by an option or by a file (a name with a dot or a slash).
[[nodiscard]] std::vector<std::string> with_all_detail(std::span<const std::string> arguments);

/// These functions read the arguments of `report` and `compare`. Both throw base::UsageError.
[[nodiscard]] ReportCommand interpret_report(const CLI::App& command);
[[nodiscard]] CompareCommand interpret_compare(const CLI::App& command);

/// Reads the arguments of `predict`. Throws base::UsageError. Keys of --set are checked later, when
/// the workload and the machine are known.
[[nodiscard]] PredictCommand interpret_predict(const CLI::App& command,
                                               std::span<const workloads::Workload> known);

}  // namespace isoscale::config
