// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "analysis/render/render.hpp"
#include "config/run_config.hpp"

namespace isoscale::analysis {

/// What the page of an index reads: kind "index", and `report`, the JSON of report --index --format
/// json. Texts too long for a page are cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json index_page_data(const IndexReport& report);

/// Writes the index's page; see write_output_file for what it throws, and require_page.
void write_index_page_file(const IndexReport& report, const std::filesystem::path& path,
                           config::IfExists if_exists);

}  // namespace isoscale::analysis
