// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/render/point_metrics.hpp"

/// Renders reports as text. Renderers never compute numbers, so that all formats agree. For several
/// launches, reports for people show the joined curves and a line on each launch; machine-readable
/// reports contain both in full.
namespace isoscale::analysis::render {

/// Returns the summary on one screen of at most `columns` columns.
[[nodiscard]] std::string render_summary(const merge::Report& report, std::size_t columns);
/// Returns the detailed report for people, with these sections.
[[nodiscard]] std::string render_sections(const merge::Report& report, const Sections& sections);
/// Returns the detailed report with all sections.
[[nodiscard]] std::string render_text(const merge::Report& report);
enum class Style : std::uint8_t { text, markdown, csv, json };
/// Returns the detailed report in one of four formats, with these metrics of points.
[[nodiscard]] std::string render_as(Style style, const merge::Report& report,
                                    Metrics<PointReport> metrics = point_metrics());
[[nodiscard]] std::string render_json(const merge::Report& report);
[[nodiscard]] std::string render_csv(const merge::Report& report);
[[nodiscard]] std::string render_markdown(const merge::Report& report);
/// Returns the rows of collectives in the columns of nccl-tests, for tools that read its output;
/// other lines begin with #.
[[nodiscard]] std::string render_nccl_tests(const merge::Report& report);

/// A report that has only an index of runs. `why` is a sentence for people about what the report
/// does not show.
struct IndexReport {
  catalog::Index index;
  std::vector<std::string> warnings{};
  std::string why{};
};
[[nodiscard]] std::string render_index_text(const IndexReport& report);
[[nodiscard]] std::string render_index_json(const IndexReport& report);
/// Returns one line for each run and experiment.
[[nodiscard]] std::string render_index_csv(const IndexReport& report);
[[nodiscard]] std::string render_index_markdown(const IndexReport& report);

}  // namespace isoscale::analysis::render
