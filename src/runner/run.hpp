// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "results/records/run_data.hpp"
#include "runner/dry_run.hpp"
#include "runner/watch/supervisor.hpp"
#include "settings/run_config.hpp"

/// Runs one launch, from its plan to its run file.
namespace isoscale::runner {

/// Functions of the program that the runner's library calls but does not link to.
struct Services {
  /// Shows text to the user; called on world rank 0 only.
  std::function<void(const std::string&)> print;
  /// Prints a summary of the finished run file; called on world rank 0 only, and not for a quiet
  /// run.
  std::function<void(const std::filesystem::path&)> show_file;
  /// Reads a data sheet, given by name or file; called on world rank 0 only. Throws
  /// base::UsageError.
  std::function<PricedMachine(const std::string&)> priced_machine;
  watch::Supervisor& supervisor;  ///< the supervisor of the launch
};

/// Collective over the world: plans and measures a launch, and writes its run file on world rank 0.
/// Throws base::UsageError on every rank for anything that is refused before the measurement
/// begins.
[[nodiscard]] base::ExitCode run(const settings::RunConfig& asked,
                                 const comm::Environment& environment,
                                 const comm::Communicator& world, const Services& services);

}  // namespace isoscale::runner
