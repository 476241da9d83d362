// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string_view>

#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// Reads the data sheet of a machine (analysis/systems/README.md has the keys). Throws
/// base::UsageError with file, line, key and reason for a missing, unknown or impossible number.
[[nodiscard]] simulate::Machine load_system(const std::filesystem::path& file);
/// `origin` names the text in errors.
[[nodiscard]] simulate::Machine parse_system(std::string_view toml, std::string_view origin);

}  // namespace isoscale::analysis
