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
/// step. The time of an op is its median over steps, and what it takes more on average is noise. Of
/// ranks that play the same program the middle one is typical, of two the faster, and what others
/// take more is imbalance.
struct StepCosts {
  double gemm = 0;  ///< GEMMs of typical ranks, as traced
  /// The same played without communication, and what they took more beside it. Where nothing was
  /// hidden nothing was beside them, and all is the former; else absent without solo times.
  std::optional<double> gemm_alone{}, gemm_overlap{};
  double other_compute = 0, copies = 0;
  std::map<mesh::AxisSet, double> transfer;  ///< exposed
  /// Transfer and waiting together; absent where both are known apart.
  std::optional<double> communication{};
  double bubble = 0;                       ///< what the schedule asks for, where that is known
  std::optional<double> imbalance, noise;  ///< absent where waiting could not be divided
  double waiting = 0;                      ///< imbalance and noise together
  double uneven = 0;   ///< of the imbalance, what is known without dividing any waiting
  double hiccups = 0;  ///< likewise of the noise
  double gap = 0, other = 0;
};

/// Absent without a breakdown.
[[nodiscard]] std::optional<StepCosts> step_costs(const results::PointData& point,
                                                  const BreakdownResult& breakdown);

}  // namespace isoscale::analysis
