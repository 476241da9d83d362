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
#include "analysis/merge/join.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/render/render.hpp"
#include "settings/run_config.hpp"

/// Writes reports as one self-contained HTML page: it contains its data as JSON, and the script
/// that draws it was embedded when the program was built (analysis/page/web).
namespace isoscale::analysis::page {

/// Returns the page without data, as it was built from its sources in analysis/page/web; absent in
/// a build without npm.
[[nodiscard]] std::optional<std::string_view> page_asset();

/// Throws base::UsageError if this build has no page; its text says how to get one.
void require_page();

/// Returns the page with its data. Text from run files is in the page only as data, never as
/// markup.
[[nodiscard]] std::string page_document(const nlohmann::ordered_json& data);

/// The limit on the bytes of a page's JSON: with its script, the page stays under 8 MB.
inline constexpr std::size_t most_page_bytes = 6'520'000;

/// The limit on the points in all curves of a prediction's page. If there are more, each curve
/// keeps its first, its last and some points between. A point takes about 2 kB, with breakdown and
/// waterfall.
inline constexpr std::size_t most_page_forecasts = 1500;

/// Returns the data for the page's script; analysis/page/web/src/data.js describes the data. These
/// are the JSON report without its bulky parts (such as the facts of every rank), and the series
/// that only charts show (steps, ranks, ops and devices), and the descriptions of the metrics
/// (`metrics`, by table and key; see render::described()). Large series are sampled, and `notes` in
/// the data says how much of them is shown. The JSON takes at most `most_bytes`, unless the
/// required parts of the report alone exceed this.
[[nodiscard]] nlohmann::ordered_json page_data(const merge::Report& report,
                                               std::size_t most_bytes = most_page_bytes);

/// Returns the data of the page of a comparison, an index or a prediction: `kind` ("compare",
/// "index" or "predict"), and the JSON that --format json prints, under `compare`, `report` or
/// `prediction`. Texts and curves too long for a page are cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json page_data(const compare::Comparison& comparison);
[[nodiscard]] nlohmann::ordered_json page_data(const render::IndexReport& report);
[[nodiscard]] nlohmann::ordered_json page_data(const predict::Prediction& prediction);

/// Writes the HTML page that shows `data`, which page_data() returns. Throws the errors of
/// write_output_file() and require_page().
void write_page_file(const nlohmann::ordered_json& data, const std::filesystem::path& path,
                     settings::IfExists if_exists);

// These functions are steps of the functions above.

/// Returns the bytes that a part of the data takes on a page.
[[nodiscard]] std::size_t page_bytes(const nlohmann::ordered_json& part);

/// Returns the data as ASCII JSON that can neither begin nor end an HTML element, whatever its
/// texts are; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string inert(const nlohmann::ordered_json& data);

/// The largest number of characters of a text or a key on a page.
inline constexpr std::size_t longest_text = 2000;

/// Removes from a report of report_json() the parts that the page does not read.
/// runs[].system.ranks is replaced by `kinds` (groups of ranks that are alike) and `places`. The
/// facts of preflight are removed, and the parts of points about single ranks, devices, GEMM
/// shapes, communicators, links and kinds of ops. `notes` says how many of the kinds, places and
/// warnings are left.
void prune_report(nlohmann::ordered_json& report, PageNotes& notes);

/// Returns kinds[]: ranks ("0-63"), count, hosts (the first eight), more_hosts, text{}, number{}.
/// Ranks are of one kind if they differ only in rank-specific facts. These are the facts that are
/// rank-specific by definition, such as the UUID of a GPU, and the facts in which all ranks of each
/// host differ, if a host has several ranks. `ranks` is as in report_json().
[[nodiscard]] nlohmann::ordered_json kinds_of_ranks(const nlohmann::ordered_json& ranks);

/// Cuts texts and keys to longest_text characters; `notes` says how many were cut.
void cut_texts(nlohmann::ordered_json& data, PageNotes& notes);

}  // namespace isoscale::analysis::page
