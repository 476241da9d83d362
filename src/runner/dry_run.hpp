// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "runner/plan/plan.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// Dry runs: plans that are printed and not measured, for this machine or for one that is known by
/// its data sheet only.
namespace isoscale::runner {

struct Services;

/// The sheet of a dry run that is beyond a host without GPUs.
inline constexpr std::string_view assumed_sheet = "h100-ndr";

/// A machine by its data sheet, for which a dry run is planned and priced.
struct PricedMachine {
  std::string name;                    ///< "H100 SXM, NDR"
  int node_ranks = 1;                  ///< ranks of a node
  std::optional<units::Bytes> memory;  ///< of a rank; absent: the sheet does not say
  double half_precision_rate = 0;      ///< Site::half_precision_rate
  /// Time of a step with `node_ranks` ranks on each node. Throws base::UsageError where the sheet
  /// lacks a number that the step needs.
  std::function<units::Seconds(const workloads::Workload&, const workloads::Request&,
                               int node_ranks)>
      step;
};

/// Says why a dry run is not priced for the host that it is made on: "bf16 is beyond the host
/// device"; absent where that host could do all of it. `plan` was made without a limit of memory.
[[nodiscard]] std::optional<std::string> beyond_host(const config::RunConfig& config);
[[nodiscard]] std::optional<std::string> beyond_host(const Plan& plan, const Site& site,
                                                     units::Bytes memory);

/// Returns the machine as a site of at least `ranks` ranks, on nodes as --ranks-per-node or its
/// sheet says.
[[nodiscard]] Site site_of(const PricedMachine& machine, const config::RunConfig& config,
                           int ranks);

/// Sets Load::step of each point that has a step and is not skipped. Throws base::UsageError, with
/// the point, as PricedMachine::step does.
void price(const PricedMachine& machine, const config::RunConfig& config, Plan& plan);

/// Describes the plan as a table for people: points, mesh, nodes, loop and time, memory, FLOP,
/// bytes sent by axis and how far each axis reaches, "?" for what is unknown, or that it does not
/// fit. Times are estimates for `device`, see schedule.hpp; with a budget those of the points that
/// would fit, and the others are named.
[[nodiscard]] std::string describe(const Plan& plan, const config::RunConfig& config,
                                   std::string_view device);

/// Collective over the world: prints the plan. Nothing is measured, so no device need be there.
void dry_run(const config::RunConfig& config, const comm::Environment& environment,
             const comm::Communicator& world, const Services& services);

}  // namespace isoscale::runner
