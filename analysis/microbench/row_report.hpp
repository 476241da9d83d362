// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/robust.hpp"

/// Computes the rates of one row of a micro-benchmark, and compares them with the best rates of the
/// run and with the peaks of GPU datasheets, which are listed here.
namespace isoscale::analysis::microbench {

/// The peak rates in a GPU's datasheet. Unknown rates are absent.
struct Datasheet {
  std::string_view gpu;                ///< the driver's name of the GPU contains this text
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink

  /// Returns the dense peak for an element type such as "bf16"; absent if it is not known.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// Returns the datasheet for the name of a GPU; null if there is none.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// Returns the datasheet for the GPU in a rank's facts. Null for CPUs, and for partitions of a GPU
/// (MIG), which reach only a share of its peaks.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);

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
