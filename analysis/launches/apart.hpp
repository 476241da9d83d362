// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/launches/join.hpp"

namespace isoscale::analysis {

/// Whether two points of as many ranks are launches of the same: mesh, options, nodes, and what
/// says that their times are not the machine's (labels, and what was put in on purpose).
[[nodiscard]] bool is_same_point(const PointReport& a, const PointReport& b);

/// Says of each curve why it was not joined with others of like experiments, and adds to titles
/// that would else be the same what differs: mesh, machine, nodes, labels and launches.
void tell_apart(std::vector<JoinedCurve>& curves, std::span<const RunReport> reports);

/// "launch 2", "launches 1, 3": numbers, from 1, of those that a curve has points of.
[[nodiscard]] std::string launches_text(const JoinedCurve& curve,
                                        std::span<const RunReport> reports);

}  // namespace isoscale::analysis
