// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "config/run_config.hpp"

namespace isoscale {

// Two files define these: one for builds with MPI, one for builds without, which can only say so.

/// `isoscale run`. Throws base::Error.
[[nodiscard]] base::ExitCode run_command(const config::RunConfig& config, int argc, char** argv);
/// `isoscale check`. Throws base::Error.
[[nodiscard]] base::ExitCode check_command(const config::CheckCommand& command, int argc,
                                           char** argv);

}  // namespace isoscale
