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

/// Takes the steps that precede the measurement: chooses the executor, and checks the ranks and the
/// machines of the launch.
namespace isoscale::runner {

/// The executor that measures all points of a launch.
struct ChosenExecutor {
  std::unique_ptr<executor::Executor> executor;
  /// The reason why --device auto chose it; absent if the user named the device.
  std::optional<std::string> reason;
};

/// Collective over `world`: returns the executor for --device, of the same kind on every rank. With
/// `auto` this is cuda if all ranks can use it, else host, and the result has the reason. Throws
/// base::UsageError on all ranks if the user named a device that cannot be used: no other device is
/// used silently. Also throws if options or injections were given that do not fit the device.
[[nodiscard]] ChosenExecutor choose_executor(const settings::RunConfig& config,
                                             const comm::Communicator& world);

/// Returns a description for GPUs that were not examined. It says that all element types work.
[[nodiscard]] executor::Description unseen_gpus();

/// Collective over `world`: returns the device for which a dry run makes its plan. It is the device
/// that choose_executor() would choose, except that --device cuda is possible without GPUs; the
/// plan is then made for unseen_gpus().
[[nodiscard]] executor::Description planned_device(const settings::RunConfig& config,
                                                   const comm::Communicator& world);

/// The input of preflight(). `executor` is that of the chosen device. If the device cannot be used,
/// `executor` is null, and `device_problem` says why.
struct PreflightWish {
  const settings::RunConfig& config;
  executor::Executor* executor = nullptr;  ///< not owned
  std::optional<std::string> device_problem{};
  /// The reason why --device auto chose the device; see ChosenExecutor.
  std::optional<std::string> device_reason{};
  std::span<const machine::MachineFacts> facts;  ///< facts of all ranks, by world rank
};

/// Collective over `world`: collects the facts of all ranks and checks them. Returns the facts and
/// the results of all checks on rank 0, and an empty result on other ranks. The number of messages
/// of a rank grows only with the logarithm of the number of ranks. Throws base::UsageError on every
/// rank if --allow has a name that is not the name of a check.
[[nodiscard]] results::PreflightData preflight(const PreflightWish& wish,
                                               const comm::Communicator& world);

/// Collective over `world`: judges the results of preflight(), which rank 0 has. If the verdict of
/// a check is stop and --allow does not name it, throws base::UsageError on every rank, with all
/// such checks in its message. Prints a warning for each other problem.
void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world);

/// Carries out `isoscale check`: preflight for the device that `config` asks for, and nothing else.
/// If this device cannot be used, a result with the verdict stop says so. Throws like preflight().
[[nodiscard]] results::PreflightData check(const settings::RunConfig& config,
                                           const comm::Communicator& world);

}  // namespace isoscale::runner
