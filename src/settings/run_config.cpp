// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "settings/run_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "settings/settings_layer.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::settings {

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

/// Returns the table [recorded], which tells how the run was started: its suite and its command
/// line. "" if neither is known.
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

std::string_view name(Device device) {
  constexpr std::array<std::string_view, 3> names{"auto", "cuda", "host"};
  return names[static_cast<std::size_t>(device)];
}

std::string_view name(FillIdle fill) { return fill == FillIdle::idle ? "idle" : "replicas"; }

std::string_view name(Retry retry) { return retry == Retry::hung ? "hung" : "failed"; }

std::string_view name(HostStreams streams) {
  constexpr std::array<std::string_view, 3> names{"auto", "threads", "folded"};
  return names[static_cast<std::size_t>(streams)];
}

std::string_view name(Format format) {
  constexpr std::array<std::string_view, 6> names{"text",     "json",  "csv",
                                                  "markdown", "junit", "nccl-tests"};
  return names[static_cast<std::size_t>(format)];
}

std::string gpu_options_given(const RunConfig& config) {
  std::vector<std::string_view> given;
  if (config.share_gpu == ShareGpu::yes) given.emplace_back("--share-gpu");
  if (config.gpu_bind != automatic_gpu_bind) given.emplace_back("--gpu-bind");
  if (config.graph == Graph::on) given.emplace_back("--graph");
  if (config.nvtx == Nvtx::on) given.emplace_back("--nvtx");
  if (!config.gemm_algorithms.empty()) given.emplace_back("--gemm-algorithms");
  return fmt::format("{}", fmt::join(given, ", "));
}

std::string to_toml(const RunConfig& config) {
  std::string text = write_options(Scope::run, Experiment{}, config) + write_recorded(config);
  for (const Experiment& experiment : config.experiments) {
    text += write_experiment(experiment, config);
  }
  return text;
}

RunConfig from_toml(std::string_view toml, std::string_view origin) {
  return assemble(read_layer(toml, origin), Layer{});
}

RunConfig resumed(const RunConfig& asked, std::string_view toml) {
  RunConfig run = from_toml(toml, asked.resume.string() + ": config");
  run.resume = run.output = asked.resume;
  run.retry = asked.retry;
  run.budget = asked.budget;
  run.allowed = asked.allowed;
  run.verbosity = asked.verbosity;
  return run;
}

}  // namespace isoscale::settings
