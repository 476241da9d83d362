// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "config/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <array>
#include <memory>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/app.hpp"
#include "settings/option_values.hpp"
#include "settings/settings_layer.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::config {

namespace {

/// The options that the commands `run` and `check` share.
constexpr std::array<std::string_view, 5> check_options{"device", "blas-threads", "gpu-bind",
                                                        "share-gpu", "allow"};
/// The arguments of the command `list`: the lists, and the kinds of files whose keys it lists.
constexpr std::array<std::string_view, 7> lists{"workloads", "models",   "suites", "options",
                                                "systems",   "software", "keys"};
constexpr std::array<std::string_view, 4> files_with_keys{"model", "system", "suite", "software"};

constexpr const char* description =
    R"(Isoscale measures how well a GPU cluster scales, and says why it does not scale better.

Examples:
  mpirun -np 8 isoscale check                                      is this machine fit to measure?
  mpirun -np 8 isoscale run --suite standard --budget 25m          curves within 25 minutes
  isoscale report FILE.h5 --html report.html                       a page with charts
  isoscale compare a1.h5,a2.h5,a3.h5 b1.h5,b2.h5,b3.h5 --gate 5%   exit 3 at a regression
  isoscale predict h100-ndr --model gpt-175b --ranks 1024 --best   the fastest layout
)";

constexpr const char* run_footer =
    R"(Under mpirun or srun every process is a rank; without them there is one. Options override the
experiment file, which is TOML with the same keys (max_time = "10s"; set = { bucket = "10MiB" }) and
may hold several [[experiment]] tables.

  mpirun -np 4 isoscale run                                          the quick suite
  mpirun -np 8 isoscale run --workload dp,tp --model gpt-125m --scaling weak
  mpirun -np 8 isoscale run --workload hybrid --mesh dp=2,tp=2,pp=2 --set schedule=1f1b)";

void add_option(CLI::App& command, const settings::RunOption& option) {
  add(command, fmt::format("--{}", option.name), option.value, option.help, option.default_text)
      ->group(std::string{name(option.group)});
}

void add_run(CLI::App& app) {
  CLI::App& run = *app.add_subcommand("run", "Measure scaling curves and write a run file");
  run.add_option(experiment_argument)
      ->description("experiment file; options override what it says")
      ->option_text(" ");
  for (const settings::RunOption& option : settings::run_options()) add_option(run, option);
  run.footer(run_footer);
}

void add_check(CLI::App& app) {
  CLI::App& check = *app.add_subcommand("check", "Check the machines of a job before measuring");
  add(check, "--format", "text|json", "output format", "text");
  for (const std::string_view option : check_options)
    add_option(check, *settings::find_option(option));
  check.footer(
      "Start it under the launcher of a run, with as many ranks: mpirun -np 8 isoscale check");
}

void add_list(CLI::App& app) {
  CLI::App& list = *app.add_subcommand(
      "list", "List workloads, models, suites, options, systems, software, or keys");
  list.add_option(what_argument)
      ->description(fmt::format("{}", fmt::join(lists, "|")))
      ->option_text(" ");
  list.add_option(workload_argument)
      ->description("the workload whose options to list; for keys model, system, suite or software")
      ->option_text(" ");
}

void add_completion(CLI::App& app) {
  CLI::App& completion =
      *app.add_subcommand("completion", "Print a script that completes command lines in a shell");
  completion.add_option(shell_argument)->description("bash|zsh")->option_text(" ");
}

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

/// Throws base::UsageError for `--name=`, since CLI11 would take the next argument as the value.
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
  if (const auto path = value_of(command, experiment_argument)) {
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
  if (const auto format = value_of(command, "--format")) {
    check.format = settings::with_place("--format", *format, [](std::string_view value) {
      return settings::parse_choice(value, {Format::text, Format::json});
    });
  }
  return check;
}

/// Returns `text`, which was given to the command `place`, if it is one of `words`. Otherwise
/// throws base::UsageError.
std::string word_of(std::string_view place, const std::string& text,
                    std::span<const std::string_view> words) {
  return settings::with_place(place, text, [&](std::string_view word) {
    if (std::ranges::find(words, word) != words.end()) return std::string{word};
    throw base::usage_error("{} is not one of {}", base::quoted(word), fmt::join(words, ", "));
  });
}

ListCommand interpret_list(const CLI::App& command) {
  const auto what = value_of(command, what_argument), of = value_of(command, workload_argument);
  if (!what) refuse(fmt::format("list needs one of {}", fmt::join(lists, ", ")), command);
  ListCommand list{.what = word_of("list", *what, lists)};
  if (list.what == "keys") {
    if (!of) {
      refuse(fmt::format("list keys needs one of {}", fmt::join(files_with_keys, ", ")), command);
    }
    list.of = word_of("list keys", *of, files_with_keys);
  } else if (list.what == "options") {
    if (!of) refuse("list options needs the name of a workload", command);
    list.of = settings::find_workload(*of, "list options").name;
  } else if (of) {
    refuse_extra(*of, command);
  }
  return list;
}

PrintCommand interpret_completion(const CLI::App& app, const CLI::App& command) {
  const auto shell = value_of(command, shell_argument);
  if (!shell) refuse("completion needs bash or zsh", command);
  return {completion_script(
      word_of("completion", *shell, std::array<std::string_view, 2>{"bash", "zsh"}), app)};
}

}  // namespace

CLI::Option* add(CLI::App& command, const std::string& flags, std::string_view value,
                 std::string_view help, std::string_view default_text) {
  CLI::Option* const option = value.empty() ? command.add_flag(flags) : command.add_option(flags);
  std::string text{help};
  if (!default_text.empty()) text += fmt::format(" [{}]", default_text);
  option->description(text);
  if (!value.empty()) {
    option->option_text(std::string{value})
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  return option;
}

std::unique_ptr<CLI::App> make_app() {
  auto app = std::make_unique<CLI::App>(description, "isoscale");
  constexpr std::size_t column = 37;  // the column of descriptions in --help
  app->get_formatter()->column_width(column);
  app->get_formatter()->label("Positionals", "Arguments");
  app->get_formatter()->label("SUBCOMMAND", "COMMAND");
  app->set_help_flag("-h,--help", "print this and exit");
  app->add_flag("--version")->description("print the version and exit");
  app->allow_extras();
  app->require_subcommand(0, 1);
  add_run(*app);
  add_check(*app);
  add_report(*app);
  add_compare(*app);
  add_predict(*app);
  add_list(*app);
  add_completion(*app);
  for (CLI::App* const command : app->get_subcommands({})) command->group("Commands");
  app->footer("Options of a command: isoscale COMMAND --help");
  return app;
}

void refuse(std::string_view what, const CLI::App& command) {
  const bool is_top = command.get_parent() == nullptr;
  throw base::usage_error("{}; see: isoscale {}--help", what,
                          is_top ? "" : command.get_name() + " ");
}

std::vector<std::string> values_of(const CLI::App& command, const std::string& option,
                                   settings::Arity arity) {
  using settings::Arity;
  std::vector<std::string> values = command.get_option(option)->results();
  for (const std::string& value : values) {
    if (arity == Arity::flag && value != "true") {
      refuse(fmt::format("{} takes no value", option), command);
    } else if (value.starts_with("--")) {
      refuse(fmt::format("{} needs a value, but {} follows", option, base::quoted(value)), command);
    }
  }
  if (arity == Arity::flag && values.size() > 1) values.resize(1);
  if (arity != Arity::repeated && arity != Arity::repeated_list && values.size() > 1) {
    refuse(fmt::format("{} is given twice, as {} and as {}; give it once", option,
                       base::quoted(values[0]), base::quoted(values[1])),
           command);
  }
  return values;
}

std::optional<std::string> value_of(const CLI::App& command, const std::string& option) {
  const std::vector<std::string> values = values_of(command, option, settings::Arity::once);
  return values.empty() ? std::nullopt : std::optional{values.front()};
}

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
  if (app->count("--version") > 0) {
    const base::BuildInfo& info = base::build_info();
    return PrintCommand{fmt::format("isoscale {} (git {}, {}, {})\n", info.version, info.git_hash,
                                    info.compiler, info.build_type)};
  }
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
