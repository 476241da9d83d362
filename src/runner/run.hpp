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

/// One launch, from plan to file.
namespace isoscale::runner {

/// Functions that the runner is lent by layers that it does not see.
struct Services {
  /// Shows text to the user; called on world rank 0 only.
  std::function<void(const std::string&)> print;
  /// Says what the finished file holds; called on world rank 0 only, and not where the run is
  /// quiet.
  std::function<void(const std::filesystem::path&)> show_file{};
  /// Reads a data sheet, by name or file; called on world rank 0 only. Throws base::UsageError.
  std::function<PricedMachine(const std::string&)> priced_machine{};
  Supervisor* supervisor = nullptr;  ///< of the launch; without one nothing is watched
};

struct Outcome {
  base::ExitCode exit_code = base::ExitCode::done;
};

/// Collective over the world. Throws base::UsageError, on every rank alike, for what is refused
/// before anything is measured. The file is written by world rank 0.
[[nodiscard]] Outcome run(const config::RunConfig& asked, const comm::Environment& environment,
                          const comm::Communicator& world, const Services& services);

}  // namespace isoscale::runner
