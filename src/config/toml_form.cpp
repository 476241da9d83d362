// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/toml_form.hpp"

#include <fmt/format.h>

#include "config/layer.hpp"
#include "workloads/model.hpp"
#include "workloads/toml_files.hpp"

namespace isoscale::config {
namespace {

std::string write_options(Scope scope, const Experiment& experiment, const RunConfig& run) {
  std::string text;
  for (const RunOption& option : run_options()) {
    if (option.scope != scope) continue;
    const std::string value = option.write(experiment, run);
    if (!value.empty()) text += fmt::format("{} = {}\n", key_of(option), value);
  }
  return text;
}

/// What the echo says beside options: where the run came from.
std::string write_recorded(const RunConfig& run) {
  std::string text;
  if (!run.suite.empty()) text += fmt::format("suite = {}\n", workloads::toml_string(run.suite));
  if (!run.command_line.empty()) {
    text += fmt::format("command_line = {}\n", workloads::toml_string(run.command_line));
  }
  return text.empty() ? "" : "\n[recorded]\n" + text;
}

std::string write_experiment(const Experiment& experiment, const RunConfig& run) {
  const std::string options = write_options(Scope::experiment, experiment, run);
  std::string text = "\n[[experiment]]\n" + options;
  const RunOption& model = *find_option("model");
  if (model.write(experiment, run).empty()) {
    text += "[experiment.model]\n" + workloads::to_toml(experiment.base.model);
  }
  return text;
}

}  // namespace

std::string to_toml(const RunConfig& config) {
  std::string text = write_options(Scope::run, Experiment{}, config) + write_recorded(config);
  for (const Experiment& experiment : config.experiments) {
    text += write_experiment(experiment, config);
  }
  return text;
}

RunConfig from_toml(std::string_view toml, std::string_view origin,
                    std::span<const workloads::Workload> known) {
  return assemble(read_layer(toml, origin), Layer{}, known);
}

}  // namespace isoscale::config
