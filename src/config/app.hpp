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

/// Makes the commands and options that CLI11 matches and describes; the values that it finds stay
/// with the options as text. Unknown arguments are left in remaining().
[[nodiscard]] std::unique_ptr<CLI::App> make_app();

// These functions read the command line as CLI11 matched it, and refuse it in the program's words.

/// Throws base::UsageError with `what` and the hint how to learn more.
[[noreturn]] void refuse(std::string_view what, const CLI::App& command);

/// Returns the values that were given to an option of `command`.
[[nodiscard]] const std::vector<std::string>& values_of(const CLI::App& command,
                                                        const std::string& option);

/// Returns the value of an option that is given at most once; nullptr if it is not given.
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

/// Returns `arguments` with "--detail=all" in place of a --detail without a section: one that is
/// followed by the end, an option, or a file, whose name has a dot or a slash.
[[nodiscard]] std::vector<std::string> with_all_detail(std::span<const std::string> arguments);

/// Read the commands that analyse run files, as the user gave them. Both throw base::UsageError.
[[nodiscard]] ReportCommand interpret_report(const CLI::App& command);
[[nodiscard]] CompareCommand interpret_compare(const CLI::App& command);

/// Reads the command `predict` as the user gave it. Throws base::UsageError. Keys of --set are
/// checked later, where the workload and the machine that they belong to are known.
[[nodiscard]] PredictCommand interpret_predict(const CLI::App& command,
                                               std::span<const workloads::Workload> known);

}  // namespace isoscale::config
