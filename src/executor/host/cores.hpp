// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

namespace isoscale::executor::host {

/// Logical CPUs that are for this rank: those it may run on, unless they are more than its share of
/// the node's, for then it is not bound and shares them with the node's other ranks. No more than
/// its part of `quota`, the CPUs' worth of time that a control group leaves the node's ranks. At
/// least 1 when it shares, and then 1 means "at most 1".
[[nodiscard]] int cores_of_rank(int allowed, int on_node, int ranks_on_node,
                                std::optional<double> quota);

/// The same for the calling thread, by its affinity mask and control groups.
[[nodiscard]] int cores_of_this_rank(int ranks_on_node);

}  // namespace isoscale::executor::host
