// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "runner/dry_run.hpp"
#include "runner/watch/supervisor.hpp"
#include "settings/run_config.hpp"

/// Runs one launch from its plan to its finished run file; run() is defined in run_points.cpp.
namespace isoscale::runner {

/// The main program passes these to the runner: the supervisor of the launch, and functions from
/// libraries to which the runner's library does not link.
struct Services {
  /// Shows text to the user; called on world rank 0 only.
  std::function<void(const std::string&)> print;
  /// Prints a summary of the finished run file, on world rank 0 only; not called in a quiet run.
  std::function<void(const std::filesystem::path&)> show_file;
  /// Reads a data sheet, the description of a machine, which is given by its name or as a file.
  /// Called on world rank 0 only. Throws base::UsageError.
  std::function<PricedMachine(const std::string&)> priced_machine;
  watch::Supervisor& supervisor;  ///< watches for hangs in this launch
};

/// Collective over the world: makes the plan, measures its points, and writes the run file on world
/// rank 0. With --dry-run it only prints the plan. Throws base::UsageError on every rank if
/// something is refused before the measurement begins.
[[nodiscard]] base::ExitCode run(const settings::RunConfig& asked, const comm::Communicator& world,
                                 const Services& services);

}  // namespace isoscale::runner
