// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/page/detail_limits.hpp"
#include "analysis/page/point_details.hpp"

/// Keeps a page small enough to be sent around and opened.
namespace isoscale::analysis {

/// Bytes of a page's JSON: with its script, the page stays under 8 MB.
inline constexpr std::size_t most_page_bytes = 6'500'000;

/// Bytes that a page needs for a part of its data.
[[nodiscard]] std::size_t page_bytes(const nlohmann::ordered_json& part);

/// The details of points, in at most `most` bytes: coarser where need be, and where even that does
/// not do without the points of the fewest ranks. Says so in `notes`.
[[nodiscard]] nlohmann::ordered_json fitting_details(std::vector<DetailedPoint> points,
                                                     std::size_t most, PageNotes& notes);

}  // namespace isoscale::analysis
