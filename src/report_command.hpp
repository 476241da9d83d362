// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "config/command_line.hpp"

namespace isoscale {

/// `isoscale report`: reads run files, each launch once, and prints what they say.
[[nodiscard]] base::ExitCode report_command(const config::ReportCommand& command);

}  // namespace isoscale
