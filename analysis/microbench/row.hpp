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

/// Rates that follow from one row of a micro-benchmark, and those that makers of GPUs promise.
namespace isoscale::analysis {

/// A maker's promise. Unknown stays unknown: a figure that is not in the table is absent.
struct Datasheet {
  std::string_view gpu;                ///< part of the name that the driver gives
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink
  std::string_view source{};

  /// Dense peak of an element type as programs name it; absent where unknown.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// All that is known, the first match counts.
[[nodiscard]] std::span<const Datasheet> datasheets();

/// The entry of a GPU by its name; null without one.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// The same by the facts of a rank. Null for CPUs, and for parts of a GPU (MIG), which reach a
/// share of it only.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);

/// busbw / algbw among `members` ranks as nccl-tests defines it: all_reduce 2 (n-1) / n;
/// reduce_scatter, all_gather, all_to_all, gather and scatter (n-1) / n; broadcast, reduce and
/// sendrecv 1. Absent for what moves no data (barrier), for other ops, and below 1 member.
[[nodiscard]] std::optional<double> bus_factor(std::string_view op, double members);

struct RowReport {
  const results::RowData* data = nullptr;    ///< not owned
  std::optional<statistics::Estimate> time;  ///< seconds of one call
  std::optional<statistics::Located> p99;    ///< of single calls; absent below 100
  std::optional<double> algbw, busbw;        ///< bytes/s, of the median time; collectives
  std::optional<double> flops;               ///< FLOP/s of one rank, the slowest; gemm
  std::optional<double> of_ceiling;          ///< flops over the run's best for this element type
  std::optional<double> of_peak;             ///< flops over the datasheet's
  std::optional<double> bandwidth;           ///< bytes/s; p2p and memory
  std::optional<double> of_memory_peak;      ///< of a device's own memory over the datasheet's
};

/// The references that a row is set against. Not owned; null = not known.
struct RowReference {
  const results::CalibrationData* calibration = nullptr;
  const Datasheet* datasheet = nullptr;
};

/// True if a row has times that stand for what it names. It may have failed all the same: for wrong
/// elements, which then stand beside, or for being slower than was expected.
[[nodiscard]] bool has_rates(const results::RowData& row);

/// Fills in what is not known yet of something that several rows are about: one may lack what
/// another says.
template <class T>
void fill_in(T& known, T told) {
  if (known == T{}) known = std::move(told);
}

/// Rates are of rows that have them by has_rates.
[[nodiscard]] RowReport report_row(const results::RowData& row, const RowReference& reference);

}  // namespace isoscale::analysis
