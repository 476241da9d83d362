// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "config/app.hpp"
#include "config/command_line.hpp"
#include "config/layer.hpp"
#include "mesh/mesh.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::config {
namespace {

using Known = std::span<const workloads::Workload>;
using Names = std::vector<std::string>;

bool is_word(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

/// Returns the ending of the file name that a placeholder shows: ".h5" for "FILE.h5"; "" if there
/// is none.
std::string_view ending_of(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  const bool found = dot != std::string_view::npos && is_word(text.substr(dot + 1));
  return found ? text.substr(dot) : std::string_view{};
}

Names workload_names(Known known) {
  Names names;
  for (const auto& workload : known) names.emplace_back(workload.name);
  return names;
}

/// Returns the keys of all workload options with an equals sign, such as "overlap=".
Names option_keys(Known known) {
  std::set<std::string> keys;
  for (const auto& workload : known) {
    for (const auto& option : workload.options) keys.insert(fmt::format("{}=", option.key));
  }
  return {keys.begin(), keys.end()};
}

Names axis_keys() {
  Names keys;
  for (const mesh::Axis axis : mesh::all_axes) keys.push_back(fmt::format("{}=", name(axis)));
  return keys;
}

Names system_names() {
  Names names;
  for (const workloads::Preset& system : workloads::system_presets()) {
    names.emplace_back(system.name);
  }
  return names;
}

template <class Value>
Names names_of(std::initializer_list<Value> values) {
  Names names;
  for (const Value value : values) names.emplace_back(name(value));
  return names;
}

/// Returns the words that complete the option or argument called `what`, in addition to those in
/// its placeholder.
Names names_for(std::string_view what, Known known) {
  using List = ListCommand::What;
  if (what == "--workload" || what == workload_argument) return workload_names(known);
  if (what == "--model") return workloads::model_names();
  if (what == "--suite") {
    const auto names = suite_names();
    return {names.begin(), names.end()};
  }
  if (what == "--set") return option_keys(known);
  if (what == "--mesh") return axis_keys();
  if (what == what_argument) {
    return names_of(
        {List::workloads, List::models, List::suites, List::options, List::systems, List::keys});
  }
  if (what == source_argument) return system_names();
  if (what == shell_argument) return names_of({Shell::bash, Shell::zsh, Shell::fish});
  return {};
}

CompletedCommand completed_command(const CLI::App& command, std::string command_name, Known known) {
  CompletedCommand result{.name = std::move(command_name),
                          .help = command.get_description(),
                          .options = {},
                          .arguments = {}};
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional()) {
      std::string argument = option->get_name(true);
      const std::string placeholder = option->get_option_text();  // "[,A2.h5...] ..." of a list
      if (placeholder.starts_with("[,")) argument += placeholder.substr(0, placeholder.find(' '));
      result.arguments.push_back(candidates_of(argument, names_for(argument, known)));
      continue;
    }
    // A flag, such as --help, takes no value and has no placeholder.
    const bool takes_value = option->get_items_expected_max() > 0;
    for (const std::string& long_name : option->get_lnames()) {
      const std::string flag = "--" + long_name;
      const std::string placeholder = takes_value ? option->get_option_text() : std::string{};
      result.options.push_back({.flag = flag,
                                .help = option->get_description(),
                                .placeholder = placeholder,
                                .value = takes_value
                                             ? candidates_of(placeholder, names_for(flag, known))
                                             : Candidates{}});
    }
  }
  return result;
}

}  // namespace

std::string_view name(Shell shell) {
  constexpr std::array<std::string_view, 3> names{"bash", "zsh", "fish"};
  return names[static_cast<std::size_t>(shell)];
}

Candidates candidates_of(std::string_view placeholder, std::vector<std::string> names) {
  Candidates result;
  std::string_view rest = placeholder;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    std::string_view alternative = rest.substr(0, bar);
    rest = bar == std::string_view::npos ? std::string_view{} : rest.substr(bar + 1);
    const std::size_t more = alternative.find("[,");
    if (more != std::string_view::npos) {
      result.between_commas = true;
      alternative = alternative.substr(0, more);
    }
    if (is_word(alternative)) {
      result.words.emplace_back(alternative);
    } else if (const std::string_view ending = ending_of(alternative); !ending.empty()) {
      result.endings.emplace_back(ending);
    } else if (alternative == "FILE" || alternative == "DIR") {
      result.endings.emplace_back();
    }
  }
  std::ranges::move(names, std::back_inserter(result.words));
  return result;
}

std::vector<CompletedCommand> completed_commands(const CLI::App& app, Known known) {
  std::vector<CompletedCommand> commands{completed_command(app, "", known)};
  for (const CLI::App* const command : app.get_subcommands({})) {
    commands.push_back(completed_command(*command, command->get_name(), known));
  }
  return commands;
}

}  // namespace isoscale::config
