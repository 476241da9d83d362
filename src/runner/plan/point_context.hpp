// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "results/run_data.hpp"
#include "runner/plan/site.hpp"
#include "runner/plan/step_loop.hpp"

namespace isoscale::runner {

class Progress;

/// The environment of a run in which all of its points are measured.
struct PointContext {
  const config::RunConfig& config;
  const Site& site;
  std::span<const machine::MachineFacts> facts;
  const comm::Communicator& world;
  executor::Executor& executor;
  Effort effort;
  Progress& progress;  ///< prints on world rank 0 only
  /// By world rank; only on world rank 0. If it is empty, links are not classified.
  std::span<const results::RankFacts> rank_facts{};
};

}  // namespace isoscale::runner
