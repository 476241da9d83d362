// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "config/gpu_bind.hpp"
#include "config/values.hpp"
#include "workloads/toml_files.hpp"

namespace isoscale::config {

using workloads::toml_string;

bool is_preset(const workloads::Model& model) {
  const auto has_name = [&](const workloads::Preset& preset) { return preset.name == model.name; };
  return std::ranges::any_of(workloads::model_presets(), has_name) &&
         workloads::load_model(model.name) == model;
}

std::string write_options(const workloads::Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, toml_string(value));
  }
  return text.empty() ? "" : fmt::format("{{ {} }}", text);
}

void apply_ranks(std::string_view text, RunConfig& run) {
  run.rank_counts = text == "all" ? RankCounts::every : RankCounts::doubling;
  run.ranks = text == "all" ? std::vector<int>{} : parse_rank_counts(text);
}

std::string write_ranks(const RunConfig& run) {
  if (!run.ranks.empty()) return fmt::format("[{}]", fmt::join(run.ranks, ", "));
  return run.rank_counts == RankCounts::every ? toml_string("all") : "";
}

void apply_gpu_bind(std::string_view text, RunConfig& run) {
  if (text != automatic_gpu_bind) (void)parse_gpu_bind(text);
  run.gpu_bind = text;
}

std::string write_gpu_bind(const RunConfig& run) {
  return run.gpu_bind == automatic_gpu_bind ? "" : toml_string(run.gpu_bind);
}

std::string write_names(const std::vector<std::string>& names) {
  return names.empty() ? "" : toml_string(fmt::format("{}", fmt::join(names, ",")));
}

std::string write_path(const std::filesystem::path& path) {
  return path.empty() ? "" : toml_string(path.string());
}

std::string write_time(const std::optional<units::Seconds>& time) {
  return time ? toml_string(fmt::format("{}s", time->value())) : "";
}

std::string write_flag(bool set) { return set ? "true" : ""; }

}  // namespace isoscale::config
