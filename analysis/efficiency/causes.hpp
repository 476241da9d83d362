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

/// Finds the reasons why the points of a curve are not faster.
namespace isoscale::analysis::efficiency {

/// A problem of a rank, a link or a point, with its likely cause.
struct NamedCause {
  std::string kind;        ///< "slow rank", "slow link", "imbalance", "noise", "waiting"
  std::vector<int> ranks;  ///< ranks of the point; empty = no single rank is the cause
  double size = 0;         ///< slow ranks and links: factor of the time; others: share of the step
  std::string text;        ///< one sentence, with hosts and devices
};

/// Returns the named causes of a point in this order: ranks whose own GEMMs are slow, slow links,
/// waiting for the same ranks in every step (imbalance), and waiting for changing ranks (noise).
/// Waiting is only named if it takes more than 1% of the step.
[[nodiscard]] std::vector<NamedCause> named_causes(const results::RunData& run,
                                                   const results::PointData& point,
                                                   const breakdown::TracedSteps& traced,
                                                   const breakdown::BreakdownResult& breakdown);

/// The reasons why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};              ///< includes scalability if the curve has a baseline
  std::optional<StepCosts> costs{};      ///< absent without traces
  std::optional<Waterfall> waterfall{};  ///< absent without a baseline, and for the baseline itself
  std::optional<statistics::Located> serial_fraction{};  ///< Karp and Flatt's; strong scaling only
  std::vector<NamedCause> named{};
};

}  // namespace isoscale::analysis::efficiency
