// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/render/document.hpp"

/// Builds the summary of a report, which fits on one screen, and its tables.
namespace isoscale::analysis::render {

/// Returns the machine, the scaling and largest losses of each curve, the most severe findings and
/// the first warnings.
[[nodiscard]] Document answer(const merge::Report& report);
/// Returns answer() and the commands that show more of the report.
[[nodiscard]] Document summary(const merge::Report& report);

/// Returns the meaning of the summary's columns; empty if the summary has no tables.
[[nodiscard]] Document summary_legend(const RunReport& run);

inline constexpr std::size_t most_summary_rows = 16;

struct CurvesSummary {
  std::string sentence;      ///< the answer in words; "" without any curve
  std::string common;        ///< parts that all titles have: "tiny, f32, strong scaling"
  DocumentTable table;       ///< a row for each curve, at most most_summary_rows
  std::size_t left_out = 0;  ///< curves without a row
  std::map<std::string, std::string> names;  ///< of curves by title: "dp", "dp, bucket=1MiB"
};
/// Returns a row for each curve, with its point of the largest rank count without a label. The row
/// shows the baseline only if the curve has no other point.
[[nodiscard]] CurvesSummary summarise_curves(const merge::Report& report);

struct BenchesSummary {
  DocumentTable table;  ///< at most most_summary_rows
  std::size_t left_out = 0;
};
/// Returns the main figures of each micro-benchmark, from the point with the most ranks among its
/// points without a label.
[[nodiscard]] BenchesSummary summarise_benches(const merge::Report& report);

/// These functions return the meanings of the columns of both tables.
[[nodiscard]] std::vector<Note> curve_legend();
[[nodiscard]] std::vector<Note> bench_legend();

}  // namespace isoscale::analysis::render
