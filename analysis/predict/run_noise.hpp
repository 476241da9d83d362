// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "results/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// Relative deviation of the median step from one launch to the next, where several launches were
/// not compared: an interval inside one launch says nothing about the next (0.3% inside, 3.9%
/// between, where both were measured).
inline constexpr double assumed_launch_deviation = 0.02;

/// Seconds that each rank computed in each traced step that counts: [step][rank], multiplications,
/// other compute and copies. Empty where that was not recorded of all ranks.
[[nodiscard]] std::vector<std::vector<double>> compute_seconds(const results::PointData& point);

/// The differences of compute from rank to rank and from step to step.
///   standing  factors of ranks against the median of ranks that play the same program, where ranks
///             differ by more than chance would have it (analysis of variance over ranks and steps,
///             F above 3), drawn towards 1 by what of them is chance
///   node      of what remains, relative to the mean over ranks of the step: the part that ranks of
///             a node share (variance component between nodes)
///   rank      the part that they do not share, less what single ops explain
///   draws     deviations of ranks from their node, as they were but as wide as `rank`; where there
///             are enough for their shape to be known
/// `of_op` is the deviation of a single op, which a step of many averages out.
[[nodiscard]] simulate::Noise noise_of(const results::PointData& point,
                                       const simulate::Layout& layout, double of_op);

/// Relative standard deviation over launches of the median step time, pooled over the points that
/// several runs have in common; `assumed_launch_deviation` where no point is in two runs.
[[nodiscard]] double launch_deviation(std::span<const results::RunData* const> runs);

/// Relative standard deviation of the step time from step to step, by the median absolute
/// deviation; untraced steps.
[[nodiscard]] double step_deviation(const results::PointData& point);
/// Median seconds of the untraced steps; 0 without any.
[[nodiscard]] double median_step(const results::PointData& point);

}  // namespace isoscale::analysis
