// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>

#include "analysis/breakdown/breakdown.hpp"
#include "mesh/mesh.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What a traced step cost, by cause; seconds, mean over ranks. The parts sum to the breakdown's
/// step. Of ranks that play the same program the middle one is typical, and what others take more
/// is imbalance.
struct StepCosts {
  std::optional<double> gemm_alone{};    ///< GEMMs of typical ranks, played without communication
  std::optional<double> gemm_overlap{};  ///< what they took more in the traced steps
  double gemm = 0;                       ///< the two together: as traced
  double other_compute = 0, copies = 0;
  std::map<mesh::AxisSet, double> transfer;  ///< exposed
  double bubble = 0;
  std::optional<double> imbalance, noise;  ///< absent where waiting could not be divided
  double waiting = 0;                      ///< imbalance and noise together
  double gap = 0, other = 0;
};

/// Absent without a breakdown.
[[nodiscard]] std::optional<StepCosts> step_costs(const results::PointData& point,
                                                  const BreakdownResult& breakdown);

}  // namespace isoscale::analysis
