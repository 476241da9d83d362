// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "analysis/compare/comparison.hpp"
#include "config/run_config.hpp"

namespace isoscale::analysis {

/// What the page of a comparison reads: kind "compare", and `compare`, the JSON of compare --format
/// json. Texts too long for a page are cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json compare_page_data(const Comparison& comparison);

/// Writes the comparison's page; see write_output_file for what it throws, and require_page.
void write_compare_page_file(const Comparison& comparison, const std::filesystem::path& path,
                             config::IfExists if_exists);

}  // namespace isoscale::analysis
