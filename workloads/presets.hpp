// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

namespace isoscale::workloads {

/// A TOML file of the source tree, built into the library so that the program can be moved.
struct Preset {
  std::string_view name;  ///< of the file, without .toml
  std::string_view toml;
};

[[nodiscard]] std::span<const Preset> model_presets();   ///< models/*.toml, by name
[[nodiscard]] std::span<const Preset> suite_presets();   ///< suites/*.toml, by name
[[nodiscard]] std::span<const Preset> system_presets();  ///< analysis/systems/*.toml, by name

}  // namespace isoscale::workloads
