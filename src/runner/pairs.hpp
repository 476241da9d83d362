// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/run_data.hpp"
#include "units/quantity.hpp"

/// What is to be said of pairs of ranks; pure functions.
namespace isoscale::runner {

/// How people are told of each rank of a point, see rank_name.
using RankNames = std::vector<std::string>;

/// "rank 3 (node7)", by its rank in the launch.
[[nodiscard]] std::string rank_name(int world_rank, const std::string& host);

/// Why a row of two ranks has no times: "no answer within 30 s between rank 3 (a) and rank 5 (b)".
[[nodiscard]] std::string silence(const std::string& low, const std::string& high,
                                  units::Seconds timeout);

/// Bytes per second of a row of p2p: bytes of a call by the median over plays of a call's time on
/// the slowest rank. Absent without times.
[[nodiscard]] std::optional<units::BytesPerSecond> median_bandwidth(const results::RowData& row);

/// Fails each row of one direction's bandwidth whose median stays below `least`, with a reason that
/// names both ends and the bandwidth.
void judge_bandwidth(std::vector<results::RowData>& rows, units::BytesPerSecond least,
                     const RankNames& names);

/// The first reason of rows that failed, and how many more there are; "" when none did.
[[nodiscard]] std::string reason_of_failed(std::span<const results::RowData> rows);

}  // namespace isoscale::runner
