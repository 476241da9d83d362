// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What a step counts for. The numbers are those of the page.
enum class StepKind : std::uint8_t { measured = 0, traced = 1, dropped = 2, warm_up = 3 };
[[nodiscard]] StepKind kind_of_step(const results::PointData& point, std::size_t step);

/// Seconds of a step, which are its slowest rank's; absent where some rank has no time.
[[nodiscard]] std::optional<double> time_of_step(const results::PointData& point, std::size_t step);

/// The times of a point's steps in order: first[], time[] (seconds, the largest of an entry's
/// steps), kind[], every, quantiles[101] of the measured steps (linear between order statistics;
/// null without any), injections[]. At most `most` entries, if need be of `every` steps each, those
/// of one kind among them; at least one entry a kind.
[[nodiscard]] nlohmann::ordered_json step_series(const results::PointData& point, std::size_t most);

}  // namespace isoscale::analysis
