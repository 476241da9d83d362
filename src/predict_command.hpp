// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "config/command_line.hpp"

namespace isoscale {

/// `isoscale predict`: the curve at rank counts that nobody measured, from a run or a data sheet.
[[nodiscard]] base::ExitCode predict_command(const config::PredictCommand& command);

}  // namespace isoscale
