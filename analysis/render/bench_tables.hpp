// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"

/// Tables of micro-benchmarks as text and markdown show them; all text is escaped.
namespace isoscale::analysis {

/// "collectives, f32, dp=4, 4 ranks".
[[nodiscard]] std::string bench_title(const PointReport& point);
/// The tables of a point, in the order in which their kinds were measured.
[[nodiscard]] std::vector<TitledTable> bench_tables(const PointReport& point);

/// Tables of point-to-point rows: matrices among up to 16 ranks, link classes, and what is no pair.
[[nodiscard]] std::vector<TitledTable> pair_tables(const PointReport& point);

/// Tables of what a run's parts are worth: curves, growth, ceilings; none where nothing was fitted.
[[nodiscard]] std::vector<TitledTable> calibration_tables(const RunReport& report);

// Cells; undefined where there is nothing.
[[nodiscard]] std::string time_cell(std::optional<double> seconds);
[[nodiscard]] std::string time_cell(const RowReport& row);      ///< median
[[nodiscard]] std::string interval_cell(const RowReport& row);  ///< "±0.4%"
[[nodiscard]] std::string bandwidth_cell(std::optional<double> bytes_per_second);
[[nodiscard]] std::string rate_cell(std::optional<double> flops);  ///< FLOP/s
[[nodiscard]] std::string size_cell(std::optional<double> bytes);
[[nodiscard]] std::string count_cell(std::optional<double> count);  ///< a whole number
/// "failed: the reason" of a row that is not ok; "" of one that is.
[[nodiscard]] std::string row_excuse(const RowReport& row);

/// The two rows of a collective's size: one of them may be null.
struct PlacePair {
  const RowReport* out_of_place = nullptr;
  const RowReport* in_place = nullptr;
  [[nodiscard]] const RowReport& any() const { return out_of_place ? *out_of_place : *in_place; }
};
/// The rows of one collective, as they differ in size, type and reduction only.
struct CollectiveGroup {
  std::string op, axis, groups, implementation, algorithm, protocol, registration;
  double members = 0;
  std::vector<PlacePair> sizes;  ///< in the order measured
};
[[nodiscard]] std::vector<CollectiveGroup> collective_groups(const BenchReport& bench);
/// "all_reduce among 4 on tp, one group, ring".
[[nodiscard]] std::string group_title(const CollectiveGroup& group);

}  // namespace isoscale::analysis
