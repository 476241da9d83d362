// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"

namespace isoscale::runner {

/// What plays the points of a launch.
struct ChosenExecutor {
  std::unique_ptr<executor::Executor> executor;
  std::string reason;  ///< of --device auto, one clause; "" when the user named the device
};

/// Collective over `world`: the executor that --device asks for, the same on every rank. auto takes
/// cuda where all ranks can have it, else host, and says why. Throws base::UsageError on all ranks
/// when what was asked for cannot be had: never a silent other device.
[[nodiscard]] ChosenExecutor choose_executor(const config::RunConfig& config,
                                             const comm::Environment& environment,
                                             const comm::Communicator& world);

/// GPUs of which nothing is known: every type is taken to work.
[[nodiscard]] executor::Description unseen_gpus();

/// Collective over `world`: what a plan is made for. Like choose_executor, but --device cuda needs
/// no GPU: where there is none, it is made for unseen_gpus().
[[nodiscard]] executor::Description planned_device(const config::RunConfig& config,
                                                   const comm::Environment& environment,
                                                   const comm::Communicator& world);

}  // namespace isoscale::runner
