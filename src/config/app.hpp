// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/command_line.hpp"
#include "settings/option_table.hpp"
#include "settings/option_values.hpp"
#include "settings/settings_layer.hpp"

/// Declares the functions with which the command line is described, parsed and read. They are
/// defined in command_line.cpp, except that with_all_detail() and the functions of `report`,
/// `compare` and `predict` are in analysis_arguments.cpp, and completion_script() in
/// completion.cpp.
namespace isoscale::config {

/// Names of positional arguments, as --help prints them.
inline constexpr const char* experiment_argument = "EXPERIMENT.toml";
inline constexpr const char* files_argument = "RUN.h5";
inline constexpr const char* sides_argument = "A.h5";
inline constexpr const char* source_argument = "RUN.h5|SYSTEM.toml";
inline constexpr const char* what_argument = "WHAT";
inline constexpr const char* workload_argument = "WORKLOAD";
inline constexpr const char* shell_argument = "SHELL";

/// Returns a parser that has all commands and options, for parsing and for --help. It stores the
/// values of options as text, and leaves unknown arguments in remaining().
[[nodiscard]] std::unique_ptr<CLI::App> make_app();

/// Adds an option whose placeholder in --help is `value`; if `value` is empty, adds a flag. The
/// parser keeps all values of an option that is given twice, so that value_of() can refuse the
/// second. By default, CLI11 would keep only one.
CLI::Option* add(CLI::App& command, const std::string& flags, std::string_view value,
                 std::string_view help, std::string_view default_text);

/// These functions add the commands whose options are in `analysis_arguments.cpp`.
void add_report(CLI::App& app);
void add_compare(CLI::App& app);
void add_predict(CLI::App& app);

/// Returns a script with which `shell`, "bash" or "zsh", completes the commands and options of
/// `app`. The scripts for both shells hold the same table of all commands, options and arguments,
/// with rows of COMMAND|WORD|VALUES|HELP. COMMAND is empty for the program itself. WORD is an
/// option, a command, or the position of an argument, from 1. VALUES lists words and file patterns:
/// "tiny *.toml". It begins with a comma if several values may be given, is "-" if there is no
/// value, and is empty if the program cannot know the values.
[[nodiscard]] std::string completion_script(std::string_view shell, const CLI::App& app);

// The functions below read the command line that CLI11 has parsed. The messages of their errors are
// this program's own, not CLI11's.

/// Throws base::UsageError with `what`, and with a hint at the command's --help.
[[noreturn]] void refuse(std::string_view what, const CLI::App& command);

/// Returns the values that were given to an option of this arity; for a flag, "true" if it is
/// given. Throws base::UsageError for a flag with a value, for a value that begins with "--", and
/// for an option that is given twice although it may be given once.
[[nodiscard]] std::vector<std::string> values_of(const CLI::App& command, const std::string& option,
                                                 settings::Arity arity);
/// Returns the value of an option that may be given once; absent if it is not given.
[[nodiscard]] std::optional<std::string> value_of(const CLI::App& command,
                                                  const std::string& option);

/// Returns `arguments` with "--detail=all" in place of each --detail without sections: one that is
/// the last argument, or is followed by an option or by a file (a name with a dot or a slash).
/// Arguments after "--" are not changed.
[[nodiscard]] std::vector<std::string> with_all_detail(std::span<const std::string> arguments);

/// These functions read the arguments of `report` and `compare`. Both throw base::UsageError.
[[nodiscard]] ReportCommand interpret_report(const CLI::App& command);
[[nodiscard]] CompareCommand interpret_compare(const CLI::App& command);

/// Reads the arguments of `predict`. Throws base::UsageError. Keys of --set are checked later, when
/// the workload and the machine are known.
[[nodiscard]] PredictCommand interpret_predict(const CLI::App& command);

}  // namespace isoscale::config
