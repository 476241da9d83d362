// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/compare/comparison.hpp"
#include "analysis/merge/join_launches.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/render/render.hpp"
#include "settings/run_config.hpp"

/// Writes reports as one HTML page with the data as JSON and the script that draws it.
namespace isoscale::analysis::page {

/// Returns the page that was built from analysis/page/web, without data; absent if there is none.
[[nodiscard]] std::optional<std::string_view> page_asset();

/// Throws base::UsageError, which says how to get a build with the page, if this build has no page.
void require_page();

/// Returns the page with its data, in which texts from run files cannot act as HTML markup.
[[nodiscard]] std::string page_document(const nlohmann::ordered_json& data);

/// The limit on the JSON of a report's page in bytes. The page, with its script, stays under 8 MB.
inline constexpr std::size_t most_page_bytes = 6'520'000;

/// The most points that a prediction's page shows, each of about 2 kB. If there are more, each
/// curve keeps its first, its last and some points between; curves after the 750th are left out.
inline constexpr std::size_t most_page_forecasts = 1500;

/// Returns the data for the page's script, as analysis/page/web/src/data.js describes it: the JSON
/// report without its bulky parts (such as the facts of every rank), series that only charts show,
/// and the metrics (`metrics`, by table and key; see render::described()). Large series are
/// sampled, as `notes` says. The JSON takes at most `most_bytes`, unless the report's required
/// parts exceed it.
[[nodiscard]] nlohmann::ordered_json page_data(const merge::Report& report,
                                               std::size_t most_bytes = most_page_bytes);

/// These functions return the data for the page of a comparison, an index or a prediction: `kind`
/// ("compare", "index" or "predict"), and under the key `compare`, `report` or `prediction` the
/// JSON of --format json, with no more curves and points than a page shows, as `notes` says.
[[nodiscard]] nlohmann::ordered_json page_data(const compare::Comparison& comparison);
[[nodiscard]] nlohmann::ordered_json page_data(const render::IndexReport& report);
[[nodiscard]] nlohmann::ordered_json page_data(const predict::Prediction& prediction);

/// Writes the HTML page of `result` to `path`, and its name to standard error, unless `path` is
/// empty. Throws the errors of write_output_file() and require_page().
template <class Result>
void write_page(const Result& result, const std::filesystem::path& path,
                settings::IfExists if_exists);

/// Returns the number of bytes that a part of the data takes on a page.
[[nodiscard]] std::size_t page_bytes(const nlohmann::ordered_json& part);

/// Returns the data as ASCII JSON that can neither begin nor end an HTML element, whatever its
/// texts are; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string inert(const nlohmann::ordered_json& data);

/// Removes parts of report_json() that the page does not read, such as those of single ranks. In
/// each run, system.kinds (groups of ranks that are alike) and system.places (rank and host)
/// replace system.ranks. Long lists are cut, as `notes` says.
void prune_report(nlohmann::ordered_json& report, PageNotes& notes);

/// Reduces a report to at most `most` bytes, as far as possible. It removes layers beyond a fixed
/// number, then rows of micro-benchmarks, then all points of launches, from the last launch on.
void sample_report(nlohmann::ordered_json& report, std::size_t most, PageNotes& notes);

/// Returns the details of points, in at most `most` bytes in all. If each point would get less than
/// 64,000 bytes, only those with the most ranks have details. Points are served in ascending
/// order of ranks; each gets an equal share of the bytes that are left.
[[nodiscard]] nlohmann::ordered_json sampled_details(const std::vector<DetailedPoint>& points,
                                                     std::size_t most, PageNotes& notes);

/// Limits the points of a prediction to most_page_forecasts: the last what-ifs are removed if they
/// are too many, and all curves keep the same rank counts, spread evenly.
void thin_curves(nlohmann::ordered_json& prediction, PageNotes& notes);

/// Returns a list of kinds of ranks with the keys ranks ("0-63"), count, hosts (the first eight),
/// more_hosts (the number of others), and the facts: text and number. Ranks of a kind differ only
/// in facts that identify a rank: the UUID of a GPU and the like, and each fact that no two ranks
/// of a host share, if a host has several. `ranks` is system.ranks of report_json().
[[nodiscard]] nlohmann::ordered_json kinds_of_ranks(const nlohmann::ordered_json& ranks);

}  // namespace isoscale::analysis::page
