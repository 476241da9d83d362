// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "runner/watch/roll_call.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner {

/// Which hang of which launch.
struct HangOf {
  std::filesystem::path run_file{};
  int ranks = 1;   ///< of the launch
  int number = 1;  ///< of its hangs
  units::Seconds timeout{};
};

/// Writes what a roll call found as JSON beside the run file, "run.h5.hang.json", the second of a
/// launch "run.h5.hang-2.json", over that of an earlier launch; returns its path. Where fewer than
/// half answered, who is cut off may be the leader: "run.h5.hang-rank2.json" then, so that it does
/// not overwrite what the others found. Keys: `created`, `timeout` (seconds), `sentence`,
/// `first_op`, `waiting`, `absent`, `silent`, `culprits` (`rank`, `what`) and `ranks`, what each
/// that answered was at; `more` of a call counts those behind it that may have been made too.
/// Throws base::Error.
std::filesystem::path write_hang_file(const HangOf& which, const RollCall::Result& found);

}  // namespace isoscale::runner
