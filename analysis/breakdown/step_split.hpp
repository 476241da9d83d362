// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/breakdown_notes.hpp"
#include "analysis/breakdown/condensed.hpp"
#include "analysis/breakdown/place_sums.hpp"
#include "analysis/breakdown/rank_step.hpp"
#include "analysis/breakdown/traced_steps.hpp"
#include "results/run_data.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// Waiting that is not bubble, of ops whose causes are known: how much in all, and how much of it
/// is noise.
struct Waiting {
  double known = 0, noise = 0;
};

/// One traced step, all ranks.
struct StepResult {
  explicit StepResult(const Layers& layers) : places(layers) {}

  std::map<int, Breakdown> of_rank;
  PlaceSums places;
  Waiting waiting;
  units::Nanoseconds unaccounted, length;
  Unexplained largest;
  int largest_rank = 0;
  ReplayNotes replay;
  std::optional<units::Nanoseconds> free_network_step;
};

/// `noise_shares`: by instance, see WaitCauses; empty where that is not known.
[[nodiscard]] StepResult split_step(const results::PointData& point, const Condensed& condensed,
                                    const TracedStep& step, const Layers& layers,
                                    std::vector<double> noise_shares);

}  // namespace isoscale::analysis
