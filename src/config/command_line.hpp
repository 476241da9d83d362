// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "settings/run_config.hpp"

namespace isoscale::config {

// The files in this folder use these names of isoscale::settings without the namespace.
using settings::CheckCommand;
using settings::CompareCommand;
using settings::Format;
using settings::IfExists;
using settings::PredictCommand;
using settings::ReportCommand;
using settings::RunConfig;

struct ListCommand {
  /// "workloads", "models", "suites", "options", "systems", "software" or "keys".
  std::string what;
  /// The workload whose options are listed, or the kind of file whose keys are listed: "model",
  /// "system", "suite" or "software".
  std::string of{};
};

/// The command that only prints `text` on standard output (--help, --version, completion).
struct PrintCommand {
  std::string text;
};

using Command = std::variant<RunConfig, CheckCommand, ReportCommand, CompareCommand, PredictCommand,
                             ListCommand, PrintCommand>;

/// Reads the command line with CLI11; the first argument is the program's name. It never prints and
/// never exits. Throws base::UsageError that says what was wrong, where, and what would have been
/// accepted (the nearest option, workload, model, ... by name).
[[nodiscard]] Command parse_arguments(std::span<const std::string> arguments);

/// Formats the description of one key of an input file as a line. `fallback` is the key's default
/// value, "needed" if the key is mandatory, or "" if the line should show neither.
[[nodiscard]] std::string key_text(std::string_view key, std::string_view fallback,
                                   std::string_view meaning);

/// Returns the output of `isoscale list ...`, in which every line ends with a line break. Throws
/// std::logic_error for an unknown list, and for the keys of data sheets and of software profiles,
/// which predict_command.cpp prints instead.
[[nodiscard]] std::string listing(const ListCommand& command);

}  // namespace isoscale::config
