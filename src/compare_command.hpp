// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "config/command_line.hpp"

namespace isoscale {

/// `isoscale compare`: the sides' curves, what they differ by and why, and the gate's verdict.
[[nodiscard]] base::ExitCode compare_command(const config::CompareCommand& command);

}  // namespace isoscale
