// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "config/command_line.hpp"

#include <fmt/format.h>
#include <CLI/App.hpp>

#include <algorithm>
#include <array>
#include <memory>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/app.hpp"
#include "settings/layer.hpp"
#include "settings/values.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::config {

static std::string_view name(ListCommand::What what) {
  constexpr std::array<std::string_view, 7> names{"workloads", "models",   "suites", "options",
                                                  "systems",   "software", "keys"};
  return names[static_cast<std::size_t>(what)];
}

static std::string_view name(ListCommand::File file) {
  constexpr std::array<std::string_view, 4> names{"model", "system", "suite", "software"};
  return names[static_cast<std::size_t>(file)];
}

namespace {

/// Returns the text of --help. CLI11 leaves several empty lines in a row, which become one.
PrintCommand help_text(const CLI::App& app) {
  std::string text = app.help();
  for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) {
    text.erase(at, 1);
  }
  text.erase(text.find_last_not_of('\n') + 1);
  return {text + "\n"};
}

/// Throws base::UsageError for an argument that `command` does not accept.
[[noreturn]] void refuse_extra(const std::string& argument, const CLI::App& command) {
  std::vector<std::string> names;
  if (argument.starts_with('-')) {
    for (const CLI::Option* const option : command.get_options()) {
      for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
    }
    const std::string_view typed = std::string_view{argument}.substr(0, argument.find('='));
    refuse(fmt::format("unknown option {}{}", base::quoted(typed),
                       base::did_you_mean(
                           typed, std::vector<std::string_view>{names.begin(), names.end()})),
           command);
  }
  if (command.get_parent() != nullptr) {
    refuse(fmt::format("unexpected argument {}", base::quoted(argument)), command);
  }
  for (const CLI::App* const known : command.get_subcommands({}))
    names.push_back(known->get_name());
  refuse(fmt::format("unknown command {}{}; the commands are {}", base::quoted(argument),
                     base::did_you_mean(argument,
                                        std::vector<std::string_view>{names.begin(), names.end()}),
                     fmt::join(names, ", ")),
         command);
}

void refuse_extras(const CLI::App& command) {
  for (const std::string& argument : command.remaining()) {
    if (argument != "--") refuse_extra(argument, command);
  }
}

/// Throws base::UsageError for an option given as `--name=`: CLI11 would take the next argument as
/// its value.
void refuse_empty_values(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return;
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      const auto option = std::string_view{argument}.substr(0, argument.size() - 1);
      throw base::usage_error("{}: the value is empty; give one, or leave the option out",
                              base::printable(option));
    }
  }
}

void read_option(settings::Layer& layer, const CLI::App& command,
                 const settings::RunOption& option) {
  const std::string flag = fmt::format("--{}", option.name);
  for (const std::string& value : values_of(command, flag, option.arity)) {
    settings::give(layer.shared, option, value, flag);
  }
}

RunConfig interpret_run(const CLI::App& command, std::span<const std::string> arguments) {
  settings::Layer layer;
  for (const settings::RunOption& option : settings::run_options())
    read_option(layer, command, option);
  settings::Layer file;
  if (const std::string* const path = value_of(command, experiment_argument)) {
    const auto readable = settings::with_place(experiment_argument, *path, settings::parse_path);
    file = settings::read_layer(workloads::read_small_file(readable, "experiment file"), *path);
  }
  RunConfig run = settings::assemble(file, layer);
  run.command_line = base::shell_quoted(arguments);
  return run;
}

CheckCommand interpret_check(const CLI::App& command, std::span<const std::string> arguments) {
  settings::Layer layer;
  for (const std::string_view name : check_options)
    read_option(layer, command, *settings::find_option(name));
  CheckCommand check;
  check.config = settings::without_experiments(layer);
  check.config.command_line = base::shell_quoted(arguments);
  if (const std::string* const format = value_of(command, "--format")) {
    check.format = settings::with_place("--format", *format, [](std::string_view value) {
      return settings::parse_choice(value, {Format::text, Format::json});
    });
  }
  return check;
}

ListCommand interpret_list(const CLI::App& command) {
  using enum ListCommand::What;
  const std::string* const what = value_of(command, what_argument);
  const std::string* const workload = value_of(command, workload_argument);
  if (what == nullptr)
    refuse("list needs one of workloads, models, suites, options, systems, software, keys",
           command);
  ListCommand list;
  list.what = settings::with_place("list", *what, [](std::string_view text) {
    return settings::parse_choice(text,
                                  {workloads, models, suites, options, systems, software, keys});
  });
  if (list.what == keys) {
    if (workload == nullptr)
      refuse("list keys needs one of model, system, suite, software", command);
    list.file = settings::with_place("list keys", *workload, [](std::string_view text) {
      using enum ListCommand::File;
      return settings::parse_choice(text, {model, system, suite, ListCommand::File::software});
    });
    return list;
  }
  if (list.what != options) {
    if (workload != nullptr) refuse_extra(*workload, command);
    return list;
  }
  if (workload == nullptr) refuse("list options needs the name of a workload", command);
  list.workload = settings::find_workload(*workload, "list options").name;
  return list;
}

PrintCommand interpret_completion(const CLI::App& app, const CLI::App& command) {
  const std::string* const text = value_of(command, shell_argument);
  if (text == nullptr) refuse("completion needs bash or zsh", command);
  const Shell shell = settings::with_place("completion", *text, [](std::string_view value) {
    return settings::parse_choice(value, {Shell::bash, Shell::zsh});
  });
  return {completion_script(shell, app)};
}

std::string version_text() {
  const base::BuildInfo& info = base::build_info();
  return fmt::format("isoscale {} (git {}, {}, {})\n", info.version, info.git_hash, info.compiler,
                     info.build_type);
}

}  // namespace

Command parse_arguments(std::span<const std::string> arguments) {
  const std::unique_ptr<CLI::App> app = make_app();
  if (arguments.size() <= 1) return help_text(*app);
  const auto given = arguments.subspan(1);
  refuse_empty_values(given);
  const auto chosen = [&]() -> const CLI::App& {
    const auto commands = app->get_subcommands();
    return commands.empty() ? *app : *commands.front();
  };
  try {
    std::vector<std::string> reversed = with_all_detail(given);
    std::ranges::reverse(reversed);  // CLI11 expects the arguments in reverse order
    app->parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return help_text(*app);
  } catch (const CLI::ArgumentMismatch& error) {
    // CLI11's message begins with the option's name and a colon. Only that name is used; the rest
    // contains names of CLI11's types.
    const std::string_view text = error.what();
    refuse(fmt::format("{} needs a value", base::printable(text.substr(0, text.find(':')))),
           chosen());
  } catch (const CLI::ParseError& error) {
    refuse(base::printable(error.what(), 200), chosen());
  }
  refuse_extras(*app);
  if (app->count("--version") > 0) return PrintCommand{version_text()};
  const CLI::App& command = chosen();
  if (&command == app.get()) return help_text(*app);
  refuse_extras(command);
  if (command.get_name() == "run") return interpret_run(command, arguments);
  if (command.get_name() == "check") return interpret_check(command, arguments);
  if (command.get_name() == "report") return interpret_report(command);
  if (command.get_name() == "compare") return interpret_compare(command);
  if (command.get_name() == "predict") return interpret_predict(command);
  if (command.get_name() == "completion") return interpret_completion(*app, command);
  return interpret_list(command);
}

}  // namespace isoscale::config
