// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_and_markdown.hpp"
#include "analysis/report.hpp"

/// Builds the tables of micro-benchmarks; all their text is escaped.
namespace isoscale::analysis::render {

/// Returns the title of a micro-benchmark point: "collectives, f32, dp=4, 4 ranks".
[[nodiscard]] std::string bench_title(const PointReport& point);
/// Returns the tables of a point, in the order in which their kinds were measured.
[[nodiscard]] std::vector<TitledTable> bench_tables(const PointReport& point);

/// Returns the tables of point-to-point rows: matrices of pairs among up to 16 ranks, a table by
/// class of link, and a table of the patterns in which many ranks communicate at once.
[[nodiscard]] std::vector<TitledTable> pair_tables(const PointReport& point);

/// Returns the tables of a calibration: curves, growth and ceilings. The list is empty if nothing
/// was fitted.
[[nodiscard]] std::vector<TitledTable> calibration_tables(const RunReport& report);

/// A function that returns the table cells of a row.
using RowCells = std::function<std::vector<Cell>(const microbench::RowReport&)>;
/// Returns one table for each title, with the rows for which `belongs` is true. A row without
/// results shows only its first `named` cells, which identify it, and the reason.
[[nodiscard]] std::vector<TitledTable> row_tables(
    const microbench::BenchReport& bench,
    const std::function<bool(const results::RowData&)>& belongs,
    const std::function<std::string(const results::RowData&)>& title, const RowCells& cells,
    std::size_t named);
/// Returns a cell with the text that the row has under `key`.
[[nodiscard]] Cell text_of_row(std::string heading, const microbench::RowReport& row,
                               const char* key);

// These functions return the text of a cell; the text is `undefined` ("—") if there is no value.
[[nodiscard]] std::string time_cell(std::optional<double> seconds);
[[nodiscard]] std::string time_cell(const microbench::RowReport& row);      ///< median
[[nodiscard]] std::string interval_cell(const microbench::RowReport& row);  ///< "±0.4%"
[[nodiscard]] std::string bandwidth_cell(std::optional<double> bytes_per_second);
[[nodiscard]] std::string rate_cell(std::optional<double> flops);  ///< FLOP/s
[[nodiscard]] std::string size_cell(std::optional<double> bytes);
[[nodiscard]] std::string count_cell(std::optional<double> count);  ///< a whole number
/// Returns "failed: the reason" for a row that is not ok; "" for an ok row.
[[nodiscard]] std::string row_excuse(const microbench::RowReport& row);

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
  std::string op, axis, groups, implementation, algorithm, protocol, registration;
  double members = 0;
  std::vector<PlacePair> sizes;  ///< in the order measured
};
[[nodiscard]] std::vector<CollectiveGroup> collective_groups(const microbench::BenchReport& bench);
/// Returns the title of a group: "all_reduce among 4 on tp, one group, ring".
[[nodiscard]] std::string group_title(const CollectiveGroup& group);

}  // namespace isoscale::analysis::render
