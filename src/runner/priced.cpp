// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/priced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/device.hpp"
#include "units/text.hpp"

namespace isoscale::runner {

std::optional<std::string> beyond_host(const config::RunConfig& config) {
  using workloads::Precision;
  for (const config::Experiment& experiment : config.experiments) {
    const Precision precision = experiment.base.precision;
    if (precision == Precision::f64 || precision == Precision::f32) continue;
    return fmt::format("the host device does not compute in {}", workloads::name(precision));
  }
  return std::nullopt;
}

std::optional<std::string> beyond_host(const Plan& plan, const Site& site, units::Bytes memory) {
  for (const PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty()) continue;
    std::map<int, std::uint64_t> ranks_of_node;
    for (const int rank : point.world_ranks) {
      ++ranks_of_node[site.node_of_rank[static_cast<std::size_t>(rank)]];
    }
    for (const auto& [node, ranks] : ranks_of_node) {
      const units::Bytes need{ranks * point.memory_per_rank->value()};
      if (need <= memory) continue;
      return fmt::format("point {} needs {} for {}, and this host has {} free", point.index + 1,
                         units::format(need), base::counted(static_cast<int>(ranks), "rank"),
                         units::format(memory));
    }
  }
  return std::nullopt;
}

Site site_of(const PricedMachine& machine, const config::RunConfig& config, int ranks) {
  const executor::Description gpus = unseen_gpus();
  Site site{.ranks = config.ranks.empty() ? ranks : std::max(ranks, config.ranks.back()),
            .node_of_rank = {},
            .precisions = gpus.precisions,
            .device = config.device == config::Device::host ? "host" : gpus.name,
            .memory_free = {},
            .memory_pool = gpus.memory_pool,
            .half_precision_rate = machine.half_precision_rate};
  const int node_ranks = config.ranks_per_node.value_or(machine.node_ranks);
  for (int rank = 0; rank < site.ranks; ++rank) site.node_of_rank.push_back(rank / node_ranks);
  site.memory_free.assign(static_cast<std::size_t>(site.node_of_rank.back()) + 1, machine.memory);
  return site;
}

void price(const PricedMachine& machine, const config::RunConfig& config, Plan& plan) {
  const int node_ranks = config.ranks_per_node.value_or(machine.node_ranks);
  for (PlannedPoint& point : plan.points) {
    if (point.workload->is_bench() || !point.skip_reason.empty()) continue;
    try {
      point.load.step = machine.step(*point.workload, point.request, node_ranks);
    } catch (const base::UsageError& error) {
      throw base::UsageError(fmt::format("--on {}: point {}, {} on {}: {}", machine.name,
                                         point.index + 1, point.workload->name,
                                         base::counted(point.ranks, "rank"), error.what()));
    }
  }
}

}  // namespace isoscale::runner
