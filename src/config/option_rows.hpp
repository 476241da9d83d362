// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "config/option_table.hpp"

/// The rows of the option table by their heading in --help.
namespace isoscale::config {

[[nodiscard]] std::span<const RunOption> what_options();
[[nodiscard]] std::span<const RunOption> where_options();
[[nodiscard]] std::span<const RunOption> how_long_options();
[[nodiscard]] std::span<const RunOption> looking_options();
[[nodiscard]] std::span<const RunOption> file_options();

}  // namespace isoscale::config
