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

/// Returns busbw / algbw among `members` ranks as nccl-tests defines it: all_reduce 2 (n-1) / n;
/// reduce_scatter, all_gather, all_to_all, gather and scatter (n-1) / n; broadcast, reduce and
/// sendrecv 1. Absent for ops that move no data (barrier), for other ops, and below 1 member.
[[nodiscard]] std::optional<double> bus_factor(std::string_view op, double members);

struct RowReport {
  const results::RowData* data = nullptr;    ///< not owned
  std::optional<statistics::Estimate> time;  ///< seconds of one call
  /// 99th percentile of single calls; absent below 100 calls
  std::optional<statistics::Located> p99;
  std::optional<double> algbw, busbw;    ///< bytes/s at the median time; collectives
  std::optional<double> flops;           ///< FLOP/s of one rank, the slowest; gemm
  std::optional<double> of_ceiling;      ///< flops over the run's best rate for this element type
  std::optional<double> of_peak;         ///< flops over the datasheet's peak
  std::optional<double> bandwidth;       ///< bytes/s; p2p and memory
  std::optional<double> of_memory_peak;  ///< device memory's bandwidth over the datasheet's
};

/// The references that a row is compared with. Not owned; null = not known.
struct RowReference {
  const results::CalibrationData* calibration = nullptr;
  const Datasheet* datasheet = nullptr;
};

/// True if the row has times of the operation that it names. It may have failed nevertheless:
/// because of wrong elements, which a report then shows with the rates, or because it was slower
/// than expected.
[[nodiscard]] bool has_rates(const results::RowData& row);

/// Sets a value that is still unknown. Several rows may be about the same thing, and one may have a
/// value that another lacks.
template <class T>
void fill_in(T& known, T other) {
  if (known == T{}) known = std::move(other);
}

/// Computes the rates of a row; a row has rates only if has_rates() is true.
[[nodiscard]] RowReport report_row(const results::RowData& row, const RowReference& reference);

}  // namespace isoscale::analysis::microbench
