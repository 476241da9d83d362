// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/traced_steps.hpp"
#include "analysis/efficiency/losses.hpp"
#include "results/records/run_data.hpp"
#include "statistics/robust.hpp"

/// Finds the causes why points of a curve are not faster.
namespace isoscale::analysis::efficiency {

/// Something that is wrong with a rank, a link or a point, and its likely cause.
struct NamedCause {
  std::string kind;        ///< "slow rank", "slow link", "imbalance", "noise", "waiting"
  std::vector<int> ranks;  ///< ranks of the point; empty = no rank in particular
  double size = 0;         ///< factor for slow ranks and links, else share of the step
  std::string text;        ///< one sentence, with hosts and devices
};

/// Returns the named causes of a point, the most severe kinds first: ranks that are slow in their
/// own GEMMs, slow links, ranks that others always wait for (imbalance), and waiting for changing
/// ranks (noise). Waiting counts from 1% of the step.
[[nodiscard]] std::vector<NamedCause> named_causes(const results::RunData& run,
                                                   const results::PointData& point,
                                                   const breakdown::TracedSteps& traced,
                                                   const breakdown::BreakdownResult& breakdown);

/// The causes why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};              ///< with scalability if the curve has a baseline
  std::optional<StepCosts> costs{};      ///< absent without traces
  std::optional<Waterfall> waterfall{};  ///< absent at the baseline, and without one
  std::optional<statistics::Located> serial_fraction{};  ///< Karp and Flatt's; of strong scaling
  std::vector<NamedCause> named{};
};

}  // namespace isoscale::analysis::efficiency
