// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// How long a communication op of this span transferred: what is left after it waited for its last
/// partner. 0 where the partner came after the end, as it may to a message sent eagerly.
[[nodiscard]] inline units::Nanoseconds transfer_time(const timeline::Span& span,
                                                      units::Nanoseconds wait) {
  return std::max(span.end - span.start - wait, units::Nanoseconds{0});
}

/// Whether it is known of all these ranks when they began their ops: else waiting for the others
/// cannot be told from transfer.
[[nodiscard]] inline bool all_known(const TracedStep& step, const std::vector<int>& ranks) {
  return std::ranges::none_of(
      ranks, [&](int rank) { return step.waits[static_cast<std::size_t>(rank)].empty(); });
}

}  // namespace isoscale::analysis
