// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/app.hpp"
#include "config/values.hpp"

namespace isoscale::config {

namespace {

/// Stores the value of --baseline; `report` and `compare` both have this option.
template <class Command>
void read_baseline(const CLI::App& command, Command& into) {
  const std::string* const baseline = value_of(command, "--baseline");
  into.whole_node = baseline != nullptr && *baseline == "node";
  if (baseline == nullptr || into.whole_node) return;
  into.baseline = with_place("--baseline", *baseline, [](std::string_view value) {
    return parse_int(value, 1, std::numeric_limits<int>::max());
  });
}

/// Returns the path of the output file that an option names; empty if the option is not given.
std::filesystem::path path_of(const CLI::App& command, const std::string& option) {
  const std::string* const text = value_of(command, option);
  return text == nullptr ? std::filesystem::path{} : with_place(option, *text, parse_path);
}

void read_detail(const CLI::App& command, ReportCommand& report) {
  const std::string* const sections = value_of(command, "--detail");
  if (sections == nullptr) return;
  if (report.format != ReportFormat::text) {
    refuse("--detail chooses parts of the text; --format " + std::string{name(report.format)} +
               " has all of them",
           command);
  }
  if (report.index_only) refuse("--index has no parts for --detail to choose", command);
  report.detail = *sections;
}

/// Parses a comma-separated list of names for the sides. Reports put these names into sentences,
/// tables and XML, so only a few characters are allowed.
std::vector<std::string> parse_side_names(std::string_view text) {
  constexpr std::size_t longest = 40;
  constexpr std::string_view allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-+@";
  std::vector<std::string> names;
  for (const auto part : std::views::split(text, ',')) {
    const std::string name{part.begin(), part.end()};
    if (name.empty() || name.size() > longest ||
        name.find_first_not_of(allowed) != std::string::npos) {
      throw base::UsageError(
          fmt::format("'{}' cannot name a side: give 1 to {} letters, digits, blanks or . _ - + @",
                      name, longest));
    }
    if (std::ranges::find(names, name) != names.end()) {
      throw base::UsageError(fmt::format("'{}' names two sides: give each its own name", name));
    }
    names.push_back(name);
  }
  return names;
}

using Known = std::span<const workloads::Workload>;

/// Returns the value of an option as `parse` reads it; absent if the option is not given.
template <class Parse>
auto read(const CLI::App& command, const std::string& option, Parse parse)
    -> std::optional<decltype(parse(std::string_view{}))> {
  const std::string* const text = value_of(command, option);
  if (text == nullptr) return std::nullopt;
  return with_place(option, *text, parse);
}

int parse_count(std::string_view text) {
  return parse_int(text, 1, std::numeric_limits<int>::max());
}

/// Reads the options that say what to predict: workload, model, element type, scaling, mesh and
/// workload options.
void read_what(const CLI::App& command, Known known, PredictCommand& into) {
  if (const std::string* const name = value_of(command, "--workload")) {
    into.workload = find_workload(*name, "--workload", known).name;
  }
  into.model =
      read(command, "--model", [](std::string_view text) { return workloads::load_model(text); });
  if (into.model) into.model_source = *value_of(command, "--model");
  into.precision = read(command, "--dtype",
                        [](std::string_view text) { return workloads::parse_precision(text); });
  into.scaling = read(command, "--scaling", [](std::string_view text) {
    return parse_choice(text, {workloads::Scaling::strong, workloads::Scaling::weak});
  });
  into.mesh = read(command, "--mesh", parse_mesh).value_or(mesh::Request{});
  into.best = command.count("--best") > 0;
  for (const std::string& text : values_of(command, "--set")) {
    into.settings.push_back(with_place("--set", text, parse_assignment));
  }
}

}  // namespace

std::string_view name(ReportFormat format) {
  constexpr std::array<std::string_view, 5> names{"text", "json", "csv", "markdown", "nccl-tests"};
  return names[static_cast<std::size_t>(format)];
}

std::string_view name(CompareFormat format) {
  constexpr std::array<std::string_view, 5> names{"text", "json", "csv", "junit", "markdown"};
  return names[static_cast<std::size_t>(format)];
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
    report.files.push_back(with_place(files_argument, file, parse_path));
  }
  if (report.files.empty()) refuse("report needs a run file to read", command);
  if (const std::string* const text = value_of(command, "--format")) {
    report.format = with_place("--format", *text, [](std::string_view value) {
      using enum ReportFormat;
      return parse_choice(value, {ReportFormat::text, json, csv, nccl_tests, markdown});
    });
  }
  read_baseline(command, report);
  report.index_only = command.count("--index") > 0;
  read_detail(command, report);
  report.trace = path_of(command, "--trace");
  report.html = path_of(command, "--html");
  if (command.count("--force") > 0) {
    if (report.trace.empty() && report.html.empty()) {
      refuse("--force is about the files that --html and --trace name", command);
    }
    report.if_exists = IfExists::overwrite;
  }
  return report;
}

CompareCommand interpret_compare(const CLI::App& command) {
  CompareCommand compare;
  for (const std::string& side : command.get_option(sides_argument)->results()) {
    compare.sides.push_back(with_place("compare", side, parse_paths));
  }
  if (compare.sides.size() < 2) {
    refuse("compare needs two sides or more, each a run file or several with commas between them",
           command);
  }
  if (const std::string* const text = value_of(command, "--format")) {
    compare.format = with_place("--format", *text, [](std::string_view value) {
      using enum CompareFormat;
      return parse_choice(value, {CompareFormat::text, json, csv, junit, markdown});
    });
  }
  if (const std::string* const text = value_of(command, "--names")) {
    compare.names = with_place("--names", *text, parse_side_names);
    if (compare.names.size() != compare.sides.size()) {
      refuse(fmt::format("--names gives {}, but there are {} sides: name each side",
                         base::counted(compare.names.size(), "name"), compare.sides.size()),
             command);
    }
  }
  read_baseline(command, compare);
  if (const std::string* const text = value_of(command, "--gate")) {
    compare.gate = with_place("--gate", *text, parse_share);
  }
  compare.strict = command.count("--strict") > 0;
  if (compare.strict && !compare.gate) refuse("--strict is about the gate; give --gate", command);
  compare.anyway = command.count("--anyway") > 0;
  compare.html = path_of(command, "--html");
  if (command.count("--force") > 0) {
    if (compare.html.empty()) refuse("--force is about the file that --html names", command);
    compare.if_exists = IfExists::overwrite;
  }
  return compare;
}

std::string_view name(PredictFormat format) {
  constexpr std::array<std::string_view, 3> names{"text", "json", "csv"};
  return names[static_cast<std::size_t>(format)];
}

PredictCommand interpret_predict(const CLI::App& command, Known known) {
  PredictCommand predict;
  const std::string* const source = value_of(command, source_argument);
  if (source == nullptr) {
    refuse(
        "predict needs a run file, or a machine's data sheet: a name (isoscale list systems) or a "
        "file "
        "that ends in .toml",
        command);
  }
  predict.launches = with_place("predict", *source, parse_paths);
  predict.source = predict.launches.front();
  predict.launches.erase(predict.launches.begin());
  if (const auto ranks = read(command, "--ranks", parse_rank_counts)) {
    predict.ranks = *ranks;
  } else {
    refuse("predict needs --ranks, the rank counts to predict, as --ranks 64,256,1024", command);
  }
  read_what(command, known, predict);
  if (const std::string* const network = value_of(command, "--network")) {
    predict.network = *network;
  }
  predict.node_ranks = read(command, "--nodes-of", parse_count);
  predict.each_rank = command.count("--each-rank") > 0;
  predict.baseline = read(command, "--baseline", parse_count);
  const auto format = read(command, "--format", [](std::string_view text) {
    return parse_choice(text, {PredictFormat::text, PredictFormat::json, PredictFormat::csv});
  });
  predict.format = format.value_or(PredictFormat::text);
  predict.html = read(command, "--html", parse_path).value_or(std::filesystem::path{});
  if (command.count("--force") > 0) {
    if (predict.html.empty()) refuse("--force is about the file that --html names", command);
    predict.if_exists = IfExists::overwrite;
  }
  return predict;
}

}  // namespace isoscale::config
