// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "results/run_data.hpp"
#include "runner/dry_run.hpp"
#include "runner/watch/supervisor.hpp"

/// Runs one launch, from the plan to the file.
namespace isoscale::runner {

/// Functions of higher layers that the runner calls without depending on them.
struct Services {
  /// Shows text to the user; called on world rank 0 only.
  std::function<void(const std::string&)> print;
  /// Shows what the finished file holds; called on world rank 0 only, and not if the run is quiet.
  std::function<void(const std::filesystem::path&)> show_file{};
  /// Reads a data sheet, given by name or file; called on world rank 0 only. Throws
  /// base::UsageError.
  std::function<PricedMachine(const std::string&)> priced_machine{};
  Supervisor* supervisor = nullptr;  ///< of the launch; without one nothing is watched
};

struct Outcome {
  base::ExitCode exit_code = base::ExitCode::done;
};

/// Collective over the world. Throws base::UsageError, on every rank alike, for anything that is
/// refused before the measurement begins. World rank 0 writes the file.
[[nodiscard]] Outcome run(const config::RunConfig& asked, const comm::Environment& environment,
                          const comm::Communicator& world, const Services& services);

}  // namespace isoscale::runner
