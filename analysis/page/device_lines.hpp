// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "analysis/page/detail_limits.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What was sampled of a point's devices, as lines: device, rank, host, quantity, unit, time[]
/// (seconds after the first step), value[], averaged (samples a value, at most), and low[] and
/// high[] where samples were put together. A
/// line has at most limits.samples values: means of as many stretches of time with what was least
/// and most in each; of a set of bits, all that were set. Values between two that are the same are
/// left out where they are that too: the line stays. A quantity has at most limits.devices
/// lines, of the devices that differ most from the others. Clocks, power and temperature come
/// first; counters are left out, for their values say nothing.
[[nodiscard]] nlohmann::ordered_json device_lines(std::span<const results::RankFacts> facts,
                                                  const results::PointData& point,
                                                  const DetailLimits& limits);

/// How many lines `limits` leave out.
[[nodiscard]] std::size_t device_lines_left_out(const results::PointData& point,
                                                const DetailLimits& limits);

}  // namespace isoscale::analysis
