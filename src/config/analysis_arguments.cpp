// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "config/app.hpp"

namespace isoscale::config {

namespace {

constexpr const char* predict_footer =
    R"(What-ifs change the machine: link.inter, link.intra (bandwidth between and inside nodes),
gemm, memory (speed) and power (limit) are factors above 1 for more, latency (of a message) below 1
for less. Each --set makes one more curve; a comma joins changes of one curve.

  isoscale predict run.h5 --ranks 64,256,1024 --set link.inter=2x --set gemm=1.3x,memory=1.3x
  isoscale predict h100-ndr --model gpt-175b --ranks 1024 --best           (isoscale list systems))";

using In = std::string_view;

/// An option of a command that reads run files: its texts in --help, and how its value is stored.
template <class Command>
struct Row {
  const char* flag;
  std::string_view value;  ///< placeholder in --help; "" = a flag, for which store() gets "true"
  std::string_view help;
  std::string_view default_text;  ///< "" = not shown
  /// Stores a value, or throws base::UsageError or std::invalid_argument if it is not valid.
  void (*store)(std::string_view text, Command& command);
  settings::Arity arity = settings::Arity::once;
};

int parse_count(In text) { return settings::parse_int(text, 1, std::numeric_limits<int>::max()); }

template <class Command>
void store_baseline(In text, Command& command) {
  command.whole_node = text == "node";
  if (!command.whole_node) command.baseline = parse_count(text);
}
template <class Command, Format... formats>
void store_format(In text, Command& command) {
  command.format = settings::parse_choice(text, {formats...});
}
template <class Command>
void store_html(In text, Command& command) {
  command.html = settings::parse_path(text);
}
template <class Command>
void store_force(In /*flag*/, Command& command) {
  command.if_exists = IfExists::overwrite;
}

/// Parses a comma-separated list of names for the sides of a comparison. Reports put these names
/// into sentences, tables and XML, so only a few characters are allowed.
std::vector<std::string> parse_side_names(In text) {
  constexpr std::size_t longest = 40;
  constexpr In allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-+@";
  std::vector<std::string> names;
  for (const In name : base::split(text, ',')) {
    if (name.empty() || name.size() > longest || name.find_first_not_of(allowed) != In::npos) {
      settings::refuse_value(
          name, fmt::format("cannot name a side: give 1 to {} letters, digits, blanks or . _ - + @",
                            longest));
    }
    if (std::ranges::find(names, name) != names.end()) {
      settings::refuse_value(name, "names two sides: give each its own name");
    }
    names.emplace_back(name);
  }
  return names;
}

using Report = ReportCommand;
const auto report_rows = std::to_array<Row<Report>>({
    {"--format", "text|json|csv|nccl-tests|markdown", "output format", "text",
     store_format<Report, Format::text, Format::json, Format::csv, Format::nccl_tests,
                  Format::markdown>},
    {"--baseline", "N|node", "rank count, or a whole node, that efficiency refers to",
     "smallest rank count that is ok", store_baseline<Report>},
    {"--detail", "SECTION[,SECTION...]",
     "print all numbers, or those sections; a wrong name lists them", "a summary",
     [](In text, Report& report) { report.detail = text; }},
    {"--index", "", "list what the files hold; always with very many files", "",
     [](In, Report& report) { report.index_only = true; }},
    {"--html", "FILE.html", "also write a page with charts, for a browser", "", store_html<Report>},
    {"--trace", "FILE.json", "also write the traces, for ui.perfetto.dev", "",
     [](In text, Report& report) { report.trace = settings::parse_path(text); }},
    {"--force", "", "overwrite the files of --html and --trace when they exist", "",
     store_force<Report>},
});

using Compare = CompareCommand;
const auto compare_rows = std::to_array<Row<Compare>>({
    {"--format", "text|json|csv|junit|markdown", "output format", "text",
     store_format<Compare, Format::text, Format::json, Format::csv, Format::junit,
                  Format::markdown>},
    {"--names", "NAME,NAME", "names of the sides, in their order", "by files or machines",
     [](In text, Compare& compare) { compare.names = parse_side_names(text); }},
    {"--baseline", "N|node", "rank count, or a whole node, that efficiency refers to",
     "smallest rank count that is ok on all sides", store_baseline<Compare>},
    {"--gate", "SHARE", "exit with 3 when a loss of throughput above this is established", "",
     [](In text, Compare& compare) { compare.gate = settings::parse_share(text); }},
    {"--strict", "", "with --gate: fail also where the data decides nothing", "",
     [](In, Compare& compare) { compare.strict = true; }},
    {"--anyway", "", "compare also unlike measurements, and mark them", "",
     [](In, Compare& compare) { compare.anyway = true; }},
    {"--html", "FILE.html", "also write a page with charts, for a browser", "",
     store_html<Compare>},
    {"--force", "", "overwrite the file of --html when it exists", "", store_force<Compare>},
});

using Predict = PredictCommand;
const auto predict_rows = std::to_array<Row<Predict>>({
    {"--ranks", "N[,N...]", "rank counts to predict", "",
     [](In text, Predict& predict) { predict.ranks = settings::parse_rank_counts(text); }},
    {"--workload", "NAME", "workload to predict", "first of the run; of a sheet hybrid",
     [](In text, Predict& predict) { predict.workload = text; }},
    {"--model", "NAME|FILE.toml", "transformer whose shapes to use", "that of the run",
     [](In text, Predict& predict) {
       predict.model = workloads::load_model(text);
       predict.model_source = text;
     }},
    {"--dtype", "f64|f32|tf32|f16|bf16|fp8", "compute type", "as in the run; of a sheet bf16",
     [](In text, Predict& predict) { predict.precision = program::parse_precision(text); }},
    {"--scaling", "strong|weak", "strong: same total work; weak: work grows with ranks",
     "as in the run; of a sheet strong",
     [](In text, Predict& predict) {
       using enum workloads::Scaling;
       predict.scaling = settings::parse_choice(text, {strong, weak});
     }},
    {"--mesh", "AXIS=N[,AXIS=N...]", "parallel axes; an unnamed dp takes the rest", "as in the run",
     [](In text, Predict& predict) { predict.mesh = settings::parse_mesh(text); }},
    {"--best", "", "search for the fastest mesh, microbatch, schedule and memory options", "",
     [](In, Predict& predict) { predict.best = true; }},
    {"--set", "KEY=VALUE", "a workload's option, or a what-if such as link.inter=2x", "",
     [](In text, Predict& predict) {
       predict.settings.push_back(settings::parse_assignment(text));
     },
     settings::Arity::repeated},
    {"--nodes-of", "N", "ranks on a node", "as in the run or sheet",
     [](In text, Predict& predict) { predict.node_ranks = parse_count(text); }},
    {"--network", "SYSTEM|RUN.h5",
     "take the numbers between nodes from a data sheet or another run", "those of the run or sheet",
     [](In text, Predict& predict) { predict.network = text; }},
    {"--software", "NAME|FILE.toml",
     "training software whose host times and kernels count (isoscale list software)",
     "as in the sheet", [](In text, Predict& predict) { predict.software = text; }},
    {"--no-noise", "", "all ranks of a data sheet's machine take the same time in all steps", "",
     [](In, Predict& predict) { predict.no_noise = true; }},
    {"--each-rank", "", "simulate every rank separately, with noise and slow ranks", "",
     [](In, Predict& predict) { predict.each_rank = true; }},
    {"--baseline", "N", "rank count that efficiency refers to",
     "first measured, else first predicted",
     [](In text, Predict& predict) { predict.baseline = parse_count(text); }},
    {"--format", "text|json|csv", "output format", "text",
     store_format<Predict, Format::text, Format::json, Format::csv>},
    {"--html", "FILE.html", "also write a page with charts, for a browser", "",
     store_html<Predict>},
    {"--force", "", "overwrite the file of --html when it exists", "", store_force<Predict>},
});

template <class Rows>
void add_rows(CLI::App& command, const Rows& rows) {
  for (const auto& row : rows) add(command, row.flag, row.value, row.help, row.default_text);
}

/// Stores in `into` the values of all options that the user gave. Throws base::UsageError for a
/// value that is not valid.
template <class Rows, class Command>
void read_rows(const CLI::App& command, const Rows& rows, Command& into) {
  for (const auto& row : rows) {
    const settings::Arity arity = row.value.empty() ? settings::Arity::flag : row.arity;
    for (const std::string& text : values_of(command, row.flag, arity)) {
      settings::with_place(row.flag, text, [&](In sane) { row.store(sane, into); });
    }
  }
}

void add_files(CLI::App& command, const char* name, const char* description, const char* more) {
  command.add_option(name)
      ->description(description)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text(more);
}

/// Throws base::UsageError if --force is given although no file is to be written.
void refuse_idle_force(const CLI::App& command, const std::filesystem::path& written,
                       std::string_view about) {
  if (command.count("--force") > 0 && written.empty()) {
    refuse(fmt::format("--force is about the {}", about), command);
  }
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App& report = *app.add_subcommand("report", "Report on run files");
  add_files(report, files_argument, "run files", "...");
  add_rows(report, report_rows);
}

void add_compare(CLI::App& app) {
  CLI::App& compare = *app.add_subcommand("compare", "Compare machines, or one machine over time");
  add_files(compare, sides_argument,
            "two sides or more, the reference first; commas join launches of a side",
            "[,A2.h5...] ...");
  add_rows(compare, compare_rows);
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
  add_rows(predict, predict_rows);
  predict.footer(predict_footer);
}

std::vector<std::string> with_all_detail(std::span<const std::string> arguments) {
  std::vector<std::string> result{arguments.begin(), arguments.end()};
  for (std::size_t i = 0; i < result.size() && result[i] != "--"; ++i) {
    if (result[i] != "--detail") continue;
    const bool is_named = i + 1 < result.size() && !result[i + 1].starts_with('-') &&
                          result[i + 1].find_first_of("./") == std::string::npos;
    if (!is_named) result[i] = "--detail=all";
  }
  return result;
}

ReportCommand interpret_report(const CLI::App& command) {
  ReportCommand report;
  for (const std::string& file : command.get_option(files_argument)->results()) {
    report.files.push_back(settings::with_place(files_argument, file, settings::parse_path));
  }
  if (report.files.empty()) refuse("report needs a run file to read", command);
  read_rows(command, report_rows, report);
  if (report.detail && report.format != Format::text) {
    refuse("--detail chooses parts of the text; --format " + std::string{name(report.format)} +
               " has all of them",
           command);
  }
  if (report.detail && report.index_only) {
    refuse("--index has no parts for --detail to choose", command);
  }
  refuse_idle_force(command, report.html.empty() ? report.trace : report.html,
                    "files that --html and --trace name");
  return report;
}

CompareCommand interpret_compare(const CLI::App& command) {
  CompareCommand compare;
  for (const std::string& side : command.get_option(sides_argument)->results()) {
    compare.sides.push_back(settings::with_place("compare", side, settings::parse_paths));
  }
  if (compare.sides.size() < 2) {
    refuse("compare needs two sides or more, each a run file or several with commas between them",
           command);
  }
  read_rows(command, compare_rows, compare);
  if (!compare.names.empty() && compare.names.size() != compare.sides.size()) {
    refuse(fmt::format("--names gives {}, but there are {} sides: name each side",
                       base::counted(compare.names.size(), "name"), compare.sides.size()),
           command);
  }
  if (compare.strict && !compare.gate) refuse("--strict is about the gate; give --gate", command);
  refuse_idle_force(command, compare.html, "file that --html names");
  return compare;
}

PredictCommand interpret_predict(const CLI::App& command) {
  PredictCommand predict;
  const std::optional<std::string> source = value_of(command, source_argument);
  if (!source) {
    refuse(
        "predict needs a run file, or a machine's data sheet: a name (isoscale list systems) or a "
        "file that ends in .toml",
        command);
  }
  predict.launches = settings::with_place("predict", *source, settings::parse_paths);
  predict.source = predict.launches.front();
  predict.launches.erase(predict.launches.begin());
  read_rows(command, predict_rows, predict);
  if (predict.ranks.empty()) {
    refuse("predict needs --ranks, the rank counts to predict, as --ranks 64,256,1024", command);
  }
  if (!predict.workload.empty()) {
    predict.workload = settings::find_workload(predict.workload, "--workload").name;
  }
  refuse_idle_force(command, predict.html, "file that --html names");
  return predict;
}

}  // namespace isoscale::config
