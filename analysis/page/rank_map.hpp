// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "analysis/page/detail_limits.hpp"
#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Returns the times of a point with a row for each rank, sorted by host and MPI's rank: hosts[],
/// rank[], world_rank[] (MPI's), count[], host[] (into hosts), step[] (median seconds of its
/// measured steps), wait[] ... other[] (seconds; null where not traced or not known),
/// caused_wait[]; cells: first[], every, time[row][column], the rank's time of a measured step over
/// the median of all ranks' of that step - 1, or null for one rank or none measured. Above
/// limits.rows ranks, a row is a host's; above as many hosts, that of several. Of ranks put
/// together count[] says how many, world_rank[] is the lowest, step[] the largest, a cell the one
/// that lies furthest off, all else the mean.
[[nodiscard]] nlohmann::ordered_json rank_map(std::span<const results::RankFacts> facts,
                                              const PointReport& point, const DetailLimits& limits);

}  // namespace isoscale::analysis
