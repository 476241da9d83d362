// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/text.hpp"
#include "config/command_line.hpp"
#include "words.hpp"

/// Command lines and experiment files, each as one text.
namespace isoscale::settings {

using testing_support::usage_error;
using Arguments = std::vector<std::string>;

inline config::Command parse(Arguments arguments) {
  arguments.insert(arguments.begin(), "isoscale");
  return config::parse_arguments(arguments);
}
/// The words of `line` are split as a shell does.
template <class Command>
Command parsed(std::string_view line) {
  return std::get<Command>(parse(base::shell_words(line)));
}
inline RunConfig run_of(std::string_view options) {
  return parsed<RunConfig>("run " + std::string{options});
}
inline RunConfig read(std::string_view toml) { return from_toml(toml, "exp.toml"); }

inline std::string refusal(const Arguments& arguments) {
  return usage_error([&] { (void)parse(arguments); });
}
inline std::string refusal_of(std::string_view line) { return refusal(base::shell_words(line)); }

inline std::string text_of(const Arguments& arguments) {
  return std::get<config::PrintCommand>(parse(arguments)).text;
}

}  // namespace isoscale::settings
