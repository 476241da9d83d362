// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rows/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isoscale::analysis {
namespace {

std::optional<double> time_of(const RowReport& row) {
  constexpr std::size_t least = 6;  // plays: a difference of less says nothing
  if (row.data->status != results::PointStatus::ok || !row.time) return std::nullopt;
  if (row.data->times.size() < least) return std::nullopt;
  return row.time->median;
}

void add_part(OverlapReport& report, const RowReport& row) {
  const results::RowData& data = *row.data;
  fill_in(report.collective, text_of(data, "collective"));
  fill_in(report.dtype, text_of(data, "dtype"));
  fill_in(report.bytes, number_of(data, "bytes"));
  fill_in(report.m, number_of(data, "m"));
  fill_in(report.n, number_of(data, "n"));
  fill_in(report.k, number_of(data, "k"));
  const std::string part = text_of(data, "part");
  if (data.status != results::PointStatus::ok) {
    fill_in(report.failure,
            fmt::format("{} {}: {}", part, results::name(data.status), data.reason));
  }
  const auto time = time_of(row);
  if (part == "gemm") report.gemm = time;
  if (part == "collective") report.communication = time;
  if (part == "together") report.together = time;
  // Held as times until both are known.
  if (part == "gemm together") report.gemm_slowdown = time;
  if (part == "collective together") report.communication_slowdown = time;
  if (part == "gemm traced") report.gemm_traced = time;
  if (part == "collective traced") report.communication_traced = time;
}

void conclude(OverlapReport& report) {
  const auto against = [](std::optional<double> beside, std::optional<double> alone) {
    return beside && alone && *alone > 0 ? std::optional{*beside / *alone} : std::nullopt;
  };
  // Like against like: what a stream does beside another is known from traced plays.
  report.gemm_slowdown = against(report.gemm_slowdown, report.gemm_traced);
  report.communication_slowdown =
      against(report.communication_slowdown, report.communication_traced);
  if (!report.gemm || !report.communication || !report.together) return;
  const double shorter = std::min(*report.gemm, *report.communication);
  if (shorter > 0) {
    report.hidden = (*report.gemm + *report.communication - *report.together) / shorter;
  }
}

}  // namespace

std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows) {
  std::vector<OverlapReport> reports;
  for (const RowReport& row : rows) {
    if (text_of(*row.data, "op") != "overlap") continue;
    const std::string pair = text_of(*row.data, "pair");
    auto place = std::ranges::find(reports, pair, &OverlapReport::pair);
    if (place == reports.end()) {
      OverlapReport& added = reports.emplace_back();
      added.pair = pair;
      place = reports.end() - 1;
    }
    add_part(*place, row);
  }
  for (OverlapReport& report : reports) conclude(report);
  return reports;
}

}  // namespace isoscale::analysis
