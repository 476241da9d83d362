// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// Steps of one block that count; the first of the block, which began from a standstill, does not.
struct StepBlock {
  enum class Kind : std::uint8_t { untraced, traced } kind = Kind::untraced;
  std::vector<double> times{};  ///< seconds, slowest rank
};

/// The blocks that follow warm-up, in order; those without a step that counts are left out. A step
/// without a time of every rank counts for nothing.
[[nodiscard]] std::vector<StepBlock> step_blocks(const results::PointData& point);

}  // namespace isoscale::analysis
