// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "results/run_data.hpp"

/// A run file may come from anywhere: what the breakdown indexes by is checked first.
namespace isoscale::analysis {

/// Why the point's outlines cannot be used; "" when they can.
[[nodiscard]] std::string outline_problem(const results::PointData& point);

/// Why there are no traced steps to look at; "" when there are.
[[nodiscard]] std::string missing_traces(const results::PointData& point);

/// Whether a trace has one span per op of its rank's outline, in order, and times that make sense.
/// The point's outlines have no problem.
enum class TraceState : std::uint8_t { usable, broken };
[[nodiscard]] TraceState check_trace(const results::PointData& point,
                                     const timeline::StepTrace& trace);

/// Whether the times of `rank` can be set against those of other ranks.
[[nodiscard]] bool aligned(const results::PointData& point, int rank);

/// Whether a traced step is neither warm-up nor the first of its block.
[[nodiscard]] bool step_counts(const results::PointData& point, const timeline::Timeline& step);

/// Likewise of step number `step`.
[[nodiscard]] bool step_counts(const results::PointData& point, std::uint32_t step);

/// "rank 3", "ranks 0-3, 8 and 12 more": MPI's ranks of these ranks of the point.
[[nodiscard]] std::string rank_list(const results::PointData& point, const std::set<int>& ranks);

}  // namespace isoscale::analysis
