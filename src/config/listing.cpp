// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/command_line.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "settings/option_table.hpp"
#include "settings/option_values.hpp"
#include "settings/settings_layer.hpp"
#include "units/quantity_text.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::config {
namespace {

std::string list_workloads() {
  std::string text;
  for (const auto& workload : workloads::registry()) {
    text += fmt::format("{:<10} {}\n", workload.name, workload.description);
  }
  return text;
}

std::string list_models() {
  std::string text;
  for (const std::string& name : workloads::model_names()) {
    const workloads::Model model = workloads::load_model(name);
    text += fmt::format("{:<11} {:>18}: {} layers, hidden {}, FFN {}{}, {} heads of {}", name,
                        units::format_count(workloads::parameter_count(model), "parameters"),
                        model.layers, model.hidden, model.ffn, model.gated_mlp ? " gated" : "",
                        model.heads, model.head_size);
    if (model.kv_heads != model.heads) text += fmt::format(" ({} KV)", model.kv_heads);
    text += fmt::format(", sequence {}\n{:11} {}\n", model.sequence, "", model.source);
  }
  return text;
}

std::string list_suites() {
  std::string text;
  for (const std::string_view name : settings::suite_names()) {
    text += fmt::format("{:<10} {}\n", name, settings::load_suite(name).description);
  }
  return text;
}

std::string list_systems() {
  std::string text;
  for (const workloads::Preset& system : workloads::system_presets()) {
    const toml::table sheet = workloads::parse_sheet(system.toml, system.name);
    const auto matrix = sheet["processor"]["matrix"][0];
    const auto capacity = static_cast<std::uint64_t>(sheet["memory"]["capacity"].value_or(0.0));
    text += fmt::format("{:<12} {}: nodes of {} ranks, each with {} and {} in {}\n{:12} {}\n",
                        system.name, sheet["name"].value_or(""),
                        sheet["network"]["node_ranks"].value_or(1),
                        units::format(units::Bytes{capacity}),
                        units::format(units::FlopsPerSecond{matrix["peak"].value_or(0.0)}),
                        matrix["types"][0].value_or(""), "", sheet["source"].value_or(""));
  }
  return text;
}

std::string list_software() {
  std::string text;
  for (const workloads::Preset& profile : workloads::software_presets()) {
    const toml::table table = workloads::parse_toml(profile.toml, profile.name);
    const std::string kernel{table["attention"].value_or("")};
    const auto host = table["host"]["op"].value<double>();
    text += fmt::format(
        "{:<18} {}: {}, {}\n{:18} {}\n", profile.name, table["name"].value_or(""),
        kernel.empty() ? "no fused attention" : fmt::format("attention by the kernel {}", kernel),
        host ? fmt::format("the host takes {} for an op", units::format(units::Seconds{*host}))
             : "no host time",
        "", table["source"].value_or(""));
  }
  return text;
}

std::string list_model_keys() {
  std::string text;
  for (const workloads::ModelKey& key : workloads::model_keys()) {
    text += key_text(key.key, key.fallback.empty() ? "needed" : key.fallback, key.meaning);
  }
  return text;
}

/// Lists the keys of a suite file, an experiment file whose keys are the options of `run`.
std::string list_suite_keys() {
  std::string text = key_text("description", "", "what the suite is for, for people");
  text += key_text("gpu", "", "built-in suites: models, dtype, longest_step and set on GPUs");
  text += key_text("experiment", "",
                   "tables [[experiment]], each with its own values of the keys "
                   "that hold for an experiment");
  for (const settings::RunOption& option : settings::run_options()) {
    const std::string_view of = option.scope == settings::Scope::run ? "of the run: " : "";
    text += key_text(settings::key_of(option), option.default_text,
                     fmt::format("{}{}", of, option.help));
  }
  return text;
}

std::string list_options(const workloads::Workload& workload) {
  std::string text;
  for (const auto& spec : workload.options) {
    std::string fallback = spec.default_value.empty() ? "derived" : std::string{spec.default_value};
    if (!spec.gpu_default.empty()) fallback += fmt::format("; on GPUs {}", spec.gpu_default);
    text += fmt::format("{}={}  [{}]\n    {}\n", spec.key, workloads::accepted(spec), fallback,
                        spec.help);
  }
  return text;
}

}  // namespace

std::string key_text(std::string_view key, std::string_view fallback, std::string_view meaning) {
  return fmt::format("{:<34} {}{}\n", key, meaning,
                     fallback.empty() ? "" : fmt::format(" [{}]", fallback));
}

std::string listing(const ListCommand& command) {
  if (command.what == "workloads") return list_workloads();
  if (command.what == "models") return list_models();
  if (command.what == "suites") return list_suites();
  if (command.what == "systems") return list_systems();
  if (command.what == "software") return list_software();
  if (command.what == "options") {
    return list_options(settings::find_workload(command.of, "list options"));
  }
  if (command.what == "keys" && command.of == "model") return list_model_keys();
  if (command.what == "keys" && command.of == "suite") return list_suite_keys();
  throw std::logic_error("there is no list of " + command.what + " " + command.of);
}

}  // namespace isoscale::config
