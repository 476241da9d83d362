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

/// The steps before the measurement: the executor is chosen, and the ranks and machines of the
/// launch are checked.
namespace isoscale::runner {

/// The executor that plays the points of a launch.
struct ChosenExecutor {
  std::unique_ptr<executor::Executor> executor;
  std::string reason;  ///< why --device auto chose it, a clause; "" if the user named it
};

/// Collective over `world`: returns the executor that --device asks for, the same on every rank.
/// `auto` takes cuda if all ranks can have it, else host, and gives the reason. Throws
/// base::UsageError on all ranks if the device that the user named cannot be had; another device
/// never takes its place silently.
[[nodiscard]] ChosenExecutor choose_executor(const config::RunConfig& config,
                                             const comm::Environment& environment,
                                             const comm::Communicator& world);

/// Describes GPUs about which nothing is known: every type is assumed to work.
[[nodiscard]] executor::Description unseen_gpus();

/// Collective over `world`: returns the device that a plan is made for. It is chosen as by
/// choose_executor, but --device cuda needs no GPU: without one, the plan is for unseen_gpus().
[[nodiscard]] executor::Description planned_device(const config::RunConfig& config,
                                                   const comm::Environment& environment,
                                                   const comm::Communicator& world);

/// The input of preflight. If the device cannot be had, `executor` is null and `device_problem`
/// says why.
struct PreflightWish {
  const config::RunConfig& config;
  executor::Executor* executor = nullptr;  ///< not owned
  std::optional<std::string> device_problem{};
  std::optional<std::string> device_reason{};    ///< why --device auto chose this device
  std::span<const machine::MachineFacts> facts;  ///< by world rank
};

/// Collective over `world`: rank 0 returns the facts and the results of all checks, other ranks
/// nothing. Each rank takes part in a number of messages that grows with the logarithm of the
/// number of ranks. Throws base::UsageError on every rank if --allow names no check.
[[nodiscard]] results::PreflightData preflight(const PreflightWish& wish,
                                               const comm::Communicator& world);

/// Collective over `world`: throws base::UsageError on every rank if a check of rank 0 says stop.
/// Prints warnings for the other problems.
void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world);

/// Runs `isoscale check`: preflight alone, for the device that `config` asks for. If that device
/// cannot be had, this is one stop among the others. Throws as preflight() does.
[[nodiscard]] results::PreflightData check(const config::RunConfig& config,
                                           const comm::Environment& environment,
                                           const comm::Communicator& world);

}  // namespace isoscale::runner
