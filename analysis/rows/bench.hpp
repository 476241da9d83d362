// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/rows/overlap.hpp"
#include "analysis/rows/pairs.hpp"
#include "analysis/rows/row.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// All that follows from the rows of a micro-benchmark's point.
struct BenchReport {
  std::vector<RowReport> rows;  ///< as measured, one for each row of the data
  std::vector<PairReport> pairs;
  std::vector<ClassReport> classes;
  std::vector<SlowPair> slow;
  std::vector<OverlapReport> overlaps;
};

/// Whether a point measures parts and not steps: it has rows, or had some if it had run.
[[nodiscard]] bool is_bench(const results::PointData& point);

[[nodiscard]] BenchReport report_bench(const results::RunData& run, const results::PointData& point,
                                       const results::CalibrationData& calibration);

}  // namespace isoscale::analysis
