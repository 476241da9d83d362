// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/merge/join.hpp"
#include "config/run_config.hpp"

/// The report as one page for a browser, which needs nothing else: what it shows stands in it as
/// JSON, and the script that draws it was embedded when the program was built (analysis/page/web).
namespace isoscale::analysis {

/// Throws base::UsageError, which says how to get one, where this build has no page to fill.
void require_page();

/// The page with its data. Text of run files stands in it as data only: nothing of it is markup.
[[nodiscard]] std::string page_document(const nlohmann::ordered_json& data);

/// Writes the report's page; see write_output_file for what it throws.
void write_page_file(const Report& report, const std::filesystem::path& path,
                     config::IfExists if_exists);

}  // namespace isoscale::analysis
