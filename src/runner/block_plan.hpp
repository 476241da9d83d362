// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

#include "units/quantity.hpp"

namespace isoscale::runner {

/// Pairs of an untraced and a traced block from which on their differences have an interval.
inline constexpr std::size_t least_pairs = 6;

enum class Tracing : bool { off, on };

/// How steps are dealt out to blocks. The first step of each comes on top, and is dropped.
struct BlockPlan {
  std::size_t steps = 2;  ///< that count, of a block
  std::size_t pairs = 0;  ///< before anything else; 0 without tracing

  bool operator==(const BlockPlan&) const = default;
};

/// Blocks of about 50 ms, of 2 to 64 steps, and six pairs of them. Where these would take more than
/// half of the time that is left, first the blocks become shorter, then the pairs fewer: as many as
/// a quarter of the time holds, but one.
[[nodiscard]] BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing);

/// How long a step takes once it is warm: the median of the later half. There is at least one.
[[nodiscard]] units::Seconds warm_step(std::span<const double> warm_up_times);

}  // namespace isoscale::runner
