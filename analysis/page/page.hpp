// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/render/render.hpp"
#include "config/run_config.hpp"

/// The report as one page for a browser, which needs nothing else: what it shows stands in it as
/// JSON, and the script that draws it was embedded when the program was built (analysis/page/web).
namespace isoscale::analysis {

/// Throws base::UsageError, which says how to get one, where this build has no page to fill.
void require_page();

/// The page with its data. Text of run files stands in it as data only: nothing of it is markup.
[[nodiscard]] std::string page_document(const nlohmann::ordered_json& data);

/// Bytes of a page's JSON: with its script, the page stays under 8 MB.
inline constexpr std::size_t most_page_bytes = 6'500'000;

/// The data for the page's script (analysis/page/web/src/data.js says what it reads): the report as
/// render_json has it, without what fills pages (facts of every rank), and with what only pictures
/// can show (series of steps, ranks, ops and devices), thinned out where there is much of it;
/// `notes` says what was thinned out. As JSON it takes `most_bytes` at most, unless what cannot be
/// left out of the report is more.
[[nodiscard]] nlohmann::ordered_json page_data(const Report& report,
                                               std::size_t most_bytes = most_page_bytes);

/// Writes the report's page; see write_output_file for what it throws.
void write_page_file(const Report& report, const std::filesystem::path& path,
                     config::IfExists if_exists);

/// The data of the page of a comparison: kind "compare", and `compare`, the JSON of compare
/// --format json. Texts too long for a page are cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json compare_page_data(const Comparison& comparison);

/// Writes the comparison's page; see write_output_file for what it throws, and require_page.
void write_compare_page_file(const Comparison& comparison, const std::filesystem::path& path,
                             config::IfExists if_exists);

/// The data of the page of an index: kind "index", and `report`, the JSON of report --index
/// --format json. Texts too long for a page are cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json index_page_data(const IndexReport& report);

/// Writes the index's page; see write_output_file for what it throws, and require_page.
void write_index_page_file(const IndexReport& report, const std::filesystem::path& path,
                           config::IfExists if_exists);

/// Rank counts of a page, over all its curves; of more each curve keeps its first, its last and
/// some between. With breakdown and waterfall a point takes some 2 kB.
inline constexpr std::size_t most_page_forecasts = 1500;

/// The data of the page of a prediction: kind "predict", and `prediction`, the JSON of predict
/// --format json. What is too long or too much for a page is cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json prediction_page_data(const Prediction& prediction);

/// Writes the prediction's page; see write_output_file for what it throws, and require_page.
void write_prediction_page_file(const Prediction& prediction, const std::filesystem::path& path,
                                config::IfExists if_exists);

// The parts that these are made of.

/// Bytes that a page needs for a part of its data.
[[nodiscard]] std::size_t page_bytes(const nlohmann::ordered_json& part);

/// The details of points, in at most `most` bytes: coarser where need be, and where even that does
/// not do without the points of the fewest ranks. Says so in `notes`.
[[nodiscard]] nlohmann::ordered_json fitting_details(std::vector<DetailedPoint> points,
                                                     std::size_t most, PageNotes& notes);

/// JSON in ASCII that begins and ends no element of HTML, whatever text is in it; bytes that are no
/// UTF-8 become U+FFFD.
[[nodiscard]] std::string inert(const nlohmann::ordered_json& data);

}  // namespace isoscale::analysis
