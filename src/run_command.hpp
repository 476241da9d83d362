// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "config/run_config.hpp"

namespace isoscale {

/// `isoscale run`. Two files define it: one for builds with MPI, one for builds without, which can
/// only say so. Throws base::Error.
[[nodiscard]] base::ExitCode run_command(const config::RunConfig& config, int argc, char** argv);

}  // namespace isoscale
