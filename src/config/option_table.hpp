// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/run_config.hpp"

/// The one table of all options of a run. It feeds --help, validation, the experiment file and the
/// canonical echo.
namespace isoscale::config {

/// The headings of --help.
enum class Group : std::uint8_t { basic, what, where, how_long, looking, file };
[[nodiscard]] std::string_view name(Group group);

/// flag: no value on the command line. list: values between commas. repeated: KEY=VALUE of a
/// workload, which may be given several times. repeated_list: a list that grows each time it is
/// given.
enum class Arity : std::uint8_t { flag, once, list, repeated, repeated_list };

/// Says whether each experiment may have its own value, or the run has one value.
enum class Scope : std::uint8_t { experiment, run };

struct RunOption {
  std::string_view name;               ///< long option, without the dashes
  std::string_view value = {};         ///< placeholder of its value in --help
  std::string_view default_text = {};  ///< "" = nothing to say
  Group group = Group::what;
  Arity arity = Arity::once;
  Scope scope = Scope::run;
  std::string_view help;
  /// Stores the value that `text` means. Throws base::UsageError or std::invalid_argument with a
  /// sentence that begins with the value.
  void (*apply)(std::string_view text, Experiment& experiment, RunConfig& run);
  /// Returns the value in TOML; "" if it is the default, or is written in another way.
  std::string (*write)(const Experiment& experiment, const RunConfig& run);
};

[[nodiscard]] std::span<const RunOption> run_options();

/// Returns the key in an experiment file: the long name with _ for -.
[[nodiscard]] std::string key_of(const RunOption& option);

/// Returns the option with this long name; nullptr if there is none.
[[nodiscard]] const RunOption* find_option(std::string_view long_name);

}  // namespace isoscale::config
