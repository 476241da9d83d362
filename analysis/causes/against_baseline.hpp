// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Fills what the points of a curve lost against `baseline`, one of them, and the laws that the
/// curve follows.
void add_losses(Curve& curve, const PointReport& baseline);

}  // namespace isoscale::analysis
