// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace isoscale::config {
namespace {

/// What a launch may be told that goes on with another one's run.
constexpr std::array<std::string_view, 4> may_be_given{"resume", "budget", "allow", "quiet"};

[[noreturn]] void refuse(std::string_view place) {
  throw base::UsageError(fmt::format(
      "{}: --resume takes all settings from the run file; leave this out (only --budget, "
      "--allow and --quiet may be given with it)",
      place));
}

void refuse_all_but(std::span<const std::string_view> allowed, const Choices& choices) {
  for (const auto& [name, given] : choices.values) {
    if (std::ranges::find(allowed, name) == allowed.end()) refuse(given.place);
  }
  for (const auto& [key, given] : choices.options) refuse(given.place);
}

}  // namespace

RunConfig resumption(const Layer& file, const Layer& command_line) {
  refuse_all_but({}, file.shared);
  for (const Choices& experiment : file.experiments) refuse_all_but({}, experiment);
  refuse_all_but(may_be_given, command_line.shared);
  RunConfig run;
  Experiment none;
  for (const RunOption& option : run_options()) {
    const Given* const given = command_line.shared.find(option.name);
    if (given != nullptr) option.apply(given->text, none, run);
  }
  return run;
}

RunConfig resumed(const RunConfig& asked, std::string_view toml) {
  RunConfig run = from_toml(toml, asked.resume.string() + ": config");
  run.resume = run.output = asked.resume;
  run.budget = asked.budget;
  run.allowed = asked.allowed;
  run.verbosity = asked.verbosity;
  return run;
}

}  // namespace isoscale::config
