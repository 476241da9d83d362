// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/render/document.hpp"
#include "analysis/report.hpp"

/// Describes the figures of micro-benchmarks, once for all reports, and builds their tables.
namespace isoscale::analysis::render {

/// Returns the metrics of a row: all that tables show and JSON has of the kinds of rows that it
/// knows. Those without a value of their own are stored in the row under their key.
[[nodiscard]] Metrics<microbench::RowReport> row_metrics();
template <>
[[nodiscard]] Value stored_value(const microbench::RowReport& row, std::string_view key, Unit unit);

/// Returns the metrics of a GEMM and a collective at once.
[[nodiscard]] Metrics<microbench::OverlapReport> overlap_metrics();

/// Returns "±0.4%", or "n=2: too few" for a time from few plays; "—" without plays.
[[nodiscard]] std::string interval_cell(const results::RowData* row,
                                        const std::optional<statistics::Estimate>& time);

/// Returns the text of a number, "—" where it is absent.
[[nodiscard]] std::string figure(const std::optional<double>& value, Unit unit);

/// Returns "failed: the reason" for a row that is not ok; "" for an ok row. Not escaped.
[[nodiscard]] std::string row_excuse(const microbench::RowReport& row);

/// Returns the title of a micro-benchmark point: "collectives, f32, dp=4, 4 ranks".
[[nodiscard]] std::string bench_title(const PointReport& point);
/// Returns the tables of a point, in the order in which their kinds were measured.
[[nodiscard]] std::vector<DocumentTable> bench_tables(const PointReport& point);

/// Returns the tables of point-to-point rows: matrices of pairs among up to 16 ranks, a table by
/// class of link, and a table of the patterns in which many ranks communicate at once.
[[nodiscard]] std::vector<DocumentTable> pair_tables(const PointReport& point);

/// Returns the tables of a calibration: curves, growth and ceilings. The list is empty if nothing
/// was fitted.
[[nodiscard]] std::vector<DocumentTable> calibration_tables(const RunReport& report);

/// Returns one table for each title, with the rows for which `belongs` is true and the metrics that
/// `keys` names.
[[nodiscard]] std::vector<DocumentTable> row_tables(
    const microbench::BenchReport& bench,
    const std::function<bool(const results::RowData&)>& belongs,
    const std::function<std::string(const results::RowData&)>& title, std::string_view keys);

/// The out-of-place and the in-place row of one size of a collective; one of them may be null.
struct PlacePair {
  const microbench::RowReport* out_of_place = nullptr;
  const microbench::RowReport* in_place = nullptr;
  [[nodiscard]] const microbench::RowReport& any() const {
    return out_of_place ? *out_of_place : *in_place;
  }
};
/// The rows of one collective, which differ only in size, type and reduction.
struct CollectiveGroup {
  const results::RowData* first = nullptr;  ///< one of them; not owned
  std::vector<PlacePair> sizes{};           ///< in the order measured
};
[[nodiscard]] std::vector<CollectiveGroup> collective_groups(const microbench::BenchReport& bench);
/// Returns the title of a group: "all_reduce among 4 on tp, one group, ring"; not escaped.
[[nodiscard]] std::string group_title(const CollectiveGroup& group);

}  // namespace isoscale::analysis::render
