// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "config/app.hpp"

#include <fmt/format.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

#include "base/text.hpp"
#include "config/option_table.hpp"

namespace isoscale::config {

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

constexpr const char* predict_footer =
    R"(What-ifs change the machine: link.inter, link.intra (bandwidth between and inside nodes), gemm and
memory (speed) are factors above 1 for more, latency (time of a message) below 1 for less. Each
--set makes one more curve; a comma joins changes of one curve.

  isoscale predict run.h5 --ranks 64,256,1024 --set link.inter=2x --set gemm=1.3x,memory=1.3x
  isoscale predict h100-ndr --model gpt-175b --ranks 1024 --best           (isoscale list systems))";

/// Adds a flag, or an option with a value. CLI11 collects all values of an option that is repeated,
/// so that value_of() can refuse a second one; by default it would keep only one of them.
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

void add(CLI::App& command, const RunOption& option) {
  add(command, fmt::format("--{}", option.name), option.value, option.help, option.default_text)
      ->group(std::string{name(option.group)});
}

void add_run(CLI::App& app) {
  CLI::App& run = *app.add_subcommand("run", "Measure scaling curves and write a run file");
  run.add_option(experiment_argument)
      ->description("experiment file; options override what it says")
      ->option_text(" ");
  for (const RunOption& option : run_options()) add(run, option);
  run.footer(run_footer);
}

void add_check(CLI::App& app) {
  CLI::App& check = *app.add_subcommand("check", "Check the machines of a job before measuring");
  add(check, "--format", "text|json", "output format", "text");
  for (const std::string_view option : check_options) add(check, *find_option(option));
  check.footer(
      "Start it under the launcher of a run, with as many ranks: mpirun -np 8 isoscale check");
}

void add_report(CLI::App& app) {
  CLI::App& report = *app.add_subcommand("report", "Report on run files");
  report.add_option(files_argument)
      ->description("run files")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("...");
  add(report, "--format", "text|json|csv|nccl-tests|markdown", "output format", "text");
  add(report, "--baseline", "N|node", "rank count, or a whole node, that efficiency refers to",
      "smallest rank count that is ok");
  add(report, "--detail", "SECTION[,SECTION...]",
      "print all numbers, or those sections; a wrong name lists them", "a summary");
  add(report, "--index", "", "list what the files hold; always with very many files", "");
  add(report, "--html", "FILE.html", "also write a page with charts, for a browser", "");
  add(report, "--trace", "FILE.json", "also write the traces, for ui.perfetto.dev", "");
  add(report, "--force", "", "overwrite the files of --html and --trace when they exist", "");
}

void add_compare(CLI::App& app) {
  CLI::App& compare = *app.add_subcommand("compare", "Compare machines, or one machine over time");
  compare.add_option(sides_argument)
      ->description("two sides or more, the reference first; commas join launches of a side")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("[,A2.h5...] ...");
  add(compare, "--format", "text|json|csv|junit|markdown", "output format", "text");
  add(compare, "--names", "NAME,NAME", "names of the sides, in their order",
      "by files or machines");
  add(compare, "--baseline", "N|node", "rank count, or a whole node, that efficiency refers to",
      "smallest rank count that is ok on all sides");
  add(compare, "--gate", "SHARE", "exit with 3 when a loss of throughput above this is established",
      "");
  add(compare, "--strict", "", "with --gate: fail also where the data decides nothing", "");
  add(compare, "--anyway", "", "compare also unlike measurements, and mark them", "");
  add(compare, "--html", "FILE.html", "also write a page with charts, for a browser", "");
  add(compare, "--force", "", "overwrite the file of --html when it exists", "");
  compare.footer(
      "  isoscale compare a1.h5,a2.h5,a3.h5 b1.h5,b2.h5,b3.h5 --gate 5%\n"
      "Use at least three launches per side: fewer establish no difference.");
}

void add_predict(CLI::App& app) {
  CLI::App& predict =
      *app.add_subcommand("predict", "Predict a curve from a run, or from a machine's data sheet");
  predict.add_option(source_argument)
      ->description(
          "a run with calibration (a comma joins further launches of it), or a machine's data "
          "sheet: its name or its .toml file")
      ->option_text(" ");
  add(predict, "--ranks", "N[,N...]", "rank counts to predict", "");
  add(predict, "--workload", "NAME", "workload to predict", "first of the run; of a sheet hybrid");
  add(predict, "--model", "NAME|FILE.toml", "transformer whose shapes to use", "that of the run");
  add(predict, "--dtype", "f64|f32|tf32|f16|bf16|fp8", "compute type",
      "as in the run; of a sheet bf16");
  add(predict, "--scaling", "strong|weak", "strong: same total work; weak: work grows with ranks",
      "as in the run; of a sheet strong");
  add(predict, "--mesh", "AXIS=N[,AXIS=N...]", "parallel axes; an unnamed dp takes the rest",
      "as in the run");
  add(predict, "--best", "", "search for the fastest mesh, microbatch, schedule and memory options",
      "");
  add(predict, "--set", "KEY=VALUE", "a workload's option, or a what-if such as link.inter=2x", "");
  add(predict, "--nodes-of", "N", "ranks on a node", "as in the run or sheet");
  add(predict, "--network", "SYSTEM|RUN.h5",
      "take the numbers between nodes from a data sheet or another run", "those of the run");
  add(predict, "--each-rank", "", "play every rank by itself, noise and slow ranks included", "");
  add(predict, "--baseline", "N", "rank count that efficiency refers to",
      "first measured, else first predicted");
  add(predict, "--format", "text|json|csv", "output format", "text");
  add(predict, "--html", "FILE.html", "also write a page with charts, for a browser", "");
  add(predict, "--force", "", "overwrite the file of --html when it exists", "");
  predict.footer(predict_footer);
}

void add_list(CLI::App& app) {
  CLI::App& list =
      *app.add_subcommand("list", "List workloads, models, suites, options, systems, or keys");
  list.add_option(what_argument)
      ->description("workloads|models|suites|options|systems|keys")
      ->option_text(" ");
  list.add_option(workload_argument)
      ->description("the workload whose options to list; for keys model, system or suite")
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
  constexpr std::size_t column = 37;
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
  throw base::UsageError(fmt::format("{}; {}", what, help_of(command)));
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

}  // namespace isoscale::config
