// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/run_data.hpp"

/// The steps before anything is measured: the choice of the executor, and checks of the ranks and
/// machines of a launch.
namespace isoscale::runner {

/// The executor that plays the points of a launch.
struct ChosenExecutor {
  std::unique_ptr<executor::Executor> executor;
  std::string reason;  ///< of --device auto, one clause; "" when the user named the device
};

/// Collective over `world`: returns the executor that --device asks for, the same on every rank.
/// auto takes cuda where all ranks can have it, else host, and says why. Throws base::UsageError on
/// all ranks when what was asked for cannot be had: never a silent other device.
[[nodiscard]] ChosenExecutor choose_executor(const config::RunConfig& config,
                                             const comm::Environment& environment,
                                             const comm::Communicator& world);

/// Describes GPUs of which nothing is known: every type is taken to work.
[[nodiscard]] executor::Description unseen_gpus();

/// Collective over `world`: returns the device that a plan is made for. Like choose_executor, but
/// --device cuda needs no GPU: where there is none, it is made for unseen_gpus().
[[nodiscard]] executor::Description planned_device(const config::RunConfig& config,
                                                   const comm::Environment& environment,
                                                   const comm::Communicator& world);

/// The input of preflight. `executor` is null where the device cannot be had; `device_problem`
/// says why then.
struct PreflightWish {
  const config::RunConfig& config;
  executor::Executor* executor = nullptr;  ///< not owned
  std::optional<std::string> device_problem{};
  std::optional<std::string> device_reason{};    ///< of --device auto: why it is this one
  std::span<const machine::MachineFacts> facts;  ///< by world rank
};

/// Collective over `world`: returns the facts and the results of all checks, on rank 0; empty
/// elsewhere. Takes no rank more than a logarithm of their number of messages. Throws
/// base::UsageError on every rank when --allow names no check.
[[nodiscard]] results::PreflightData preflight(const PreflightWish& wish,
                                               const comm::Communicator& world);

/// Collective over `world`: throws base::UsageError on every rank when rank 0's checks say stop.
/// Warns of everything else that is wrong.
void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world);

/// `isoscale check`: preflight alone, for the device that `config` asks for; where it cannot be
/// had, that is a stop among the others. Like preflight().
[[nodiscard]] results::PreflightData check(const config::RunConfig& config,
                                           const comm::Environment& environment,
                                           const comm::Communicator& world);

}  // namespace isoscale::runner
