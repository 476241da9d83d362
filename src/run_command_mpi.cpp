// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <span>
#include <string>

#include "analysis/calibration/calibrate.hpp"
#include "analysis/statistics/change_point.hpp"
#include "analysis/statistics/looks.hpp"
#include "analysis/statistics/statistics.hpp"
#include "base/log.hpp"
#include "comm/world.hpp"
#include "run_command.hpp"
#include "runner/run.hpp"
#include "system/facts.hpp"

namespace isoscale {
namespace {

std::optional<double> half_width(std::span<const double> samples, double confidence) {
  const std::optional<analysis::Estimate> estimate = analysis::estimate(samples, confidence);
  return estimate ? analysis::relative_half_width(*estimate) : std::nullopt;
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) base::warn("standard output cannot be written");
}

}  // namespace

base::ExitCode run_command(const config::RunConfig& config, int argc, char** argv) {
  // Looked at before MPI starts: an MPI that finds itself alone sets a launcher's variables itself.
  const bool speaks = system::speaks_for_launch(system::process_environment());
  const auto alone = system::singleton_problem(1, system::process_environment());
  const comm::Environment environment{&argc, &argv};
  const comm::Communicator world = comm::Communicator::world();
  // Every rank has the same refusal in hand: one speaks, all leave in order.
  const auto leave_together = [&](const base::Error& error) {
    if (world.rank() == 0 && speaks) base::warn(fmt::format("isoscale: {}", error.what()));
    return error.exit_code();
  };
  try {
    if (world.size() == 1 && alone) throw base::UsageError(*alone);
    const runner::Outcome outcome = runner::run(config, environment, world,
                                                {.half_width = half_width,
                                                 .nominal_confidence = analysis::nominal_confidence,
                                                 .last_change = analysis::last_change,
                                                 .calibrate = analysis::calibrate,
                                                 .print = print});
    if (world.rank() == 0 && !outcome.file.empty() &&
        config.verbosity == config::Verbosity::normal) {
      print(fmt::format("wrote {0}\nread it with: isoscale report {0}\n", outcome.file.string()));
    }
    return outcome.exit_code;
  } catch (const base::UsageError& error) {
    return leave_together(error);
  } catch (const base::AgreedError& error) {
    return leave_together(error);
  } catch (const std::exception& error) {
    if (world.size() == 1) throw;
    base::warn(fmt::format("isoscale: rank {}: {}; ending the job", world.rank(), error.what()));
    comm::Environment::abort_job(static_cast<int>(base::ExitCode::failed));
  }
}

}  // namespace isoscale
