// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runner/measure_point.hpp"
#include "runner/plan/site.hpp"
#include "runner/watch/progress.hpp"

namespace isoscale::runner {

/// An effort that is precise enough as soon as `half_width` is.
inline plan::Effort effort_of(double max_time, std::optional<double> half_width, int trace_steps) {
  return {.max_time = units::Seconds{max_time},
          .trace_steps = trace_steps,
          .half_width = [half_width](std::span<const double>, double) { return half_width; }};
}

/// A run of one workload on some ranks.
inline settings::RunConfig config_of(std::string_view workload, workloads::Request base,
                                     int ranks) {
  settings::RunConfig config;
  settings::Experiment& experiment = config.experiments.emplace_back();
  experiment.workload = workload;
  experiment.base = std::move(base);
  config.ranks = {ranks};
  return config;
}

/// The world of this run, ready to run points.
struct PointRuns {
  explicit PointRuns(executor::Executor& plays) : executor(plays) {}

  /// Collective: complete on rank 0.
  results::PointData run(const plan::PlannedPoint& point, const settings::RunConfig& config,
                         const plan::Effort& effort) {
    return run_point(point, {.config = config,
                             .site = site,
                             .facts = facts,
                             .world = world,
                             .executor = executor,
                             .effort = effort,
                             .progress = progress});
  }
  /// The first point of a run.
  results::PointData run(settings::RunConfig& config, const plan::Effort& effort) {
    const plan::Plan plan = plan::make_plan(config, site);
    return run(plan.points.front(), config, effort);
  }

  executor::Executor& executor;
  comm::Communicator world = comm::Communicator::world();
  std::vector<machine::MachineFacts> facts = plan::gather_facts(world);
  plan::Site site = plan::make_site(world, executor.describe(), facts);
  watch::Progress progress{watch::Progress::Style::silent, 1};
};

}  // namespace isoscale::runner
