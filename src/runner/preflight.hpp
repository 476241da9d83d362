// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/records/run_data.hpp"
#include "settings/run_config.hpp"

/// The steps before the measurement: choosing the executor, and checking the ranks and machines of
/// the launch.
namespace isoscale::runner {

/// The executor that measures all points of a launch.
struct ChosenExecutor {
  std::unique_ptr<executor::Executor> executor;
  std::optional<std::string> reason;  ///< why --device auto chose it; absent if the user named it
};

/// Collective over `world`: returns the executor for --device, the same on every rank. `auto` means
/// cuda if all ranks can use it, else host; the result gives the reason. Throws base::UsageError on
/// all ranks if the user named a device that cannot be used, so that no other device replaces it
/// silently.
[[nodiscard]] ChosenExecutor choose_executor(const settings::RunConfig& config,
                                             const comm::Environment& environment,
                                             const comm::Communicator& world);

/// Returns the description of GPUs about which nothing is known. It assumes that every type works.
[[nodiscard]] executor::Description unseen_gpus();

/// Collective over `world`: returns the device that a plan is made for. It is chosen as by
/// choose_executor(), except that --device cuda needs no GPU: without GPUs the plan is made for
/// unseen_gpus().
[[nodiscard]] executor::Description planned_device(const settings::RunConfig& config,
                                                   const comm::Environment& environment,
                                                   const comm::Communicator& world);

/// The input of preflight(). If the device cannot be used, `executor` is null and `device_problem`
/// says why.
struct PreflightWish {
  const settings::RunConfig& config;
  executor::Executor* executor = nullptr;  ///< not owned
  std::optional<std::string> device_problem{};
  std::optional<std::string> device_reason{};    ///< see ChosenExecutor
  std::span<const machine::MachineFacts> facts;  ///< by world rank
};

/// Collective over `world`: collects the facts of all ranks and checks them. Rank 0 returns the
/// facts and the results of all checks; the result of other ranks is empty. The number of messages
/// per rank grows with the logarithm of the number of ranks. Throws base::UsageError on every rank
/// if --allow names no check.
[[nodiscard]] results::PreflightData preflight(const PreflightWish& wish,
                                               const comm::Communicator& world);

/// Collective over `world`: prints warnings for the problems that rank 0 found, and throws
/// base::UsageError on every rank if one of them is a stop.
void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world);

/// Runs `isoscale check`: preflight alone, for the device that `config` asks for. If this device
/// cannot be used, one of the results is a stop that says so. Throws as preflight() does.
[[nodiscard]] results::PreflightData check(const settings::RunConfig& config,
                                           const comm::Environment& environment,
                                           const comm::Communicator& world);

}  // namespace isoscale::runner
