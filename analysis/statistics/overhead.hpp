// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>

#include "analysis/statistics/robust.hpp"
#include "analysis/statistics/step_blocks.hpp"

/// What looking at a step costs it.
namespace isoscale::analysis {

/// How much longer traced steps take: the Hodges-Lehmann centre of traced / untraced - 1 over pairs
/// of neighbouring blocks, one of each kind, taken by their medians. The interval exists from 6
/// pairs on. Of more than 256 pairs, 256 are used, evenly spread. Absent without a pair.
[[nodiscard]] std::optional<Located> instrumentation_overhead(std::span<const StepBlock> blocks);

/// "0.4%", and with an interval "0.4% (0.1% to 0.8%)"; "—" when there is none.
[[nodiscard]] std::string overhead_text(const std::optional<Located>& overhead);

/// A sentence when tracing takes more than 1% for certain (all of the interval lies above), or
/// seems to while there is no interval; else "".
[[nodiscard]] std::string overhead_warning(const std::optional<Located>& overhead);

}  // namespace isoscale::analysis
