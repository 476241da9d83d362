// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/suites.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/toml_files.hpp"

namespace isoscale::config {

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
  throw base::UsageError(fmt::format("unknown suite {}{}; the suites are {}", base::quoted(name),
                                     base::did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace isoscale::config
