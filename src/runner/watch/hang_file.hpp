// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "runner/watch/roll_call.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner {

/// Writes what a roll call found as JSON beside the run file, "run.h5.hang.json", over an earlier
/// one; returns its path. Keys: `created`, `timeout` (seconds), `sentence`, `first_op`, `waiting`,
/// `absent`, `silent`, `culprits` (`rank`, `what`) and `ranks`, what each that answered was at.
/// Throws base::Error.
std::filesystem::path write_hang_file(const std::filesystem::path& run_file,
                                      const RollCall::Result& found, units::Seconds timeout);

}  // namespace isoscale::runner
