// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/launches/join.hpp"
#include "analysis/page/point_details.hpp"

/// The data of a report's page, small enough to be sent around and opened.
namespace isoscale::analysis {

/// Bytes of a page's JSON: with its script, the page stays under 8 MB.
inline constexpr std::size_t most_page_bytes = 6'500'000;

/// The data for the page's script (analysis/page/web/src/data.js says what it reads): the report as
/// render_json has it, without what fills pages (facts of every rank), and with what only pictures
/// can show (series of steps, ranks, ops and devices), thinned out where there is much of it;
/// `notes` says what was thinned out. As JSON it takes `most_bytes` at most, unless what cannot be
/// left out of the report is more.
[[nodiscard]] nlohmann::ordered_json page_data(const Report& report,
                                               std::size_t most_bytes = most_page_bytes);

/// Bytes that a page needs for a part of its data.
[[nodiscard]] std::size_t page_bytes(const nlohmann::ordered_json& part);

/// The details of points, in at most `most` bytes: coarser where need be, and where even that does
/// not do without the points of the fewest ranks. Says so in `notes`.
[[nodiscard]] nlohmann::ordered_json fitting_details(std::vector<DetailedPoint> points,
                                                     std::size_t most, PageNotes& notes);

}  // namespace isoscale::analysis
