// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// The relative deviation of the median step from one launch to the next that is assumed if only
/// one launch was measured. The interval within one launch cannot replace it (0.3% within launches,
/// 3.9% between them, where both were measured).
inline constexpr double assumed_launch_deviation = 0.02;

/// Returns the variation of compute from rank to rank and from step to step:
///   standing: each rank's constant factor relative to the median of ranks that play the same
///     program, if ranks differ by more than chance (analysis of variance over ranks and steps, F
///     above 3), shrunk towards 1 by the part that is chance
///   node: the standard deviation between nodes (variance component) of what remains: the
///     deviations of ranks from the step's mean over ranks
///   rank: the standard deviation between ranks of a node, without the part that the deviations of
///     single ops explain
///   draws: the measured deviations of ranks from their node's mean, scaled to have the standard
///     deviation `rank`; empty if they are too few to show the shape of their distribution
/// `of_op` is the deviation of a single op, which averages out in a step of many ops.
[[nodiscard]] simulate::Noise noise_of(const results::PointData& point,
                                       const simulate::Layout& layout, double of_op);

/// Returns the relative standard deviation over launches of the median step time, pooled over the
/// points that several runs have in common; `assumed_launch_deviation` if they have none in common.
[[nodiscard]] double launch_deviation(std::span<const results::RunData> runs);

/// Returns the relative standard deviation of untraced step times, from their median absolute
/// deviation.
[[nodiscard]] double step_deviation(const results::PointData& point);
/// Returns the median seconds of the untraced steps; 0 without any.
[[nodiscard]] double median_step(const results::PointData& point);

}  // namespace isoscale::analysis::predict
