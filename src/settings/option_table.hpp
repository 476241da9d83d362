// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "settings/run_config.hpp"

/// The table of all options of `isoscale run`. It is used for --help, to check values, to read
/// experiment files, and to write the configuration that a run file keeps.
namespace isoscale::settings {

/// The groups of options in --help, each with a heading.
enum class Group : std::uint8_t { basic, what, where, how_long, looking, file };
[[nodiscard]] std::string_view name(Group group);

/// The number of values that an option takes. flag: none on the command line. once: one value.
/// list: one comma-separated list. repeated: one KEY=VALUE for a workload option at each use of the
/// option. repeated_list: a comma-separated list, to which each further use of the option adds.
enum class Arity : std::uint8_t { flag, once, list, repeated, repeated_list };

/// experiment: each experiment may have its own value. run: the whole run has one value.
enum class Scope : std::uint8_t { experiment, run };

struct RunOption {
  std::string_view name;          ///< long option, without the dashes
  std::string_view value;         ///< placeholder of its value in --help
  std::string_view default_text;  ///< default value as --help shows it; "" = it shows none
  Group group = Group::what;
  std::string_view help;
  Arity arity = Arity::once;
  Scope scope = Scope::run;
  /// Reads a value from `text` and stores it in `experiment` or `run`. Throws base::UsageError or
  /// std::invalid_argument with a sentence that begins with the value.
  void (*apply)(std::string_view text, Experiment& experiment,
                RunConfig& run) = [](std::string_view, Experiment&, RunConfig&) {};
  /// Returns the value in TOML; "" if it is not set, or not written under the option's own key.
  std::string (*write)(const Experiment& experiment, const RunConfig& run) =
      [](const Experiment&, const RunConfig&) { return std::string{}; };
};

[[nodiscard]] std::span<const RunOption> run_options();

/// Returns the option's key in experiment files: the long name with each - replaced by _.
[[nodiscard]] std::string key_of(const RunOption& option);

/// Returns the option with this long name; nullptr if there is none.
[[nodiscard]] const RunOption* find_option(std::string_view long_name);

}  // namespace isoscale::settings
