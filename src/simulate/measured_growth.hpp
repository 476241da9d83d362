// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// The time of a collective in a group that was not measured, from those that were.
namespace isoscale::simulate {

/// Groups of one kind that are alike in all but their size.
struct GroupFamily {
  struct Group {
    double size = 0;  ///< members on one node; nodes, of groups across several
    const TimedCommunication* curve = nullptr;  ///< not owned
  };
  std::vector<Group> groups;  ///< ascending in size, at least one
  /// The same groups' members on one node alone, where that was measured: what a group across
  /// nodes takes with one. Null otherwise, and on one node. Not owned.
  const TimedCommunication* on_one_node = nullptr;
};

/// Of the groups of `kind` that were measured those with links like the place's: on one node, or
/// across, and of the latter those with as many members on a node where there are any. Without
/// groups when there are none.
[[nodiscard]] GroupFamily family_of(const Measured& measured, program::OpKind kind,
                                    const GroupPlace& place);

/// busbw over algbw (nccl-tests, doc/PERFORMANCE.md): all_reduce 2 (n-1) / n, parts (n-1) / n,
/// else 1.
[[nodiscard]] double wire_factor(program::OpKind kind, double members);

/// How a family's time grows: what is over the bytes by `law`, logarithmic or proportional; bytes
/// as the family's groups show, or as `untold` where they do not.
struct Growth {
  GrowthLaw law = GrowthLaw::logarithmic;
  Moved untold = Moved::parts;
};

/// Seconds among `members` on a group of `size` as the family counts it.
[[nodiscard]] double grown_seconds(const GroupFamily& family, const Growth& growth, double size,
                                   double members, double bytes);

}  // namespace isoscale::simulate
