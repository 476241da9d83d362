// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "runner/plan/plan.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// A dry run prints the plan of a run and measures nothing. The plan is for this machine or for a
/// machine that a data sheet describes.
namespace isoscale::runner {

struct Services;

/// The data sheet that a dry run assumes if this host has no GPUs, the host device could not run
/// the plan, and the user named no device.
inline constexpr std::string_view assumed_sheet = "h100-ndr";

/// A machine that a data sheet describes. A dry run can be planned for it, with its step times.
struct PricedMachine {
  std::string name;                    ///< "H100 SXM, NDR"
  int node_ranks = 1;                  ///< ranks on a node
  std::optional<units::Bytes> memory;  ///< memory that each rank has; absent: unknown
  /// The FLOP/s that a GPU is expected to reach in bf16 or f16; a suite chooses its model by it.
  double half_precision_rate = 0;
  /// Returns the time of a step with `node_ranks` ranks on each node. Throws base::UsageError if
  /// the sheet lacks a number that the step needs.
  std::function<units::Seconds(const workloads::Workload&, const workloads::Request&,
                               int node_ranks)>
      step;
};

/// Both functions return the reason why this host could not run the plan, such as "the host device
/// does not compute in bf16"; absent if it could. The first looks only at the types in which
/// experiments compute. The second looks only at memory: the ranks of a point on one node may not
/// need more than `memory`, the free memory of this host. It ignores skipped points, so `plan` must
/// have been made without a limit of memory.
[[nodiscard]] std::optional<std::string> beyond_host(const settings::RunConfig& config);
[[nodiscard]] std::optional<std::string> beyond_host(const plan::Plan& plan, const plan::Site& site,
                                                     units::Bytes memory);

/// Returns a site (ranks, nodes and devices) of at least `ranks` ranks, whose nodes and devices are
/// those of `machine`. The number of ranks on a node is --ranks-per-node or, without this option,
/// PricedMachine::node_ranks.
[[nodiscard]] plan::Site site_of(const PricedMachine& machine, const settings::RunConfig& config,
                                 int ranks);

/// Sets Load::step, the time of one step, of each point that has steps and is not skipped. Throws
/// base::UsageError, which names the point, if the data sheet lacks a number that the point needs.
void price(const PricedMachine& machine, const settings::RunConfig& config, plan::Plan& plan);

/// Returns the plan as a table for people, with a row for each point. "?" stands for an unknown
/// number of nodes. Points that are skipped, that do not fit into memory, or for which the budget
/// leaves no time are marked as such and have no times. Times are estimates for `device`, see
/// time_estimates_and_schedule.hpp. Lines below the table give the time of all points, and notes.
[[nodiscard]] std::string describe(const plan::Plan& plan, const settings::RunConfig& config,
                                   std::string_view device);

/// Collective over the world: prints the plan. The device of the plan need not exist.
void dry_run(const settings::RunConfig& config, const comm::Communicator& world,
             const Services& services);

}  // namespace isoscale::runner
