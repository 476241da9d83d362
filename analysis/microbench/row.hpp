// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/calibration_data.hpp"
#include "results/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/robust.hpp"

/// Computes the rates of one row of a micro-benchmark, and compares them with the peaks of GPU
/// datasheets.
namespace isoscale::analysis {

/// The peaks by a GPU's datasheet. Figures that are not known are absent.
struct Datasheet {
  std::string_view gpu;                ///< part of the name that the driver reports
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink
  std::string_view source{};

  /// Returns the dense peak of an element type, by its name in programs; absent where it is
  /// unknown.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// Returns all known datasheets; the first match counts.
[[nodiscard]] std::span<const Datasheet> datasheets();

/// Returns the entry for a GPU by its name; null without one.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// Returns the entry for a rank's GPU by the rank's facts. Null for CPUs, and for partitions of a
/// GPU (MIG), which reach only a share of its peaks.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);

/// Returns busbw / algbw among `members` ranks as nccl-tests defines it: all_reduce 2 (n-1) / n;
/// reduce_scatter, all_gather, all_to_all, gather and scatter (n-1) / n; broadcast, reduce and
/// sendrecv 1. Absent for ops that move no data (barrier), for other ops, and below 1 member.
[[nodiscard]] std::optional<double> bus_factor(std::string_view op, double members);

struct RowReport {
  const results::RowData* data = nullptr;    ///< not owned
  std::optional<statistics::Estimate> time;  ///< seconds of one call
  std::optional<statistics::Located> p99;    ///< of single calls; absent below 100
  std::optional<double> algbw, busbw;        ///< bytes/s at the median time; collectives
  std::optional<double> flops;               ///< FLOP/s of one rank, the slowest; gemm
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

/// True if the row has times of what it names. It may have failed all the same: because of wrong
/// elements, which a report then shows with the rates, or because it was slower than expected.
[[nodiscard]] bool has_rates(const results::RowData& row);

/// Sets a value that is still unknown. Several rows may be about the same thing, and one may have a
/// value that another lacks.
template <class T>
void fill_in(T& known, T told) {
  if (known == T{}) known = std::move(told);
}

/// Computes the rates of a row; a row has rates only if has_rates() is true.
[[nodiscard]] RowReport report_row(const results::RowData& row, const RowReference& reference);

}  // namespace isoscale::analysis
