// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>

#include "config/command_line.hpp"

namespace isoscale::config {

/// What was asked of the commands that read run files. Both throw base::UsageError.
[[nodiscard]] ReportCommand interpret_report(const CLI::App& command);
[[nodiscard]] CompareCommand interpret_compare(const CLI::App& command);

}  // namespace isoscale::config
