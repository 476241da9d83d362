// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/compare/comparison.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/render/render.hpp"
#include "settings/run_config.hpp"

/// Writes reports as one self-contained HTML page: it contains its data as JSON, and the script
/// that draws it was embedded when the program was built (analysis/page/web).
namespace isoscale::analysis::page {

/// Does nothing if this build has a page. Throws base::UsageError if not, which says how to get
/// one.
void require_page();

/// Returns the page with its data. Text of run files is in it as data only, never as markup.
[[nodiscard]] std::string page_document(const nlohmann::ordered_json& data);

/// The limit on the bytes of a page's JSON: with its script, the page stays under 8 MB.
inline constexpr std::size_t most_page_bytes = 6'500'000;

/// The limit on the rank counts of a prediction's page, over all its curves; if there are more,
/// each curve keeps its first, its last and some between. With breakdown and waterfall a point
/// takes some 2 kB.
inline constexpr std::size_t most_page_forecasts = 1500;

/// Returns the data for the page's script (analysis/page/web/src/data.js says what it reads): the
/// report as render_json has it, without its bulky parts (facts of every rank), and with the series
/// that only pictures show (steps, ranks, ops and devices). Large series are sampled, and `notes`
/// says how many of how many are shown. The JSON takes at most `most_bytes`, unless the required
/// parts of the report alone exceed this.
[[nodiscard]] nlohmann::ordered_json page_data(const merge::Report& report,
                                               std::size_t most_bytes = most_page_bytes);

/// Returns the data of the page of a comparison, an index or a prediction: `kind` ("compare",
/// "index" or "predict"), and its JSON as --format json has it, under `compare`, `report` or
/// `prediction`. Texts and curves too long for a page are cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json page_data(const compare::Comparison& comparison);
[[nodiscard]] nlohmann::ordered_json page_data(const render::IndexReport& report);
[[nodiscard]] nlohmann::ordered_json page_data(const predict::Prediction& prediction);

/// Writes the page of a Report, Comparison, IndexReport or Prediction. Throws what
/// write_output_file() and require_page() throw.
template <class Source>
void write_page_file(const Source& source, const std::filesystem::path& path,
                     settings::IfExists if_exists);

// The parts of which the functions above are made.

/// Returns the bytes that a part of the data takes on a page.
[[nodiscard]] std::size_t page_bytes(const nlohmann::ordered_json& part);

/// Returns JSON in ASCII that neither starts nor ends an HTML element, whatever texts it has; bytes
/// that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string inert(const nlohmann::ordered_json& data);

}  // namespace isoscale::analysis::page
