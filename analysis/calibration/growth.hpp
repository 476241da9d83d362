// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "results/calibration_data.hpp"

namespace isoscale::analysis {

/// Growth with the ranks of a group, of curves that differ in nothing else (nodes apart): one entry
/// for each kind of which several counts were measured, in the order of their first curves.
/// Latency is fitted by least squares of relative errors against log2 n and against n; from three
/// counts on the law with the smaller error is named. With two, both fit exactly: the law is "" and
/// base and slope are those of log2 n.
[[nodiscard]] std::vector<results::CalibrationGrowth> growth_of(
    std::span<const results::CalibrationCurve> curves);

}  // namespace isoscale::analysis
