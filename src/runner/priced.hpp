// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/run_config.hpp"
#include "runner/plan.hpp"
#include "units/quantity.hpp"
#include "workloads/workload.hpp"

/// Dry runs for a machine that is known by its data sheet only.
namespace isoscale::runner {

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

/// Why a dry run is not priced for the host that it is made on: "bf16 is beyond the host device";
/// absent where that host could do all of it. `plan` was made without a limit of memory.
[[nodiscard]] std::optional<std::string> beyond_host(const config::RunConfig& config);
[[nodiscard]] std::optional<std::string> beyond_host(const Plan& plan, const Site& site,
                                                     units::Bytes memory);

/// The machine as a site of at least `ranks` ranks, on nodes as --ranks-per-node or its sheet says.
[[nodiscard]] Site site_of(const PricedMachine& machine, const config::RunConfig& config,
                           int ranks);

/// Sets Load::step of each point that has a step and is not skipped. Throws base::UsageError, with
/// the point, as PricedMachine::step does.
void price(const PricedMachine& machine, const config::RunConfig& config, Plan& plan);

}  // namespace isoscale::runner
