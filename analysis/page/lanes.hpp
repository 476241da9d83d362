// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "analysis/page/detail_limits.hpp"
#include "analysis/report.hpp"

namespace isoscale::analysis {

/// One traced step of a point, the one whose length is nearest the median of those that count, as
/// lanes of spans; null without a usable trace. A lane is a rank: one a stage (the others of its
/// coordinates 0) where there is a pipeline, else the first and last; then those that compute
/// longest and are waited for most, then others, until there are limits.fewest_lanes.
///
/// Keys: step, begin, length (seconds, of all lanes together), step_time (seconds, of the slowest
/// rank), ops[], phases[], lanes[], spans{} and idle{} (columns; nanoseconds after the begin),
/// merged (spans that are part of another one), merged_gaps (nanoseconds between those),
/// spans_left_out (the shortest), totals{} (columns by lane: LaneTotals, nanoseconds, of all
/// spans), breakdown{} (seconds, means over these lanes' ranks and all traced steps; null where
/// there is none; wait_known, bubble_known as in BreakdownResult), left_out (traced ranks without a
/// lane). An op's kind is a name of program::OpKind, or, of several put together, "compute",
/// "copies", "communication", or "mixed" where it was more than one of these.
[[nodiscard]] nlohmann::ordered_json lanes(std::span<const results::RankFacts> facts,
                                           const PointReport& point, const DetailLimits& limits);

}  // namespace isoscale::analysis
