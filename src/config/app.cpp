// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "config/app.hpp"

#include <fmt/format.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/text.hpp"

namespace isoscale::config {

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

namespace {

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
      ->description("workloads|models|suites|options|systems|software|keys")
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

std::string help_of(const CLI::App& command) {
  const bool top = command.get_parent() == nullptr;
  return fmt::format("see: isoscale {}--help", top ? "" : command.get_name() + " ");
}

}  // namespace

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
  throw base::usage_error("{}; {}", what, help_of(command));
}

const std::vector<std::string>& values_of(const CLI::App& command, const std::string& option) {
  const auto& values = command.get_option(option)->results();
  for (const std::string& value : values) {
    if (!value.starts_with("--")) continue;
    refuse(fmt::format("{} needs a value, but {} follows", option, base::quoted(value)), command);
  }
  return values;
}

const std::string* value_of(const CLI::App& command, const std::string& option) {
  const auto& values = values_of(command, option);
  if (values.size() > 1) {
    refuse(fmt::format("{} is given twice, as {} and as {}; give it once", option,
                       base::quoted(values[0]), base::quoted(values[1])),
           command);
  }
  return values.empty() ? nullptr : &values.front();
}

std::vector<std::string> values_of(const CLI::App& command, const std::string& option,
                                   settings::Arity arity) {
  using settings::Arity;
  if (arity == Arity::flag) {
    const auto& results = command.get_option(option)->results();
    for (const std::string& result : results) {
      if (result != "true") refuse(fmt::format("{} takes no value", option), command);
    }
    if (results.empty()) return {};
    return {results.front()};
  }
  if (arity != Arity::repeated && arity != Arity::repeated_list) (void)value_of(command, option);
  return values_of(command, option);
}

}  // namespace isoscale::config
