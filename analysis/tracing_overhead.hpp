// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>

#include "results/records/counted_steps.hpp"
#include "statistics/robust.hpp"

/// Computes the share by which tracing makes steps longer.
namespace isoscale::analysis {

/// Returns the share by which tracing makes steps longer: the Hodges-Lehmann centre of traced /
/// untraced - 1 over pairs of neighbouring blocks, one traced and one untraced, each represented by
/// its median. The interval exists from 6 pairs on. Of more than 256 pairs, 256 are used, evenly
/// spread. Absent without a pair.
[[nodiscard]] std::optional<statistics::Located> instrumentation_overhead(
    std::span<const results::StepBlock> blocks);

/// Returns a warning if tracing makes steps more than 1% longer: if the whole interval lies above
/// 1%, or if the value does and there is no interval. Returns "" otherwise.
[[nodiscard]] std::string overhead_warning(const std::optional<statistics::Located>& overhead);

}  // namespace isoscale::analysis
