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

/// The options of run that check has too.
inline constexpr std::array<std::string_view, 5> check_options{"device", "blas-threads", "gpu-bind",
                                                               "share-gpu", "allow"};

/// The commands and their options for CLI11 to match and to describe; what it finds stays with the
/// options as text. Unknown arguments are left in remaining().
[[nodiscard]] std::unique_ptr<CLI::App> make_app();

// These functions read what CLI11 matched of a command line, and refuse it in the program's words.

/// Throws base::UsageError: `what`, and how to learn more.
[[noreturn]] void refuse(std::string_view what, const CLI::App& command);

/// The values that were given to an option of `command`.
[[nodiscard]] const std::vector<std::string>& values_of(const CLI::App& command,
                                                        const std::string& option);

/// The value of an option that is given at most once; nullptr when it is not given.
[[nodiscard]] const std::string* value_of(const CLI::App& command, const std::string& option);

/// Calls `parse` and puts the option's name before whatever it complains of.
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

/// `arguments` with "--detail=all" for a --detail that no section follows: the end, an option, or a
/// file, which has a dot or a slash in its name.
[[nodiscard]] std::vector<std::string> with_all_detail(std::span<const std::string> arguments);

/// The commands that read run files, as they were given. Both throw base::UsageError.
[[nodiscard]] ReportCommand interpret_report(const CLI::App& command);
[[nodiscard]] CompareCommand interpret_compare(const CLI::App& command);

/// The command `predict`, as it was given. Throws base::UsageError. Keys of --set are checked where
/// the workload and the machine that they are about are known.
[[nodiscard]] PredictCommand interpret_predict(const CLI::App& command,
                                               std::span<const workloads::Workload> known);

}  // namespace isoscale::config
