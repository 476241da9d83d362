// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/microbench/datasheets.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/robust.hpp"

/// Computes the rates of one row of a micro-benchmark, and compares them with the best rates of the
/// run and with the peaks of GPU datasheets.
namespace isoscale::analysis::microbench {

/// Returns busbw / algbw among n = `members` ranks by the definition of nccl-tests: 2 (n-1) / n for
/// all_reduce; (n-1) / n for reduce_scatter, all_gather, all_to_all, gather and scatter; 1 for
/// broadcast, reduce and sendrecv. Absent for barrier, which moves no data, for ops that are not
/// collectives, and for fewer than 1 member.
[[nodiscard]] std::optional<double> bus_factor(std::string_view op, double members);

struct RowReport {
  const results::RowData* data = nullptr;    ///< not owned
  std::optional<statistics::Estimate> time;  ///< seconds of one call
  /// 99th percentile of single calls; absent below 100 calls
  std::optional<statistics::Located> p99;
  std::optional<double> algbw, busbw;    ///< bytes/s at the median time; only for collectives
  std::optional<double> flops;           ///< FLOP/s of the slowest rank; only for GEMMs
  std::optional<double> of_ceiling;      ///< flops / the run's best rate for this element type
  std::optional<double> of_peak;         ///< flops / the datasheet's peak
  std::optional<double> bandwidth;       ///< bytes/s; only for p2p and memory
  std::optional<double> of_memory_peak;  ///< bandwidth of device memory / the datasheet's
};

/// The references with which a row is compared. Not owned; null = not known.
struct RowReference {
  const results::CalibrationData* calibration = nullptr;
  const Datasheet* datasheet = nullptr;
};

/// True if the row has times of its operation. Such a row may still have failed: some elements of
/// the result were wrong, which reports show next to the rates, or it was slower than expected.
[[nodiscard]] bool has_rates(const results::RowData& row);

/// Sets `known` to `other` if it has no value yet. This merges rows about the same pair, where one
/// row may have a value that another lacks.
template <class T>
void fill_in(T& known, T other) {
  if (known == T{}) known = std::move(other);
}

/// Computes the rates of a row. They are absent unless has_rates() is true.
[[nodiscard]] RowReport report_row(const results::RowData& row, const RowReference& reference);

}  // namespace isoscale::analysis::microbench
