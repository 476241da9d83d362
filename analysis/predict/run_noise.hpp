// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// Relative deviation of the median step from one launch to the next, assumed where launches were
/// not compared. The interval of one launch says nothing about the next launch (0.3% within
/// launches, 3.9% between them, where both were measured).
inline constexpr double assumed_launch_deviation = 0.02;

/// Returns the variation of compute from rank to rank and from step to step:
///   standing: factors of ranks against the median of ranks that play the same program, where ranks
///     differ by more than chance (analysis of variance over ranks and steps, F above 3), shrunk
///     towards 1 by the part that is chance
///   node: of the remaining deviations, relative to the step's mean over ranks, the part that ranks
///     of a node share (variance component between nodes)
///   rank: the part that they do not share, less the part that single ops explain
///   draws: the measured deviations of ranks from their node, scaled to the width `rank`, where
///     there are enough to know the shape of their distribution
/// `of_op` is the deviation of a single op; in a step of many ops it averages out.
[[nodiscard]] simulate::Noise noise_of(const results::PointData& point,
                                       const simulate::Layout& layout, double of_op);

/// Returns the relative standard deviation over launches of the median step time, pooled over the
/// points that several runs have in common; `assumed_launch_deviation` where no point is in two
/// runs.
[[nodiscard]] double launch_deviation(std::span<const results::RunData* const> runs);

/// Returns the relative standard deviation of the step time from step to step, by the median
/// absolute deviation; untraced steps.
[[nodiscard]] double step_deviation(const results::PointData& point);
/// Returns the median seconds of the untraced steps; 0 without any.
[[nodiscard]] double median_step(const results::PointData& point);

}  // namespace isoscale::analysis::predict
