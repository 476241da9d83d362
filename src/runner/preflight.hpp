// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/run_data.hpp"

/// Looking at the ranks and machines of a launch before anything is measured.
namespace isoscale::runner {

/// What preflight is given. `executor` is null where the device cannot be had; `device_problem`
/// says why then.
struct PreflightWish {
  const config::RunConfig& config;
  executor::Executor* executor = nullptr;  ///< not owned
  std::optional<std::string> device_problem{};
  std::optional<std::string> device_reason{};    ///< of --device auto: why it is this one
  std::span<const machine::MachineFacts> facts;  ///< by world rank
};

/// Collective over `world`: what was found and what is to be said of it, on rank 0; empty
/// elsewhere. Takes no rank more than a logarithm of their number of messages. Throws
/// base::UsageError on every rank when --allow names no check.
[[nodiscard]] results::PreflightData preflight(const PreflightWish& wish,
                                               const comm::Communicator& world);

/// Collective over `world`: throws base::UsageError on every rank when rank 0's checks say stop.
/// What else is wrong is warned of.
void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world);

/// `isoscale check`: preflight alone, for the device that `config` asks for; where it cannot be
/// had, that is a stop among the others. Like preflight().
[[nodiscard]] results::PreflightData check(const config::RunConfig& config,
                                           const comm::Environment& environment,
                                           const comm::Communicator& world);

}  // namespace isoscale::runner
