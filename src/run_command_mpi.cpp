// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <span>

#include "analysis/statistics.hpp"
#include "base/log.hpp"
#include "comm/world.hpp"
#include "run_command.hpp"
#include "runner/run.hpp"
#include "system/facts.hpp"

namespace isoscale {
namespace {

std::optional<double> half_width(std::span<const double> samples) {
  const std::optional<analysis::Estimate> estimate = analysis::estimate(samples);
  return estimate ? analysis::relative_half_width(*estimate) : std::nullopt;
}

}  // namespace

base::ExitCode run_command(const config::RunConfig& config, int argc, char** argv) {
  comm::Environment environment{&argc, &argv};
  const int rank = comm::Communicator::world().rank();
  try {
    const runner::Outcome outcome = runner::run(
        config, environment, {.half_width = half_width, .print = [](const std::string& text) {
                                fmt::print("{}", text);
                                std::fflush(stdout);
                              }});
    if (rank == 0 && !outcome.file.empty() && config.verbosity == config::Verbosity::normal) {
      fmt::print("wrote {0}\nread it with: isoscale report {0}\n", outcome.file.string());
    }
    return outcome.exit_code;
  } catch (const base::UsageError& error) {
    // Every rank has the same refusal in hand: one speaks, all leave in order.
    if (rank == 0 && system::speaks_for_launch(system::process_environment())) {
      base::warn(fmt::format("isoscale: {}", error.what()));
    }
    return error.exit_code();
  }
}

}  // namespace isoscale
