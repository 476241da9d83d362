// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "runner/watch/roll_call.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner {

/// Writes what a roll call of `ranks` found as JSON beside the run file, "run.h5.hang.json", over
/// an earlier one; returns its path. Where fewer than half answered, who is cut off may be the
/// leader: "run.h5.hang-rank2.json" then, so that it does not overwrite what the others found.
/// Keys: `created`, `timeout` (seconds), `sentence`, `first_op`, `waiting`, `absent`, `silent`,
/// `culprits`
/// (`rank`, `what`) and `ranks`, what each that answered was at.
/// Throws base::Error.
std::filesystem::path write_hang_file(const std::filesystem::path& run_file,
                                      const RollCall::Result& found, int ranks,
                                      units::Seconds timeout);

}  // namespace isoscale::runner
