// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "settings/settings_layer.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "settings/option_values.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::settings {

namespace {

/// Throws base::UsageError unless `text` is a valid value of `option`. A value is checked even if
/// another layer, such as the command line, overrides it.
void check_value(const RunOption& option, std::string_view text, const std::string& place) {
  Experiment experiment;
  RunConfig run;
  with_place(place, text, [&](std::string_view sane) { option.apply(sane, experiment, run); });
}

/// An entry of a TOML file. Every error message about it begins with its place: file, line and key.
struct Entry {
  std::string_view key;
  const toml::node& node;
  std::string_view origin;

  [[nodiscard]] std::string place() const {
    return fmt::format("{}: {}", workloads::place_of(origin, node.source()), base::printable(key));
  }
  [[noreturn]] void refuse(std::string_view why) const {
    throw base::usage_error("{} {}", place(), why);
  }
};

/// Returns a single value of a TOML file as one would type it on the command line.
std::string to_text(const Entry& entry) {
  if (const auto* const text = entry.node.as_string()) return text->get();
  if (const auto* const number = entry.node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* const number = entry.node.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* const truth = entry.node.as_boolean()) return truth->get() ? "true" : "false";
  entry.refuse("must be one value: a string, a number, true or false");
}

/// Joins the items of an array with commas: ["dp", "tp"] becomes "dp,tp".
std::string list_to_text(const Entry& entry, const toml::array& array) {
  std::string text;
  for (const toml::node& node : array) {
    const std::string item = to_text({entry.key, node, entry.origin});
    if (item.empty() || item.find(',') != std::string::npos) {
      entry.refuse(fmt::format("holds {}; write one value per item", base::quoted(item)));
    }
    if (!text.empty()) text += ',';
    text += item;
  }
  if (text.empty()) entry.refuse("is an empty list; name at least one, or leave the key out");
  return text;
}

/// Joins the entries of a table with commas: { dp = 2, tp = 2 } becomes "dp=2,tp=2".
std::string mesh_to_text(const Entry& entry, const toml::table& table) {
  std::string text;
  for (const auto& [key, node] : table) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.str(),
                        to_text({entry.key, node, entry.origin}));
  }
  if (text.empty()) entry.refuse("is an empty table; name at least one axis, or leave the key out");
  return text;
}

/// Stores a workload option. Its key and value are checked later, when the workloads are known.
/// Throws base::UsageError if the key is given twice.
void give_workload_option(Choices& choices, const std::string& key, std::string_view value,
                          const std::string& place) {
  const bool is_new =
      choices.options.emplace(key, Given{.text = std::string{value}, .place = place}).second;
  if (is_new) return;
  throw base::usage_error("{}: {} is given twice; give each key once", place, base::quoted(key));
}

void read_workload_options(Choices& choices, const Entry& entry) {
  const toml::table* const table = entry.node.as_table();
  if (table == nullptr) entry.refuse("must be a table, such as { bucket = \"10MiB\" }");
  for (const auto& [key, node] : *table) {
    const Entry option{key.str(), node, entry.origin};
    const std::string value = to_text(option);
    give_workload_option(choices, std::string{key.str()}, value, option.place());
  }
}

void read_option(Choices& choices, const RunOption& option, const Entry& entry) {
  const toml::array* const array = entry.node.as_array();
  const toml::table* const table = entry.node.as_table();
  if (option.arity == Arity::repeated) {
    read_workload_options(choices, entry);
  } else if (option.name == "model" && table != nullptr) {
    choices.model = workloads::read_model(*table, entry.origin);
    choices.values.emplace(option.name, Given{.text = choices.model->name, .place = entry.place()});
  } else if (option.name == "mesh" && table != nullptr) {
    give(choices, option, mesh_to_text(entry, *table), entry.place());
  } else if ((option.arity == Arity::list || option.arity == Arity::repeated_list) &&
             array != nullptr) {
    give(choices, option, list_to_text(entry, *array), entry.place());
  } else if (option.arity == Arity::flag && !entry.node.is_boolean()) {
    entry.refuse("must be true or false");
  } else {
    give(choices, option, to_text(entry), entry.place());
  }
}

const RunOption* find_by_key(std::string_view key) {
  const auto found = std::ranges::find(run_options(), key, key_of);
  return found == run_options().end() ? nullptr : &*found;
}

/// Throws base::UsageError for an unknown key. `names` are the valid keys that are not options of a
/// run; the message also lists the options.
[[noreturn]] void refuse_key(const toml::key& key, std::string_view origin, Scope scope,
                             std::vector<std::string> names) {
  for (const RunOption& option : run_options()) {
    if (scope == Scope::run || option.scope == Scope::experiment) names.push_back(key_of(option));
  }
  const std::vector<std::string_view> candidates{names.begin(), names.end()};
  throw base::usage_error("{}: unknown key {}{}; {} may have {}",
                          workloads::place_of(origin, key.source()), base::quoted(key.str()),
                          base::did_you_mean(key.str(), candidates),
                          scope == Scope::run ? "a run" : "an experiment", fmt::join(names, ", "));
}

Choices read_experiment(const toml::node& node, std::string_view origin) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) Entry{"experiment", node, origin}.refuse("must be [[experiment]] tables");
  Choices choices;
  for (const auto& [key, value] : *table) {
    const RunOption* const option = find_by_key(key.str());
    if (option != nullptr && option->scope == Scope::run) {
      Entry{key.str(), value, origin}.refuse(
          "holds for the whole run: write it above the first [[experiment]]");
    }
    if (option == nullptr) refuse_key(key, origin, Scope::experiment, {});
    read_option(choices, *option, {key.str(), value, origin});
  }
  if (choices.find("workload") == nullptr) {
    Entry{"experiment", node, origin}.refuse("names no workload: add workload = \"NAME\"");
  }
  return choices;
}

void read_experiments(Layer& layer, const Entry& entry) {
  const toml::array* const array = entry.node.as_array();
  if (array == nullptr || array->empty()) entry.refuse("must be [[experiment]] tables");
  for (const toml::node& node : *array) {
    layer.experiments.push_back(read_experiment(node, entry.origin));
  }
}

GpuWork read_gpu(const Entry& entry) {
  const toml::table* const table = entry.node.as_table();
  if (table == nullptr) entry.refuse("must be a table");
  GpuWork work;
  for (const auto& [key, node] : *table) {
    const Entry item{key.str(), node, entry.origin};
    const toml::array* const array = node.as_array();
    if (key.str() == "models" && array != nullptr) {
      for (const std::string& name : parse_names(list_to_text(item, *array))) {
        work.models.push_back(workloads::load_model(name));
      }
    } else if (key.str() == "dtype") {
      work.precision = program::parse_precision(to_text(item));
    } else if (key.str() == "longest_step") {
      work.longest_step = parse_time_limit(to_text(item));
    } else if (key.str() == "set") {
      Choices choices;
      read_workload_options(choices, item);
      for (const auto& [option, given] : choices.options) work.options[option] = given.text;
    } else {
      item.refuse("is unknown; work for GPUs has models, dtype, longest_step and set");
    }
  }
  if (work.models.empty()) entry.refuse("names no models");
  return work;
}

void read_recorded(Layer& layer, const Entry& entry) {
  const toml::table* const table = entry.node.as_table();
  if (table == nullptr) entry.refuse("must be a table");
  for (const auto& [key, node] : *table) {
    const Entry item{key.str(), node, entry.origin};
    const auto* const text = node.as_string();
    if (text == nullptr) item.refuse("must be a string");
    if (!base::is_plain(text->get())) item.refuse("holds a control character");
    if (key.str() == "suite") {
      layer.recorded_suite = text->get();
    } else if (key.str() == "command_line") {
      layer.recorded_command_line = text->get();
    } else {
      item.refuse("is unknown; recorded are suite and command_line");
    }
  }
}

}  // namespace

const Given* Choices::find(std::string_view option) const {
  const auto found = values.find(option);
  return found == values.end() ? nullptr : &found->second;
}

void give(Choices& choices, const RunOption& option, std::string_view text,
          const std::string& place) {
  const auto earlier = choices.values.find(option.name);
  if (option.arity == Arity::repeated_list && earlier != choices.values.end()) {
    const std::string all = fmt::format("{},{}", earlier->second.text, text);
    check_value(option, all, place);
    earlier->second.text = all;
    return;
  }
  check_value(option, text, place);
  if (option.arity == Arity::repeated) {
    const auto [key, value] = parse_assignment(text);
    give_workload_option(choices, key, value, place);
    return;
  }
  const auto [at, is_new] =
      choices.values.emplace(option.name, Given{.text = std::string{text}, .place = place});
  if (is_new) return;
  throw base::usage_error("{}: given twice, as {} and as {}; give it once", place,
                          base::quoted(at->second.text), base::quoted(text));
}

Layer read_layer(std::string_view toml, std::string_view origin) {
  const toml::table table = workloads::parse_toml(toml, origin);
  Layer layer;
  for (const auto& [key, node] : table) {
    const Entry entry{key.str(), node, origin};
    const RunOption* const option = find_by_key(key.str());
    if (option != nullptr) {
      read_option(layer.shared, *option, entry);
    } else if (key.str() == "experiment") {
      read_experiments(layer, entry);
    } else if (key.str() == "gpu") {
      layer.gpu = read_gpu(entry);
    } else if (key.str() == "recorded") {
      read_recorded(layer, entry);
    } else if (key.str() == "description") {
      layer.description = to_text(entry);
    } else {
      refuse_key(key, origin, Scope::run, {"description", "experiment"});
    }
  }
  return layer;
}

std::vector<std::string_view> suite_names() {
  std::vector<std::string_view> names;
  for (const workloads::Preset& preset : workloads::suite_presets()) names.push_back(preset.name);
  return names;
}

Layer load_suite(std::string_view name) {
  for (const workloads::Preset& preset : workloads::suite_presets()) {
    if (preset.name == name) {
      return read_layer(preset.toml, fmt::format("suites/{}.toml", preset.name));
    }
  }
  const auto names = suite_names();
  throw base::usage_error("unknown suite {}{}; the suites are {}", base::quoted(name),
                          base::did_you_mean(name, names), fmt::join(names, ", "));
}

}  // namespace isoscale::settings
