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
  site.pool_of_rank = site.node_of_rank;
  return site;
}

/// The same with a GPU for every `sharing` ranks, each with as much free memory (absent: unknown).
inline runner::plan::Site gpu_site_of(int ranks, std::optional<units::Bytes> free,
                                      int per_node = 1'000, int sharing = 1) {
  runner::plan::Site site = site_of(ranks, per_node);
  site.device = "cuda";
  site.pool_of_rank.clear();
  for (int rank = 0; rank < ranks; ++rank) site.pool_of_rank.push_back(rank / sharing);
  site.memory_free.assign(static_cast<std::size_t>((ranks + sharing - 1) / sharing), free);
  return site;
}

inline workloads::Request planned_request() { return workloads::request_of("", 8); }

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
