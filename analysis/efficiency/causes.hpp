// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/traced_steps.hpp"
#include "analysis/efficiency/laws.hpp"
#include "analysis/efficiency/losses.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// Something that is wrong with a rank, a link or a point, and its likely cause.
struct NamedCause {
  std::string kind;        ///< "slow rank", "slow link", "imbalance", "noise", "waiting"
  std::vector<int> ranks;  ///< of the point; empty = no one in particular
  double size = 0;         ///< factor of slow ones, else share of the step
  std::string text;        ///< one sentence, with hosts and devices
};

/// The named causes of a point, most severe kinds first: ranks that are slow in their own GEMMs,
/// links, ranks that others always wait for, and waiting that hits now one and now another; waiting
/// counts from 1% of the step.
[[nodiscard]] std::vector<NamedCause> named_causes(const results::RunData& run,
                                                   const results::PointData& point,
                                                   const TracedSteps& traced,
                                                   const BreakdownResult& breakdown);

/// The causes why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};                  ///< with scalability where the curve has a baseline
  std::optional<StepCosts> costs{};          ///< absent without traces
  std::optional<Waterfall> waterfall{};      ///< absent at the baseline and without one
  std::optional<Located> serial_fraction{};  ///< Karp and Flatt's; of strong scaling
  std::vector<NamedCause> named{};
};

}  // namespace isoscale::analysis
