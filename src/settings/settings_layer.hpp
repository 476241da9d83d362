// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/option_table.hpp"
#include "settings/run_config.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::settings {

// A layer holds the settings for a run, as text, from one place: the command line, an experiment
// file or a suite. Several layers are combined into one RunConfig.

/// A value as text, and the place where it was given: "--model", "exp.toml:3: model".
struct Given {
  std::string text;
  std::string place;
};

/// The options given for one experiment, or for all experiments of a layer.
struct Choices {
  std::map<std::string, Given, std::less<>> values;   ///< options of `isoscale run`, by long name
  std::map<std::string, Given, std::less<>> options;  ///< options of workloads (--set), by key
  /// The model, if a TOML table describes it. `values` then has the model's name, under "model".
  std::optional<workloads::Model> model;

  [[nodiscard]] const Given* find(std::string_view option) const;
};

struct Layer {
  Choices shared;
  std::vector<Choices> experiments;
  std::string description;     ///< description of a suite, for people
  std::optional<GpuWork> gpu;  ///< the suite's models and settings for GPUs
  /// The suite that an earlier run recorded in its run file; "" = none.
  std::string recorded_suite;
  std::string recorded_command_line;
};

/// Stores the value of an option after checking it. If `choices` already has a value for the
/// option, an option of arity repeated_list adds to this value. Throws base::UsageError, which
/// names the place, if the value is not valid or must not be given twice.
void give(Choices& choices, const RunOption& option, std::string_view text,
          const std::string& place);

/// Reads the text of an experiment file. `origin` is the file's name. Throws base::UsageError,
/// whose message begins with the place of the mistake: "exp.toml:3: ".
[[nodiscard]] Layer read_layer(std::string_view toml, std::string_view origin);

/// Combines the file and the command line into one configuration; the command line overrides the
/// file. If neither chooses workloads, the quick suite is run. Throws base::UsageError for options
/// that conflict or are unknown.
[[nodiscard]] RunConfig assemble(const Layer& file, const Layer& command_line);

/// Returns the configuration that a layer's shared settings give, without experiments. Throws
/// base::UsageError for options that conflict.
[[nodiscard]] RunConfig without_experiments(const Layer& layer);

/// Returns the names of the built-in suites.
[[nodiscard]] std::vector<std::string_view> suite_names();
/// Reads a built-in suite. Throws base::UsageError with the nearest name if there is none.
[[nodiscard]] Layer load_suite(std::string_view name);

}  // namespace isoscale::settings
