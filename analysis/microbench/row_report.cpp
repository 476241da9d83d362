// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/row_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "calibration/calibration.hpp"

namespace isoscale::analysis::microbench {
namespace {

using results::RowData;

/// Returns amount / time if both are present and above 0.
std::optional<double> rate(std::optional<double> amount,
                           const std::optional<statistics::Estimate>& time) {
  if (!amount || !(*amount > 0) || !time || !(time->median > 0)) return std::nullopt;
  return *amount / time->median;
}

std::optional<double> share(std::optional<double> value, std::optional<double> whole) {
  if (!value || !whole || !(*whole > 0)) return std::nullopt;
  return *value / *whole;
}

/// True if a memory row both reads and writes the device's own memory.
bool within_device(const std::string& kind) {
  return kind == "d2d" || kind == "copy" || kind == "triad";
}

void add_gemm(RowReport& report, const RowReference& reference) {
  const std::string dtype = text_of(*report.data, "dtype");
  report.flops = rate(number_of(*report.data, "flop"), report.time);
  if (reference.calibration != nullptr) {
    const auto* const ceiling = calibration::ceiling_of(*reference.calibration, dtype);
    if (ceiling != nullptr) report.of_ceiling = share(report.flops, ceiling->rate);
  }
  if (reference.datasheet != nullptr) {
    report.of_peak = share(report.flops, reference.datasheet->peak(dtype));
  }
}

}  // namespace

std::optional<double> bus_factor(std::string_view op, double members) {
  if (!(members >= 1) || op == "barrier" || !calibration::is_collective(op)) return std::nullopt;
  if (op == "all_reduce") return 2 * (members - 1) / members;
  if (op == "broadcast" || op == "reduce" || op == "sendrecv") return 1;
  return (members - 1) / members;
}

bool has_rates(const RowData& row) {
  return row.status != results::PointStatus::skipped && !row.times.empty();
}

RowReport report_row(const RowData& row, const RowReference& reference) {
  RowReport report;
  report.data = &row;
  report.time = statistics::estimate(calibration::call_times(row));
  constexpr double p99 = 0.99;
  report.p99 = statistics::quantile(row.call_times, p99);
  if (!has_rates(row)) return report;
  const std::string op = text_of(row, "op");
  const std::optional<double> bytes = number_of(row, "bytes");
  if (op == "gemm") {
    add_gemm(report, reference);
  } else if (calibration::is_collective(op) && op != "barrier") {
    report.algbw = rate(bytes, report.time);
    const double members = number_of(row, "members").value_or(0);
    const auto factor = members > 1 ? bus_factor(op, members) : std::nullopt;
    if (report.algbw && factor) report.busbw = *report.algbw * *factor;
  } else if (op == "p2p" || op == "memory") {
    report.bandwidth = rate(bytes, report.time);
    if (op == "memory" && reference.datasheet != nullptr && within_device(text_of(row, "kind"))) {
      report.of_memory_peak = share(report.bandwidth, reference.datasheet->memory);
    }
  }
  return report;
}

}  // namespace isoscale::analysis::microbench
