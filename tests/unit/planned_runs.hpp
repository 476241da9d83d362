// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "runner/plan/plan.hpp"
#include "stack_samples.hpp"

namespace isoscale::samples {

/// Ranks on hosts of `per_node`, numbered host by host; how much memory is free is unknown.
inline runner::plan::Site site_of(int ranks, int per_node = 1'000) {
  runner::plan::Site site{.ranks = ranks,
                          .node_of_rank = {},
                          .precisions = {program::Precision::f64, program::Precision::f32},
                          .device = "host",
                          .memory_free = {}};
  for (int rank = 0; rank < ranks; ++rank) site.node_of_rank.push_back(rank / per_node);
  return site;
}

/// Eight microbatches of 2 samples.
inline workloads::Request planned_request() { return workloads::request_of("", 8); }

/// The planned request of one workload.
inline settings::RunConfig config_of(const std::string& workload, const mesh::Request& mesh = {},
                                     const workloads::Request& base = planned_request()) {
  settings::RunConfig config;
  settings::Experiment& experiment = config.experiments.emplace_back();
  experiment.workload = workload;
  experiment.mesh = mesh;
  experiment.base = base;
  return config;
}

/// Returns why there is no plan; "" if there is one.
inline std::string refusal(const settings::RunConfig& config, const runner::plan::Site& site) {
  return testing_support::refusal(runner::plan::make_plan, config, site);
}

}  // namespace isoscale::samples
