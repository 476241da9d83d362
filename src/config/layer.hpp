// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_table.hpp"
#include "config/run_config.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::config {

// A layer is what one place (the command line, an experiment file, a suite) says about a run, as
// given. Layers become one RunConfig.

/// A value as text, and where it stands: "--model", "exp.toml:3: model".
struct Given {
  std::string text;
  std::string place;
};

/// The options that one experiment, or a layer for all of its experiments, gives.
struct Choices {
  std::map<std::string, Given, std::less<>> values;   ///< by long name of the option
  std::map<std::string, Given, std::less<>> options;  ///< of the workloads, by key
  std::optional<workloads::Model> model;              ///< a model spelled out; values has its place

  [[nodiscard]] const Given* find(std::string_view option) const;
};

struct Layer {
  Choices shared;
  std::vector<Choices> experiments;
  std::string description;     ///< for people; of suites
  std::optional<GpuWork> gpu;  ///< of suites
  std::string recorded_suite;  ///< what the echo of an earlier run says of itself
  std::string recorded_command_line;
};

/// Stores a value after it has been checked. Throws base::UsageError that names the place: when the
/// value has no meaning, or the option has one in `choices` already.
void give(Choices& choices, const RunOption& option, std::string_view text,
          const std::string& place);

/// An experiment file. Throws base::UsageError "ORIGIN:LINE: KEY: ...".
[[nodiscard]] Layer read_layer(std::string_view toml, std::string_view origin);

/// One configuration of what the file says and the command line says over it; where neither chooses
/// workloads, of the quick suite. Throws base::UsageError for what conflicts or is unknown.
[[nodiscard]] RunConfig assemble(const Layer& file, const Layer& command_line,
                                 std::span<const workloads::Workload> known);

/// The settings of a layer besides what is measured. Throws base::UsageError for what conflicts.
[[nodiscard]] RunConfig without_experiments(const Layer& layer);

/// Names of the built-in suites.
[[nodiscard]] std::vector<std::string_view> suite_names();
/// Throws base::UsageError with the nearest name.
[[nodiscard]] Layer load_suite(std::string_view name);

}  // namespace isoscale::config
