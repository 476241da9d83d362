// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "simulate/classes.hpp"
#include "simulate/layout.hpp"

namespace isoscale::simulate {

/// Classes whose ranks play one program at one cost count as one here.
struct Kind {
  std::vector<std::size_t> classes;
  double ranks = 0;  ///< of the whole mesh
  /// A step of which one rank of the kind deviates by d, and the others by `typical`, takes `at`
  /// + slope * (d - from) nanoseconds, when it is that rank that the others wait for.
  double from = 0, at = 0, slope = 0;
};

/// Nodes with as many ranks of each kind.
struct LikeNodes {
  std::vector<double> ranks;  ///< by kind
  double nodes = 0;
};

struct Kinds {
  std::vector<Kind> all;
  std::vector<LikeNodes> nodes;
};

[[nodiscard]] Kinds kinds_of(const Classes& classes, const Costs& costs, const Layout& layout);

}  // namespace isoscale::simulate
