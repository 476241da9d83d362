// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/run_data.hpp"
#include "runner/measure/measure_steps.hpp"
#include "runner/plan/plan.hpp"
#include "runner/watch/progress.hpp"

namespace isoscale::runner {

/// The surroundings that all points of a run are measured in.
struct PointContext {
  const config::RunConfig& config;
  const Site& site;
  std::span<const machine::MachineFacts> facts;
  const comm::Communicator& world;
  executor::Executor& executor;
  Effort effort;
  Progress& progress;  ///< speaks on world rank 0 only
  /// By world rank, on world rank 0; where there are none, links get no class.
  std::span<const results::RankFacts> rank_facts{};
};

/// Collective over the world: verifies and measures one point on its sub-world. Ranks outside it
/// sleep, or play replicas. The result is complete on world rank 0, and has the right status
/// everywhere.
[[nodiscard]] results::PointData run_point(const PlannedPoint& point, const PointContext& context);

}  // namespace isoscale::runner
