// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/predict_arguments.hpp"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "config/app.hpp"
#include "config/find_workload.hpp"
#include "config/matched.hpp"
#include "config/values.hpp"

namespace isoscale::config {

std::string_view name(PredictFormat format) {
  constexpr std::array<std::string_view, 3> names{"text", "json", "csv"};
  return names[static_cast<std::size_t>(format)];
}

namespace {

using Known = std::span<const workloads::Workload>;

/// The value of an option as `parse` reads it; absent when the option is not given.
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

/// What is predicted: workload, model, element type, scaling, mesh and options.
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
