// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/command_line.hpp"

namespace isoscale::config {

/// `arguments` with "--detail=all" for a --detail that no section follows: the end, an option, or a
/// file, which has a dot or a slash in its name.
[[nodiscard]] std::vector<std::string> with_all_detail(std::span<const std::string> arguments);

/// What was asked of the commands that read run files. Both throw base::UsageError.
[[nodiscard]] ReportCommand interpret_report(const CLI::App& command);
[[nodiscard]] CompareCommand interpret_compare(const CLI::App& command);

}  // namespace isoscale::config
